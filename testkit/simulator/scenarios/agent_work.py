"""What the model says to an agent at longer work: data, many calls, helpers."""

import json
from typing import Any

from simulator.files import read_picture
from simulator.options import Options
from simulator.request import ValidRequest, read_output_text
from simulator.scenarios.agent import DEGREES, answer_task, describe_task
from simulator.scenarios.builders import (
    Item,
    build_code_interpreter_call,
    build_function_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import Reply, Scenario, make_reply, make_scenario

STORM_ROUNDS = 6
"""Responses that call tools, before the one that answers."""
STORM_TOOLS = ("steady", "failing", "hanging", "dying", "endless")
"""The tools that are called in each of them; only the first one gives a good output."""
LONG_LABELS = """\
import pandas as pd

sales = pd.read_csv("/mnt/data/sales.csv")
sales.plot.bar(x="product", y="revenue")"""
HORIZONTAL_BARS = """\
axes = sales.sort_values("revenue").plot.barh(x="product", y="revenue")
axes.figure.tight_layout()
axes.figure.savefig("/mnt/data/revenue.png")"""
PLAN = [
    {"id": "2025", "content": "Find the warmest month of 2025"},
    {"id": "2026", "content": "Find the warmest month of 2026"},
    {"id": "compare", "content": "Compare both years"},
]


def plot_data(request: ValidRequest, _: Options) -> Reply:
    """Plot an attached table, look at the plot, and draw it again.

    OpenAI's Python has the table only if the request names its file.
    """
    files = [
        file
        for tool in request.tools("code_interpreter")
        for file in _file_ids(tool["container"])
    ]
    if not files:
        return make_reply(build_message("There is no table, or no Python to read it."))
    text = "Tea earned the most: **48,200 €**, twice as much as coffee."
    return make_reply(
        build_reasoning("**Reading the table**\n\nOne bar for each product."),
        _build_plot(LONG_LABELS, "bars-upright"),
        build_reasoning("**Looking at the plot**\n\nThe names overlap."),
        build_message(
            "The names overlap: I draw the bars horizontally.", phase="commentary"
        ),
        _build_plot(HORIZONTAL_BARS, "bars-lying"),
        build_reasoning("**Looking again**\n\nNow all names can be read."),
        build_message(text, phase="final_answer"),
    )


def _file_ids(container: Any) -> list[str]:
    """Return the files of a container; none of one that the request names by its id."""
    if not isinstance(container, dict):
        return []
    return list(container.get("file_ids", ()))


def _build_plot(code: str, picture: str) -> Item:
    """Return a call of OpenAI's Python whose output is a picture of the simulator."""
    url = f"data:image/png;base64,{read_picture(picture)}"
    call = build_code_interpreter_call(code, "")
    return {**call, "outputs": [{"type": "image", "url": url}]}


def call_in_storm(request: ValidRequest, _: Options) -> Reply:
    """Call five tools at once in six rounds, then say how many outputs came."""
    number = request.rounds
    if request.body.get("tool_choice") == "none" or number == STORM_ROUNDS:
        texts = [read_output_text(item) for item in request.outputs]
        good_texts = [text for text in texts if text.startswith("Calm")]
        answer = f"{len(texts)} outputs came, {len(good_texts)} of them good."
        return make_reply(build_message(answer, phase="final_answer"))
    calls = [
        build_function_call(name, {"town": f"Town {number}"}) for name in STORM_TOOLS
    ]
    return make_reply(
        build_message(f"Now for town {number}.", phase="commentary"), *calls
    )


def lead_crew(request: ValidRequest, _: Options) -> Reply:
    """Write a list, give two tasks to sub-agents, and compare what they found.

    A sub-agent is a chat of its own, whose question is the task.
    """
    answer = answer_task(request)
    if answer:
        return answer
    match request.rounds:
        case 0:
            return make_reply(
                build_reasoning("**Planning**\n\nThe years do not need each other."),
                build_message("I compare the two years.", phase="commentary"),
                build_function_call("create_tasks", {"tasks": PLAN}),
            )
        case 1:
            return make_reply(*[_delegate_year(year) for year in DEGREES])
        case 2:
            start_comparing = {"id": "compare", "status": "in_progress"}
            return make_reply(
                build_message("Both found August.", phase="commentary"),
                *[build_function_call("update_task", {"id": year}) for year in DEGREES],
                build_function_call("update_task", start_comparing),
            )
        case _:
            text = "**August** in both years: 22 °C in 2025, 23 °C in 2026."
            return make_reply(build_message(text, phase="final_answer"))


def _delegate_year(year: str) -> Item:
    """Return the call that gives a sub-agent the temperatures of a year."""
    arguments = json.dumps({"task": describe_task(year)}, ensure_ascii=False)
    return build_function_call("delegate_task", arguments)


AGENT_WORK_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "agent-data",
        "a plot of an attached table, which the model corrects when it sees it",
        plot_data,
    ),
    make_scenario(
        "agent-storm",
        "five calls at once in six rounds, then how many outputs came",
        call_in_storm,
    ),
    make_scenario(
        "agent-crew",
        "a list of tasks, two sub-agents, then the answer",
        lead_crew,
    ),
)
