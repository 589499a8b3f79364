"""Pictures and files of the input."""

from live_cases.case import ASSUMED, Body, Case, say

TOO_LARGE = "the request is too large to be sent"


def show(url: str) -> Body:
    """Return a body with a picture."""
    part = {"type": "input_image", "image_url": url, "detail": "low"}
    return {"input": [{"role": "user", "content": [part]}]}


URL = "input[0].content[0].image_url"


PART_CASES = (
    Case(
        "a picture that is no address",
        show("cat.png"),
        "openai/codex 5346, opencode 23983",
        param=URL,
        code="invalid_value",
    ),
    Case(
        "a picture of an unsupported type",
        show("data:text/html;base64,aGk="),
        "openai/codex 5346",
        param=URL,
        code="invalid_value",
        message="(?i)mime type",
    ),
    Case(
        "a picture that cannot be read",
        show("data:image/png;base64,aGVsbG8="),
        "reports of OpenAI's users; the code is assumed",
        param="input",
        code="invalid_image_format",
        message="does not represent a valid image",
    ),
    Case(
        "a picture above 20 MB",
        show(f"data:image/png;base64,{'A' * 26700000}"),
        ASSUMED,
        param="input",
        code="image_file_too_large",
        untried=TOO_LARGE,
    ),
    Case(
        "a text of more than 10,485,760 characters",
        say({"role": "user", "content": "x" * 10485761}),
        "bluebox 31",
        param="input[0].content",
        code="string_above_max_length",
        untried=TOO_LARGE,
    ),
)
