"""A virtual environment that holds what a requirement file pins."""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from installer import InstallationError, run_installer
from progress import Progress

KEPT = ("hosts", "setup.lock")
"""Environments of their own inside the first one, and the lock held meanwhile."""

_FETCHED = re.compile(r"^(?:Collecting|Processing) ", re.MULTILINE)
"""What pip says of each package; the latter of a wheel in a folder."""
_RESOLVED = re.compile(r"^Resolved (\d+) packages", re.MULTILINE)
"""What uv says of all."""

NO_VENV = """\
This Python cannot make virtual environments: {python}
Install its venv module (Debian and Ubuntu: apt-get install python3-venv), or uv."""


@dataclass(frozen=True)
class Environment:
    """A directory, with the requirement file that says what is in it."""

    name: str
    directory: Path
    requirements: Path
    interpreter: str = ""
    """The Python that it is made with; the running one, if none is named."""
    megabytes: tuple[int, int] = (0, 0)
    """What is downloaded, and what then lies on the disk; people are told before."""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.directory / "bin/python"

    @property
    def stamp(self) -> Path:
        """The file that is there only once everything else is."""
        return self.directory / "installed.txt"

    @property
    def log(self) -> Path:
        """What the installer said."""
        return self.directory / "install.log"

    def make_current(self, uv: str | None) -> None:
        """Leave a current environment alone; make any other anew."""
        if self.is_current():
            return
        if all(self.megabytes):
            downloaded, on_disk = self.megabytes
            print(
                f"{self.name}: downloads about {downloaded} MB, takes {on_disk} MB on "
                "the disk",
                file=sys.stderr,
            )
        self._clear()
        self._create(uv)
        self._install(uv)
        self.stamp.write_text("\n".join([*self._expected(), str(self._installed())]))

    def is_current(self) -> bool:
        """Say whether the stamp fits, no package is gone, and the interpreter starts."""
        if not self.stamp.exists():
            return False
        *expected, installed = self.stamp.read_text().splitlines()
        if expected != self._expected() or self._installed() < int(installed):
            return False
        return self._starts()

    def _expected(self) -> list[str]:
        digest = hashlib.sha256(self.requirements.read_bytes()).hexdigest()
        return [f"Python {self.interpreter or platform.python_version()}", digest]

    def _installed(self) -> int:
        return sum(1 for _ in self.directory.glob("lib/*/site-packages/*.dist-info"))

    def _starts(self) -> bool:
        try:
            tried = subprocess.run([self.python, "-c", ""], check=False)
        except OSError:
            return False
        return tried.returncode == 0

    def _clear(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.stamp.unlink(missing_ok=True)
        for entry in self.directory.iterdir():
            if entry.name in KEPT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def _create(self, uv: str | None) -> None:
        progress = Progress(f"{self.name}: a new environment")
        # the base interpreter: this one may lie in the directory just cleared
        base = self.interpreter or getattr(sys, "_base_executable", sys.executable)
        options = ["--without-pip"] if uv else []
        # Python makes none where the last part of the path is a link.
        command = [base, "-m", "venv", *options, str(self.directory.resolve())]
        made = subprocess.run(command, check=False, capture_output=True)
        if made.returncode:
            raise InstallationError(NO_VENV.format(python=base))
        progress.end(self._expected()[0])

    def _install(self, uv: str | None) -> None:
        progress = Progress(f"{self.name}: {'uv' if uv else 'pip'}")
        before = self._installed()

        def describe_state() -> str:
            return self._so_far(before)

        run_installer(
            self.name, self._installer(uv), self.log, progress, describe_state
        )
        # Not those of the new environment itself: pip, and what it needs.
        progress.end(f"{self._installed() - before} packages")

    def _installer(self, uv: str | None) -> list[str]:
        if uv:
            pip = [uv, "pip", "install", "--python", str(self.python)]
        else:
            pip = [str(self.python), "-m", "pip", "install", "--no-input"]
            pip += ["--disable-pip-version-check", "--progress-bar", "off"]
            # Python compiles what it imports; most of the closure never is.
            pip += ["--no-compile"]
        return [*pip, "--no-deps", "-r", str(self.requirements)]

    def _so_far(self, before: int) -> str:
        """Return how far the installer has come; its log says how many there are.

        A line of the requirements may be for another system. pip fetches everything
        before it installs anything.
        """
        installed = self._installed() - before
        log = self.log.read_text(errors="replace")
        fetched = len(_FETCHED.findall(log))
        resolved = _RESOLVED.search(log)
        total = int(resolved[1]) if resolved else fetched
        if installed:
            of_total = f" of {total}" if total else ""
            return f"{installed}{of_total} packages installed"
        return f"{fetched} packages fetched" if fetched else "fetching"
