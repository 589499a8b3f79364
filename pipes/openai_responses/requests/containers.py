"""The code container of a request, and the uploaded files that it begins with."""

from collections.abc import Sequence

from openai_responses.appended import change_added_tools
from openai_responses.items import Item
from openai_responses.json_input import as_mapping
from openai_responses.requests.build import ResponsesRequest

MAX_CONTAINER_FILES = 50
"""The API takes no more (guide "Code Interpreter")."""

_CODE = "code_interpreter"


def has_new_container(tools: Sequence[Item]) -> bool:
    """Say whether code runs in a container that the API opens by itself."""
    return any(_opens_container(tool) for tool in tools)


def with_container_files(
    request: ResponsesRequest, file_ids: Sequence[str]
) -> ResponsesRequest:
    """Return a request whose new container begins with uploaded files.

    The tool is in the request, or in an item of a later turn.
    """
    if not file_ids:
        return request

    def with_files(tool: Item) -> Item:
        """Return a tool whose container begins with the files, if the API opens it."""
        if not _opens_container(tool):
            return tool
        return {**tool, "container": {**tool["container"], "file_ids": list(file_ids)}}

    tools = [with_files(tool) for tool in request.tools or ()]
    items = change_added_tools(request.input, with_files)
    return request.model_copy(update={"tools": tools or None, "input": items})


def _opens_container(tool: Item) -> bool:
    container = as_mapping(tool.get("container"))
    return tool.get("type") == _CODE and container.get("type") == "auto"
