"""Replies that generate images, run code and make files.

The API calls a hosted tool only if the request has it; so do these.
"""

from simulator.files import CHART_FILE, EXPIRED, TABLE_FILE, draw_picture
from simulator.options import Options
from simulator.request import ValidRequest
from simulator.scenarios.builders import (
    build_code_interpreter_call,
    build_container_citation,
    build_image_generation_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import (
    Reply,
    Scenario,
    make_reply,
    make_scenario,
    send_partial_images,
)

DRAWING = build_reasoning("**Drawing**\n\nA disc will do.")
COUNTING = build_reasoning("**Counting**\n\nThis is best done with code.")
LIGHTEST_SHADE = 200
SHADE_STEP = 60
CODE = """\
import csv

with open("/mnt/data/people.csv", "w") as file:
    csv.writer(file).writerows(rows)
print(sum(people for _, people in rows))"""
COUNTED = build_code_interpreter_call(CODE, "14400000\n")
TABLE_PATH = "sandbox:/mnt/data/people.csv"
TEXT = f"There are 14,400,000 people. The table is in [people.csv]({TABLE_PATH})."
LATE_TEXT = f"The table is in [people.csv]({TABLE_PATH})."
EXPIRED_CITATION = {
    **build_container_citation(LATE_TEXT, TABLE_PATH, TABLE_FILE),
    "container_id": EXPIRED,
}
FAILED_DRAWING = {
    "type": "image_generation_call",
    "status": "failed",
    "result": None,
    "error": {
        "type": "image_generation_user_error",
        "code": "moderation_blocked",
        "message": "Your request was rejected by the safety system.",
        "param": None,
    },
}
CHART = {"type": "image", "url": f"data:image/png;base64,{draw_picture(90)}"}


def _draw(request: ValidRequest, _: Options) -> Reply:
    """Return a reply with a picture, darker for each picture in the request."""
    given = 0
    for item in request.items:
        content = item.get("content")
        parts = content if isinstance(content, list) else []
        given += sum(part.get("type") == "input_image" for part in parts)
    tool = request.tools("image_generation")[0]
    shade = max(0, LIGHTEST_SHADE - SHADE_STEP * given)
    is_edit = given > 0 and tool.get("action") != "generate"
    action = "edit" if is_edit else "generate"
    picture = draw_picture(shade)
    call = build_image_generation_call(picture, f"A disc of shade {shade}", action)
    partial_images = [
        draw_picture(shade // 2 + 20 * number)
        for number in range(tool.get("partial_images", 0))
    ]
    noun = "picture" if given == 1 else "pictures"
    answer = build_message(f"Here it is. I was given {given} {noun} back.")
    return make_reply(DRAWING, call, answer, fault=send_partial_images(partial_images))


def _draw_without_text(request: ValidRequest, options: Options) -> Reply:
    drawing = _draw(request, options)
    return make_reply(*drawing.items[:2], fault=drawing.fault)


def _draw_unfinished(request: ValidRequest, options: Options) -> Reply:
    """Send the finished picture with the status ``generating``."""
    drawing = _draw(request, options)
    reasoning, picture, *rest = drawing.items
    unfinished = {**picture, "status": "generating"}
    return make_reply(reasoning, unfinished, *rest, fault=drawing.fault)


_IMAGE_TOOL = "image_generation"
_CODE_TOOL = "code_interpreter"

MADE_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "draw",
        "a picture, darker for each one given, then a sentence",
        _draw,
        tool=_IMAGE_TOOL,
    ),
    make_scenario(
        "draw-only", "a picture, no text", _draw_without_text, tool=_IMAGE_TOOL
    ),
    make_scenario(
        "draw-generating",
        "a picture whose item ends with the status `generating`",
        _draw_unfinished,
        tool=_IMAGE_TOOL,
    ),
    make_scenario(
        "draw-failed",
        "a picture that was refused, then a sentence",
        DRAWING,
        FAILED_DRAWING,
        build_message("I could not draw that."),
        tool=_IMAGE_TOOL,
    ),
    make_scenario(
        "count",
        "code that writes a table and a chart, then a link",
        COUNTING,
        COUNTED,
        build_message(
            TEXT,
            annotations=[
                build_container_citation(TEXT, TABLE_PATH, TABLE_FILE),
                build_container_citation(TEXT, "", CHART_FILE, "cfile_chart.png"),
            ],
        ),
        tool=_CODE_TOOL,
    ),
    make_scenario(
        "count-late",
        "a link into a container that has expired",
        COUNTING,
        COUNTED,
        build_message(LATE_TEXT, annotations=[EXPIRED_CITATION]),
        tool=_CODE_TOOL,
    ),
    make_scenario(
        "count-failed",
        "code that failed, then a sentence",
        COUNTING,
        {**COUNTED, "status": "failed", "outputs": None},
        build_message("The code did not run."),
        tool=_CODE_TOOL,
    ),
    make_scenario(
        "plot",
        "code whose output is a chart, then a sentence",
        COUNTING,
        {**build_code_interpreter_call("plot(rows)", ""), "outputs": [CHART]},
        build_message("The chart is above."),
        tool=_CODE_TOOL,
    ),
)
