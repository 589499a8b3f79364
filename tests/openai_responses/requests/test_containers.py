"""The files of a chat are in the container in which its code runs."""

import pytest

from openai_responses.items import Item
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.containers import has_new_container, with_container_files

HI: Item = {"role": "user", "content": "Hi"}
WEB: Item = {"type": "web_search"}
NEW: Item = {"type": "code_interpreter", "container": {"type": "auto"}}
OWN: Item = {"type": "code_interpreter", "container": "cntr_1"}
LIKE_NEW: Item = {"type": "surprise", "container": {"type": "auto"}}
FILLED: Item = {
    "type": "code_interpreter",
    "container": {"type": "auto", "file_ids": ["file-1", "file-2"]},
}


def adding(*tools: Item) -> Item:
    return {"type": "additional_tools", "role": "developer", "tools": [*tools]}


@pytest.mark.parametrize(
    ("tools", "opens"), [([WEB, NEW], True), ([WEB, OWN, LIKE_NEW], False), ([], False)]
)
def test_api_opens_a_container_unless_one_is_named(
    tools: list[Item], opens: bool
) -> None:
    assert has_new_container(tools) is opens


@pytest.mark.parametrize(
    ("tools", "items", "tools_sent", "items_sent"),
    [
        ([WEB, NEW], [HI], [WEB, FILLED], [HI]),
        ([OWN], [HI], [OWN], [HI]),
        (None, [adding(NEW, WEB), HI], None, [adding(FILLED, WEB), HI]),
    ],
)
def test_files_are_in_a_new_container(
    tools: list[Item] | None,
    items: list[Item],
    tools_sent: list[Item] | None,
    items_sent: list[Item],
) -> None:
    """Of the request, or of a later turn; the request itself is unchanged."""
    request = ResponsesRequest(model="m", input=items, tools=tools)

    sent = with_container_files(request, ["file-1", "file-2"])

    assert (sent.tools, sent.input) == (tools_sent, items_sent)
    assert (request.tools, request.input) == (tools, items)
    assert with_container_files(request, []) is request
