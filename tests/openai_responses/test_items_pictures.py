"""A drawn picture goes back as an input picture."""

from typing import Any

import pytest

from openai_responses.items import Item, has_image, image_url
from openai_responses.requests.replay import replay_output
from runs.sample import message, reasoning

DRAWN: Item = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "AAAA",
    "output_format": "png",
}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "data:image/png;base64,AAAA"),
        ({"output_format": "webp"}, "data:image/webp;base64,AAAA"),
        ({"output_format": None}, "data:image/png;base64,AAAA"),
        ({"output_format": "svg"}, "data:image/svg+xml;base64,AAAA"),
        ({"result": "data:image/webp;base64,AA"}, "data:image/webp;base64,AA"),
        ({"result": "DATA:image/JPG;x=1;base64,AA"}, "DATA:image/JPG;x=1;base64,AA"),
        ({"result": "https://x.example/1?a=b"}, "https://x.example/1?a=b"),
        ({"result": f"https://x.example/{'a' * 5000}"}, ""),
        ({"result": "https://x.example/a b"}, ""),
        ({"result": "file:///etc/passwd"}, ""),
        ({"result": "data:text/html;base64,AA"}, ""),
        ({"result": {"url": "https://x.example"}}, ""),
        ({"result": None}, ""),
    ],
)
def test_address_that_holds_a_picture(given: dict[str, Any], url: str) -> None:
    """Labeled with its format; without one it is the API's usual."""
    assert image_url({**DRAWN, **given}) == url


@pytest.mark.parametrize(
    "given",
    [
        {"result": None},
        {"output_format": "svg"},
        {"result": "data:image/svg+xml;base64,AAAA"},
        {"result": "data:image/gif;base64,AAAA"},
        {"result": "file:///etc/passwd"},
        {"type": "message"},
    ],
)
def test_item_without_a_readable_picture_has_no_image(given: dict[str, Any]) -> None:
    """No picture, or one that the model does not read."""
    assert not has_image({**DRAWN, **given})


@pytest.mark.parametrize(
    "result",
    [
        "data:image/jpg;base64,AAAA",
        "data:image/jpeg;base64,AAAA",
        "https://x.example/1",
        "AAAA",
    ],
)
def test_item_with_a_readable_picture_has_an_image(result: str) -> None:
    """However the server gives it; its label is right, and `output_format` may not."""
    svg = "svg" if result.startswith("data:") else "png"
    assert has_image({**DRAWN, "result": result, "output_format": svg})


def test_picture_goes_back_at_its_place() -> None:
    """Between the reasoning and the text, in a message without words."""
    output = [reasoning("1"), DRAWN, message("1", "There.")]

    items = replay_output(output, with_reasoning=True)

    assert [item["type"] for item in items] == ["reasoning", "message", "message"]
    url = "data:image/png;base64,AAAA"
    part = {"type": "input_image", "detail": "auto", "image_url": url}
    assert items[1] == {"type": "message", "role": "user", "content": [part]}


def test_pictures_that_code_made_do_not_go_back() -> None:
    """They are for people, and large; what was printed stays."""
    logs = {"type": "logs", "logs": "1\n"}
    code = {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "plot()",
        "container_id": "cntr_1",
        "outputs": [logs, {"type": "image", "url": "data:image/png;base64,AAAA"}],
    }

    (back,) = replay_output([code], with_reasoning=True)

    assert back["outputs"] == [logs]
