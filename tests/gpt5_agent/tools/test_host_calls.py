"""Names of Open WebUI's tools."""

import pytest

from gpt5_agent.tools.host_calls import find_own_names


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("files_delete", {"delete"}),
        ("files_files_files_delete", {"delete"}),
        ("files_files_delete", {"delete", "files_delete"}),
        ("my_files_list", {"list"}),
        ("my_files_my_files_list", {"list"}),
        ("delete_files", set()),
        ("filesdelete", set()),
        ("files", set()),
    ],
)
def test_own_name_of_a_tool_that_the_host_renamed(name: str, own: set[str]) -> None:
    """The id may stand in front several times, and the name may begin like it."""
    assert own <= set(find_own_names(name, {"files", "my_files", "server"}))
    assert bool(own) == bool(find_own_names(name, {"files", "my_files", "server"}))


def test_long_name_is_read_in_one_go() -> None:
    """It grows no list of names."""
    name = "a_" * 50_000 + "delete"

    assert find_own_names(name, {"a"}) == ["delete", "a_delete"]
