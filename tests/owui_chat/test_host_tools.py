"""Calls inside of the host's own tool that calls others."""

import pytest

from owui_chat.host_tools import read_call_tool


@pytest.mark.parametrize(
    ("arguments", "inner"),
    [
        (
            {"tool_name": "f", "params": '{"city": "Bern"}'},
            ("f", {"city": "Bern"}),
        ),
        ({"tool_name": 7, "params": "{}"}, (7, {})),
        ({"params": "{}"}, (None, {})),
        ({"tool_name": "f", "params": "city"}, None),
        ({"tool_name": "f", "params": "[]"}, None),
        ({"tool_name": "f", "params": {"city": "Bern"}}, None),
    ],
)
def test_inner_call_is_read(
    arguments: dict[str, object], inner: tuple[object, object] | None
) -> None:
    """What cannot be read is no call, so that no rule is asked about another one."""
    assert read_call_tool(arguments) == inner
