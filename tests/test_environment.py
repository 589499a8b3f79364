"""Setting up the checkout's environments."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import demo
from debian import Package, install_missing
from environment import Environment
from hosts.servers.databases import DatabaseMissingError, lent_redis
from hosts.servers.offline import BootError
from installer import InstallationError
from marking import UnmarkedTestError, require_mark
from needs import MARKS, needs_of
from setup_environment import NO_KEY

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
    return Checkout(tmp_path)


def test_a_current_environment_is_left_alone(checkout: Checkout) -> None:
    assert not checkout.environment.is_current()

    checkout.make_current()
    checkout.make_current()

    assert checkout.environment.is_current()
    assert checkout.installations == 1


def test_changed_requirements_remake_it(checkout: Checkout) -> None:
    checkout.make_current()
    inner = checkout.environment.directory / "hosts/inner"
    inner.mkdir(parents=True)
    checkout.environment.requirements.write_text("three==3\n")

    checkout.make_current()

    installed = checkout.environment.directory.glob("lib/*/site-packages/*.dist-info")
    assert [path.name for path in installed] == ["three==3.dist-info"]
    assert inner.exists()


def test_environment_on_another_disk_is_remade_there(checkout: Checkout) -> None:
    """Python makes none where the last part of the path is a link."""
    checkout.environment.directory.symlink_to(checkout.calls.with_name("disk"))
    checkout.calls.with_name("disk").mkdir()

    checkout.make_current()

    assert checkout.environment.is_current()
    assert checkout.environment.directory.is_symlink()


def test_a_failed_installation_says_why(checkout: Checkout) -> None:
    """The installer's last words are in the error; the next start begins anew."""
    checkout.use_installer("#!/bin/sh\necho no such package\nexit 1\n")

    with pytest.raises(InstallationError, match="no such package"):
        checkout.make_current()

    assert not checkout.environment.is_current()


@pytest.mark.parametrize(
    "said",
    [
        "WARNING: Retrying ... Failed to establish a new connection: [Errno -3]",
        "error: Failed to fetch ... dns error: failed to lookup address",
        "W: Failed to fetch ... Temporary failure resolving 'deb.debian.org'",
    ],
)
def test_without_a_network_there_is_one_sentence(checkout: Checkout, said: str) -> None:
    """Of ours; fifteen lines of an installer say less."""
    checkout.use_installer(f'#!/bin/sh\necho "{said}"\nexit 1\n')

    with pytest.raises(InstallationError) as failed:
        checkout.make_current()

    sentence = str(failed.value)
    assert sentence.startswith("two packages cannot be downloaded: this machine does")
    assert str(checkout.environment.log) in sentence
    assert "\n" not in sentence


def test_chosen_tests_need_what_their_marks_say(tmp_path: Path) -> None:
    """Neither a host nor a browser is installed for a test that uses none."""
    file = tmp_path / "test_chosen.py"
    file.write_text(
        "import pytest\n\n"
        "@pytest.mark.host\n@pytest.mark.databases\ndef test_server(): ...\n\n"
        "@pytest.mark.browser\ndef test_page(): ...\n"
    )
    chosen = ["-cpyproject.toml", str(file), "-kserver", f"--confcutdir={tmp_path}"]
    needed = [need.name for need in needs_of("verify.py", chosen)]

    assert needed == ["Open WebUI 0.12.4", "postgresql", "redis-server"]


def test_every_need_has_its_mark(pytestconfig: pytest.Config) -> None:
    """A misspelled mark would never be asked for; a test without its own is refused."""
    declared = [line.split(":")[0] for line in pytestconfig.getini("markers")]

    assert set(MARKS) <= set(declared)
    with pytest.raises(UnmarkedTestError, match=r"@pytest\.mark\.host on it"):
        require_mark("host")


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


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs of a machine whose apt-get makes new ones of any name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env", "touch", "chmod"):
        (folder / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(folder))
    made = f"touch {folder}/$name; chmod +x {folder}/$name"
    apt = (
        f'echo "$@" >> {tmp_path}/asked\n'
        f'[ "$1" = update ] || for name in $3 $4 $5; do {made}; done'
    )
    for name, program in {"apt-get": apt, "one": ""}.items():
        (folder / name).write_text(f"#!/bin/sh\n{program}\n")
        (folder / name).chmod(0o755)
    return folder


THREE = [Package(name, (name,)) for name in ("one", "two", "three")]


def test_missing_packages_are_installed_by_root(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)

    for _ in range(2):
        install_missing(THREE, tmp_path / "log")

    assert (tmp_path / "asked").read_text() == "update\ninstall -y two three\n"


@pytest.mark.parametrize("sudo", ["nobody-has-this", "sudo"])
def test_who_may_not_install_is_told_what_to_run(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sudo: str
) -> None:
    """Without sudo, or where it refuses."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (programs / sudo).write_text("#!/bin/sh\nexit 1\n")
    (programs / sudo).chmod(0o755)

    with pytest.raises(InstallationError) as refused:
        install_missing(THREE, tmp_path / "log")

    line = "apt-get update && apt-get install -y two three"
    assert str(refused.value).splitlines()[-1].strip() == line
    assert not (tmp_path / "asked").exists()


@pytest.mark.asyncio
async def test_missing_databases_fail_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are not skipped: no one would see that nothing was tested."""
    monkeypatch.setenv("PATH", "")

    with pytest.raises(DatabaseMissingError, match="apt-get install postgresql redis"):
        async with lent_redis():
            pass


def start(tmp_path: Path, *command: str) -> tuple[int, str, str]:
    """Start a command where nothing is installed; return its end and its words."""
    scripts = shutil.copytree(SCRIPTS, tmp_path / "scripts")
    name, *options = command
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        [shutil.which("bash") or "", str(scripts / name), *options],
        env={"PATH": path, "HOME": str(tmp_path), "NO_UV": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".venv").exists()
    return done.returncode, done.stdout, done.stderr


def test_help_of_the_demo_installs_nothing(tmp_path: Path) -> None:
    status, shown, problems = start(tmp_path, "demo", "--help")

    assert (status, problems) == (0, "")
    assert "--keep-data" in shown
    assert "takes a minute" in shown


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("demo", "--tuor"), "demo: error: unrecognized arguments: --tuor"),
        (("live",), NO_KEY),
    ],
    ids=["wrong option", "no key"],
)
def test_what_cannot_start_downloads_nothing(
    tmp_path: Path, command: tuple[str, ...], words: str
) -> None:
    status, shown, problems = start(tmp_path, *command)

    assert (status, shown) == (2, "")
    assert problems.strip().splitlines()[-1].endswith(words)


def test_two_demos_at_once(tmp_path: Path) -> None:
    with demo.usual_port() as first, demo.usual_port() as second:
        assert first != second
    with (
        demo.only_demo_of(tmp_path),
        pytest.raises(BootError, match="Another demo uses"),
        demo.only_demo_of(tmp_path),
    ):
        pass
