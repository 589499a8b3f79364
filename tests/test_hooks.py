"""What the tests tell pytest is heard."""

from pathlib import Path

import pytest


def test_every_hook_of_the_tests_is_called(pytestconfig: pytest.Config) -> None:
    """pytest passes over a marked function whose name does not begin with its own."""
    manager = pytestconfig.pluginmanager
    conftest = manager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    assert conftest
    marked = [each for each in vars(conftest).values() if hasattr(each, "pytest_impl")]
    called = [
        hook.function
        for caller in manager.get_hookcallers(conftest) or ()
        for hook in caller.get_hookimpls()
    ]

    assert len(marked) > 5
    assert [each.__name__ for each in marked if each not in called] == []
