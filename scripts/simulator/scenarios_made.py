"""What the model makes with hosted tools: pictures, code that runs, files.

The API calls a hosted tool only where it is offered; so do these.
"""

from typing import Any

from simulator.asked import Asked
from simulator.builders import (
    Item,
    code_interpreter_call,
    container_citation,
    function_call,
    image_generation_call,
    message,
    reasoning,
)
from simulator.containers import (
    CHART_FILE,
    EXPIRED,
    TABLE_FILE,
)
from simulator.disorder import partial_pictures
from simulator.options import Options
from simulator.pictures import picture
from simulator.scenario import Compose, Reply, Scenario, reply, scenario

DRAWING = reasoning("**Drawing**\n\nA disc will do.")
COUNTING = reasoning("**Counting**\n\nThis is best done with code.")
NO_TOOL = message("I have no tool for that here.")
LIGHTEST, STEP = 200, 60
CODE = """\
import csv

with open("/mnt/data/people.csv", "w") as file:
    csv.writer(file).writerows(rows)
print(sum(people for _, people in rows))"""
LOGS = "14400000\n"
TABLE_LINK = "[people.csv](sandbox:/mnt/data/people.csv)"
BLOCKED = {
    "type": "image_generation_user_error",
    "code": "moderation_blocked",
    "message": "Your request was rejected by the safety system.",
    "param": None,
}


def _only_with(tool: str, compose: Compose) -> Compose:
    """Answer that there is no tool where it was not offered."""

    def composed(asked: Asked, options: Options) -> Any:
        return compose(asked, options) if asked.tools(tool) else reply(NO_TOOL)

    return composed


def _pictures_given(asked: Asked) -> int:
    contents = (item.get("content") for item in asked.items)
    parts = (part for rows in contents if isinstance(rows, list) for part in rows)
    return sum(part.get("type") == "input_image" for part in parts)


def _drawn(asked: Asked, *after: Item) -> Reply:
    """Draw; darker where pictures were given. ``after`` stands behind the picture."""
    tool = asked.tools("image_generation")[0]
    given = _pictures_given(asked)
    shade = max(0, LIGHTEST - STEP * given)
    made = image_generation_call(
        picture(shade),
        f"A disc of shade {shade}",
        "edit" if given and tool.get("action") != "generate" else "generate",
    )
    pictures = [
        picture(shade // 2 + 20 * n) for n in range(tool.get("partial_images", 0))
    ]
    seen = f"I was given {given} picture{'' if given == 1 else 's'} back."
    return reply(
        DRAWING,
        made,
        *(after or (message(f"Here it is. {seen}"),)),
        disorder=partial_pictures(pictures),
    )


def _draw(asked: Asked, options: Options) -> Reply:
    del options
    return _drawn(asked)


def _draw_and_stop(asked: Asked, options: Options) -> Reply:
    del options
    drawn = _drawn(asked)
    return reply(*drawn.items[:2], disorder=drawn.disorder)


def _draw_and_call(asked: Asked, options: Options) -> Reply:
    del options
    return _drawn(asked, function_call("$tool", "$arguments"))


def _draw_in_vain(asked: Asked, options: Options) -> Reply:
    del asked, options
    failed = {
        "type": "image_generation_call",
        "status": "failed",
        "result": None,
        "error": BLOCKED,
    }
    return reply(DRAWING, failed, message("I could not draw that."))


def _count(asked: Asked, options: Options) -> Reply:
    del asked, options
    text = f"There are 14,400,000 people. The table is in {TABLE_LINK}."
    cited = [
        container_citation(text, "sandbox:/mnt/data/people.csv", TABLE_FILE),
        container_citation(text, "", CHART_FILE, "cfile_chart.png"),
    ]
    return reply(
        COUNTING,
        code_interpreter_call(CODE, LOGS),
        message(text, annotations=cited),
    )


def _count_too_late(asked: Asked, options: Options) -> Reply:
    del asked, options
    text = f"The table is in {TABLE_LINK}."
    cited = container_citation(text, "sandbox:/mnt/data/people.csv", TABLE_FILE)
    return reply(
        COUNTING,
        code_interpreter_call(CODE, LOGS),
        message(text, annotations=[{**cited, "container_id": EXPIRED}]),
    )


def _fail(asked: Asked, options: Options) -> Reply:
    del asked, options
    failed = {**code_interpreter_call(CODE, ""), "status": "failed", "outputs": None}
    return reply(COUNTING, failed, message("The code did not run."))


def _plot(asked: Asked, options: Options) -> Reply:
    del asked, options
    url = f"data:image/png;base64,{picture(90)}"
    ran = code_interpreter_call("plot(rows)", "")
    ran["outputs"] = [{"type": "image", "url": url}]
    return reply(COUNTING, ran, message("The chart is above."))


_DRAWER, _RUNNER = "image_generation", "code_interpreter"
FOUND = message("I called `$tool`. It said: $output")

MADE_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "draw",
        "a picture, darker for each one given, then a sentence",
        _only_with(_DRAWER, _draw),
    ),
    scenario("draw-only", "a picture, no text", _only_with(_DRAWER, _draw_and_stop)),
    scenario(
        "draw-failed",
        "a picture that was refused, then a sentence",
        _only_with(_DRAWER, _draw_in_vain),
    ),
    scenario(
        "draw-tool",
        "a picture, a call of the first offered function, then the answer",
        _only_with(_DRAWER, _draw_and_call),
        reply(FOUND),
    ),
    scenario(
        "count",
        "code that leaves a table and a chart, then a link",
        _only_with(_RUNNER, _count),
    ),
    scenario(
        "count-late",
        "a link into a container that has expired",
        _only_with(_RUNNER, _count_too_late),
    ),
    scenario(
        "count-failed",
        "code that failed, then a sentence",
        _only_with(_RUNNER, _fail),
    ),
    scenario(
        "plot",
        "code whose output is a chart, then a sentence",
        _only_with(_RUNNER, _plot),
    ),
)
