"""Programs that the tests need, from the packages of Debian that bring them."""

import glob
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from installer import InstallationError, run_installer
from progress import Progress

NO_DEBIAN = """\
Missing: {names}.
These are packages of Debian, and there is no apt-get here. Install what corresponds."""
NO_RIGHTS = """\
Missing: {names}.
Only root may install packages. Run this line once as root, then start again:
    {line}"""


@dataclass(frozen=True)
class Package:
    """A package of Debian, with the programs that say whether it is needed."""

    name: str
    programs: tuple[str, ...]
    """Names on PATH or patterns of whole paths; any of them will do."""
    variable: str = ""
    """A variable of the environment that names something to be used instead."""

    def is_missing(self) -> bool:
        """Say whether no program is there, and nothing is to be used instead."""
        if os.environ.get(self.variable):
            return False
        return not any(shutil.which(name) or glob.glob(name) for name in self.programs)


def install_missing(packages: Iterable[Package], log: Path) -> None:
    """Install what is missing, as root or through sudo, or say what to run."""
    names = [package.name for package in packages if package.is_missing()]
    if not names:
        return
    shown = ", ".join(names)
    if shutil.which("apt-get") is None:
        raise InstallationError(NO_DEBIAN.format(names=shown))
    line = f"apt-get update && apt-get install -y {shlex.join(names)}"
    become_root = _become_root()
    if become_root is None:
        raise InstallationError(NO_RIGHTS.format(names=shown, line=line))
    progress = Progress(f"apt-get: {shown}")
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive"]  # no questions
    run_installer(shown, [*become_root, *quiet, "sh", "-c", line], log, progress)
    progress.end("installed")


def _become_root() -> list[str] | None:
    """Return what a command of root begins with; None if we cannot become root."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    sudo = ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    allowed = subprocess.run([*sudo, "true"], check=False)  # it may ask for a password
    return sudo if allowed.returncode == 0 else None
