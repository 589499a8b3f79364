"""Replies for the agents: work with the sandbox, delegated tasks, data, many calls."""

from simulator.files import read_picture
from simulator.options import Options
from simulator.request import ValidRequest, read_output_text
from simulator.scenarios.builders import (
    Item,
    build_code_interpreter_call,
    build_function_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import Reply, Scenario, make_reply, make_scenario

PLOT = """\
import csv
import matplotlib.pyplot as plt

months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov".split()
degrees = [5, 4, 6, 9, 14, 19, 22, 23, 19, 14, 9]
with open("temperatures.csv", "w") as file:
    csv.writer(file).writerows([("month", "degrees"), *zip(months, degrees)])
plt.figure(figsize=(7, 3))
plt.bar(months, degrees, color="steelblue")
plt.ylabel("°C")
plt.title("Water temperature at Zürich, 2026")
plt.savefig("temperatures.png", dpi=120)
max(zip(degrees, months))"""
DEGREES = {
    "2025": [5, 4, 7, 9, 13, 18, 21, 22, 20, 15, 10, 7],
    "2026": [5, 4, 6, 9, 14, 19, 22, 23, 19, 14, 9],
}
TABLE = "\n".join(
    f"{year}-{month:02}: {degrees} °C in the lake at Zürich"
    for year, year_degrees in DEGREES.items()
    for month, degrees in enumerate(year_degrees, 1)
)
TASK = "Say in which month of {year} the water was warmest at Zürich. °C by month: "
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


def _delegate(year: str, name: str) -> Item:
    """Return the call that gives another run the temperatures of a year."""
    degrees = ", ".join(str(number) for number in DEGREES[year])
    return build_function_call(name, {"task": TASK.format(year=year) + degrees})


def answer_task(request: ValidRequest) -> Reply | None:
    """Return the answer to such a task; None for any other question."""
    for year, degrees in DEGREES.items():
        if TASK.format(year=year) in request.last_user_text:
            return make_reply(build_message(f"August {year}, with {max(degrees)} °C."))
    return None


def give_tasks(request: ValidRequest, _: Options) -> Reply:
    """Delegate a task for each year; in such a task, compute with Python."""
    if not any(tool["name"] == "delegate" for tool in request.tools("function")):
        year = "2025" if "2025" in request.last_user_text else "2026"
        degrees = DEGREES[year]
        code = f"degrees = {degrees}\n1 + degrees.index(max(degrees)), max(degrees)"
        return make_reply(
            build_reasoning("**Looking for the maximum**\n\nOne line of Python."),
            build_function_call("python_execute", {"code": code}),
        )
    return make_reply(
        build_reasoning("**Splitting the work**\n\nThe years do not need each other."),
        *[_delegate(year, "delegate") for year in DEGREES],
    )


def report_tasks(request: ValidRequest, _: Options) -> Reply:
    """Say the result of a task; in the question itself, the results of both."""
    answer = answer_task(request)
    if answer:
        return answer
    return make_reply(
        build_message("**August** in both years: 22 °C in 2025, 23 °C in 2026.")
    )


def take_step(request: ValidRequest, _: Options) -> Reply:
    """Call the first function, or answer if no function may be called."""
    if request.body.get("tool_choice") == "none":
        return make_reply(build_message("This is what I have so far: $output"))
    return make_reply(
        build_message("One more step.", phase="commentary"),
        build_function_call("$tool", "$arguments"),
    )


def plot_data(request: ValidRequest, _: Options) -> Reply:
    """Plot an attached table, look at the plot, and draw it again.

    OpenAI's Python has the table only if the request names its file.
    """
    containers = [tool["container"] for tool in request.tools("code_interpreter")]
    if not any(isinstance(it, dict) and it.get("file_ids") for it in containers):
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
            return make_reply(*[_delegate(year, "delegate_task") for year in DEGREES])
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


AGENT_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "agent-plot",
        "the agent plots with Python, and gives the table as a file",
        make_reply(
            build_reasoning(
                "**Choosing a plot**\n\nOne value a month: bars, with the unit."
            ),
            build_function_call("python_execute", {"code": PLOT}),
        ),
        make_reply(
            build_message(
                "The lake was warmest in **August**, with 23 °C, and above 18 °C from "
                "June to September."
            )
        ),
    ),
    make_scenario(
        "agent-remove",
        "the agent removes a file, which may need an approval",
        make_reply(
            build_reasoning("**Removing the table**\n\nOne file, and no other."),
            build_function_call("sandbox_fs_remove", {"path": "temperatures.csv"}),
        ),
        make_reply(build_message("I removed `temperatures.csv`.")),
    ),
    make_scenario(
        "agent-write",
        "the agent writes a file that is too long for an approval card",
        make_reply(
            build_reasoning("**Writing the list**\n\nOne line a month."),
            build_function_call(
                "sandbox_fs_write", {"path": "temperatures.txt", "content": TABLE}
            ),
        ),
        make_reply(build_message("That was the file `temperatures.txt`.")),
    ),
    make_scenario(
        "agent-tasks",
        "the agent gives two tasks to other runs of itself",
        give_tasks,
        report_tasks,
    ),
    make_scenario(
        "agent-work",
        "a tool that fails, the same call again, another tool, then the answer",
        make_reply(
            build_message("I ask the first station.", phase="commentary"),
            build_function_call("broken_weather", "$arguments"),
        ),
        make_reply(
            build_reasoning("**Once more**\n\nIt may have been busy."),
            build_function_call("broken_weather", "$arguments"),
        ),
        make_reply(
            build_reasoning("**Another one**\n\nThe first station is out of order."),
            build_message("I ask another one.", phase="commentary"),
            build_function_call("get_weather", "$arguments"),
        ),
        make_reply(build_message("It said: $output", phase="final_answer")),
    ),
    make_scenario(
        "agent-tags",
        "an answer that begins with a thought in tags",
        build_message("<think>I know this.</think>\n\nIt is `408 m`."),
    ),
    make_scenario(
        "agent-silent",
        "a call without a word, then the answer",
        make_reply(build_function_call("$tool", "$arguments")),
        make_reply(build_message("It said: $output", phase="final_answer")),
    ),
    make_scenario(
        "agent-steps",
        "a call in every round in which calls are allowed, then the answer",
        take_step,
    ),
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
