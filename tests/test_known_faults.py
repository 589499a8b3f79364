"""The faults that `scripts/faults.py` puts in are faults of the code as it is now."""

from faulting.faults import read_known_faults
from faults import KNOWN
from golden_run.built_files import ROOT


def test_each_known_fault_has_its_line() -> None:
    """One whose line is gone would stop the program for all others."""
    assert read_known_faults(ROOT, KNOWN)
