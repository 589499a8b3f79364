"""A plugin of pytest: writes the marks of the tests that were chosen to a file.

MARKS_FILE=marks.txt pytest --collect-only -p marks -k NAME
"""

import os
from pathlib import Path

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Every test that would run is known now."""
    marks = {mark.name for item in session.items for mark in item.iter_markers()}
    Path(os.environ["MARKS_FILE"]).write_text("\n".join(sorted(marks)))
