"""Setting up the checkout's environments."""

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from environment import Environment, InstallationError
from hosts.databases import DatabaseMissingError, lent_redis
from hosts.offline import NEWEST, OLDEST
from progress import Progress
from setup_environment import needed_by

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
INSTALLER = """\
#!/bin/sh
# uv pip install --python PYTHON --no-deps -r FILE
echo called >> {calls}
packages=$("$4" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
while read -r name; do mkdir "$packages/$name.dist-info"; done < "$7"
"""


class Checkout:
    """A directory with an environment, and an installer that needs no network."""

    def __init__(self, root: Path) -> None:
        self.calls = root / "calls"
        self.uv = root / "uv"
        self.use_installer(INSTALLER.format(calls=self.calls))
        requirements = root / "requirements.txt"
        requirements.write_text("one==1\ntwo==2\n")
        self.environment = Environment("two packages", root / ".venv", requirements)

    def use_installer(self, program: str) -> None:
        self.uv.write_text(program)
        self.uv.chmod(0o755)

    def make_current(self) -> None:
        self.environment.make_current(str(self.uv))

    @property
    def installations(self) -> int:
        return self.calls.read_text().count("called")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Nothing is installed yet."""
    return Checkout(tmp_path)


def test_a_current_environment_is_left_alone(checkout: Checkout) -> None:
    """The second start installs nothing."""
    assert not checkout.environment.is_current()

    checkout.make_current()
    checkout.make_current()

    assert checkout.environment.is_current()
    assert checkout.installations == 1


def test_changed_requirements_remake_it(checkout: Checkout) -> None:
    """What is no longer asked for goes; environments inside stay."""
    checkout.make_current()
    inner = checkout.environment.directory / "hosts/inner"
    inner.mkdir(parents=True)
    checkout.environment.requirements.write_text("three==3\n")

    checkout.make_current()

    installed = checkout.environment.directory.glob("lib/*/site-packages/*.dist-info")
    assert [path.name for path in installed] == ["three==3.dist-info"]
    assert inner.exists()


def test_a_half_made_environment_is_remade(checkout: Checkout) -> None:
    """The stamp comes last, so without it the rest is not trusted."""
    checkout.make_current()
    checkout.environment.stamp.unlink()

    checkout.make_current()

    assert checkout.environment.is_current()
    assert checkout.installations == 2


def test_a_lost_package_is_noticed(checkout: Checkout) -> None:
    """An environment somebody has removed from is not current."""
    checkout.make_current()
    found = checkout.environment.directory.glob("lib/*/site-packages/one*")
    shutil.rmtree(next(found))

    assert not checkout.environment.is_current()


def test_a_lost_interpreter_is_noticed(checkout: Checkout) -> None:
    """An environment whose Python has been uninstalled is not current."""
    checkout.make_current()
    checkout.environment.python.unlink()
    checkout.environment.python.symlink_to("/no/such/python")

    assert not checkout.environment.is_current()


def test_a_failed_installation_says_why(checkout: Checkout) -> None:
    """The installer's last words are in the error; the next start begins anew."""
    checkout.use_installer("#!/bin/sh\necho no such package\nexit 1\n")

    with pytest.raises(InstallationError, match="no such package"):
        checkout.make_current()

    assert not checkout.environment.is_current()


def test_pip_alone_will_do(tmp_path: Path) -> None:
    """Without uv the environment brings its own pip."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# nothing\n")
    environment = Environment("nothing", tmp_path / ".venv", requirements)

    environment.make_current(uv=None)

    assert environment.is_current()
    pip = [str(environment.python), "-m", "pip", "--version"]
    assert subprocess.run(pip, check=False, capture_output=True).returncode == 0


def test_the_demo_needs_one_host_and_the_tests_need_all() -> None:
    """Each is installed where the tests look for it, from a closure that is there."""
    demo, tests = needed_by(["demo.py", "--check"]), needed_by(["verify.py"])
    agents = needed_by(["demo.py", "--agent"])

    newest, oldest = (f"open-webui-{version}" for version in (NEWEST, OLDEST))
    hosts = [newest, oldest, "pipelines"]
    assert [found.directory.name for found in demo] == [".venv", newest]
    assert needed_by(["screenshots.py"]) == demo
    assert [found.directory.name for found in agents] == [".venv", newest, "pipelines"]
    assert [found.directory.name for found in tests] == [".venv", *hosts]
    assert all(found.requirements.exists() for found in tests)


def test_without_a_python_there_is_one_clear_sentence(tmp_path: Path) -> None:
    """The entry script names the versions it looks for."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/dirname").symlink_to(shutil.which("dirname") or "")
    (tmp_path / "scripts").mkdir()
    start = shutil.copy(SCRIPTS / "start.sh", tmp_path / "scripts")

    ended = subprocess.run(
        [shutil.which("bash") or "", start, "demo.py"],
        env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("This needs Python 3.11 or 3.12, and none was found")


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_moves_on_a_terminal() -> None:
    """One line is written over, and its last state stays."""
    terminal = Terminal()
    progress = Progress("pip", terminal)

    progress.show("1 of 2")
    progress.end("2 packages")

    shown = [line.strip() for line in terminal.getvalue().split("\r") if line]
    assert shown == ["pip: 1 of 2  [0 s]", "pip: 2 packages  [0 s]"]


def test_progress_is_quiet_in_a_file() -> None:
    """A log gets the last line, not every tick."""
    log = io.StringIO()
    progress = Progress("boot", log)

    for _ in range(100):
        progress.show()
    progress.end()

    assert log.getvalue() == "boot  [0 s]\n"


@pytest.mark.asyncio
async def test_missing_databases_fail_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are not skipped: nobody would see that nothing was tested."""
    monkeypatch.setenv("PATH", "")

    with pytest.raises(DatabaseMissingError, match="apt-get install postgresql redis"):
        async with lent_redis():
            pass
