"""Too large pictures, with the library of the real Open WebUI."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from hosts.servers.offline import OFFLINE, host_python

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "testkit/hosts/servers/scaled_pictures.py"


def test_scaled_pictures_look_as_before(tmp_path: Path) -> None:
    """Black lines on nothing do not become black on black, and no photo lies down."""
    places = {"DATA_DIR": str(tmp_path), "STATIC_DIR": str(tmp_path / "static")}
    printed = subprocess.run(
        [host_python(), "-P", SCRIPT],
        env={**os.environ, **OFFLINE, **places, "PYTHONPATH": str(ROOT / "pipes")},
        capture_output=True,
        text=True,
        check=True,
    )

    corner, size = json.loads(printed.stdout)
    assert corner == [255, 255, 255]
    assert size == [8, 16]
