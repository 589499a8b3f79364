"""The faults that `scripts/faults.py` puts in are faults of the code as it is now."""

from faulting import rooms
from faulting.faults import read_known_faults
from faults import KNOWN
from golden_run.built_files import ROOT


def test_each_known_fault_has_its_line() -> None:
    """One whose line is gone would stop the program for all others."""
    assert read_known_faults(ROOT, KNOWN)


def test_each_room_has_tests() -> None:
    """Those of another room, if it has none of its own."""
    tops = ("pipes", "pipelines")
    packages = [
        path.parent for top in tops for path in (ROOT / top).glob("*/__init__.py")
    ]
    sources = {str(package.relative_to(ROOT)) for package in packages}

    assert sources == {*rooms.ROOMS, *rooms.TESTED_BY}
    for source in sources:
        for folder in rooms.folders_of_tests(source):
            assert (ROOT / folder).is_dir()
