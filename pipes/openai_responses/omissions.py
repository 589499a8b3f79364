"""What a caller asked for that a request does not hold."""

from collections.abc import Mapping
from typing import Any

from openai_responses.parameters import read_parameters
from openai_responses.request import ResponsesRequest

_READ_OTHERWISE = frozenset(
    {"messages", "model", "stream", "enable_stream", "tools", "extra_tools"}
)
"""Keys of a body that are no parameters, or that are sent under other names."""

_OBJECTS = ("reasoning", "text")
_LONGEST_NAME = 40


def left_out(asked: Mapping[str, Any], request: ResponsesRequest) -> list[str]:
    """Return the names that the API does not know, or that the model rejects.

    They are the API's own names, `reasoning.effort` for one inside an object.
    """
    given, sent = read_parameters(asked), request.payload()
    names = [
        f"{key}.{inner}"
        for key in _OBJECTS
        for inner in given.pop(key)
        if inner not in sent.get(key, {})
    ]
    names += [key for key in given if key not in sent and key not in _READ_OTHERWISE]
    return sorted(name[:_LONGEST_NAME] for name in names)
