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
    require_tool,
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
LOGS = "14400000\n"
TABLE_LINK = "[people.csv](sandbox:/mnt/data/people.csv)"
BLOCKED = {
    "type": "image_generation_user_error",
    "code": "moderation_blocked",
    "message": "Your request was rejected by the safety system.",
    "param": None,
}


def _count_pictures(request: ValidRequest) -> int:
    """Return how many pictures the messages of a request contain."""
    count = 0
    for item in request.items:
        content = item.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "input_image":
                count += 1
    return count


def _build_drawing(request: ValidRequest) -> Reply:
    """Return a reply with a picture, darker for each picture in the request."""
    tool = request.tools("image_generation")[0]
    picture_count = _count_pictures(request)
    shade = max(0, LIGHTEST_SHADE - SHADE_STEP * picture_count)
    is_edit = picture_count > 0 and tool.get("action") != "generate"
    call = build_image_generation_call(
        draw_picture(shade),
        f"A disc of shade {shade}",
        "edit" if is_edit else "generate",
    )
    partial_images = [
        draw_picture(shade // 2 + 20 * number)
        for number in range(tool.get("partial_images", 0))
    ]
    noun = "picture" if picture_count == 1 else "pictures"
    answer = build_message(f"Here it is. I was given {picture_count} {noun} back.")
    return make_reply(DRAWING, call, answer, fault=send_partial_images(partial_images))


def _draw(request: ValidRequest, _options: Options) -> Reply:
    return _build_drawing(request)


def _draw_without_text(request: ValidRequest, _options: Options) -> Reply:
    drawing = _build_drawing(request)
    return make_reply(*drawing.items[:2], fault=drawing.fault)


def _draw_unfinished(request: ValidRequest, _options: Options) -> Reply:
    """Send the finished picture with the status ``generating``."""
    drawing = _build_drawing(request)
    reasoning, picture, *rest = drawing.items
    unfinished = {**picture, "status": "generating"}
    return make_reply(reasoning, unfinished, *rest, fault=drawing.fault)


def _fail_to_draw(_request: ValidRequest, _options: Options) -> Reply:
    failed = {
        "type": "image_generation_call",
        "status": "failed",
        "result": None,
        "error": BLOCKED,
    }
    return make_reply(DRAWING, failed, build_message("I could not draw that."))


def _count(_request: ValidRequest, _options: Options) -> Reply:
    text = f"There are 14,400,000 people. The table is in {TABLE_LINK}."
    cited = [
        build_container_citation(text, "sandbox:/mnt/data/people.csv", TABLE_FILE),
        build_container_citation(text, "", CHART_FILE, "cfile_chart.png"),
    ]
    return make_reply(
        COUNTING,
        build_code_interpreter_call(CODE, LOGS),
        build_message(text, annotations=cited),
    )


def _count_with_expired_file(_request: ValidRequest, _options: Options) -> Reply:
    text = f"The table is in {TABLE_LINK}."
    cited = build_container_citation(text, "sandbox:/mnt/data/people.csv", TABLE_FILE)
    return make_reply(
        COUNTING,
        build_code_interpreter_call(CODE, LOGS),
        build_message(text, annotations=[{**cited, "container_id": EXPIRED}]),
    )


def _fail_to_run(_request: ValidRequest, _options: Options) -> Reply:
    failed = {
        **build_code_interpreter_call(CODE, ""),
        "status": "failed",
        "outputs": None,
    }
    return make_reply(COUNTING, failed, build_message("The code did not run."))


def _plot(_request: ValidRequest, _options: Options) -> Reply:
    url = f"data:image/png;base64,{draw_picture(90)}"
    call = build_code_interpreter_call("plot(rows)", "")
    call["outputs"] = [{"type": "image", "url": url}]
    return make_reply(COUNTING, call, build_message("The chart is above."))


_IMAGE_TOOL = "image_generation"
_CODE_TOOL = "code_interpreter"

MADE_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "draw",
        "a picture, darker for each one given, then a sentence",
        *require_tool(_IMAGE_TOOL, _draw),
    ),
    make_scenario(
        "draw-only",
        "a picture, no text",
        *require_tool(_IMAGE_TOOL, _draw_without_text),
    ),
    make_scenario(
        "draw-generating",
        "a picture whose item ends with the status `generating`",
        *require_tool(_IMAGE_TOOL, _draw_unfinished),
    ),
    make_scenario(
        "draw-failed",
        "a picture that was refused, then a sentence",
        *require_tool(_IMAGE_TOOL, _fail_to_draw),
    ),
    make_scenario(
        "count",
        "code that writes a table and a chart, then a link",
        *require_tool(_CODE_TOOL, _count),
    ),
    make_scenario(
        "count-late",
        "a link into a container that has expired",
        *require_tool(_CODE_TOOL, _count_with_expired_file),
    ),
    make_scenario(
        "count-failed",
        "code that failed, then a sentence",
        *require_tool(_CODE_TOOL, _fail_to_run),
    ),
    make_scenario(
        "plot",
        "code whose output is a chart, then a sentence",
        *require_tool(_CODE_TOOL, _plot),
    ),
)
