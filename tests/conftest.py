"""The clock of all tests, and how hard the property tests look for a counter-example.

Every run tries the same examples, so that what passed once passes again. To look for
new ones, in any of these tests:

    scripts/test tests/test_fuzz.py --hypothesis-profile=long

A plain `pytest FILE` skips what needs something that is not installed; `scripts/test`
installs it, and skips nothing.
"""

import asyncio
import gc
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from case_names import case_name
from event_loops.idle_clock import (
    IdleClockPolicy,
    forget_threads,
    skip_waiting,
    under_way,
)
from left_processes import adopt_orphans, child_processes, end_new_processes
from left_threads import exit_soon
from marking import begin_test
from needs import MARKS, is_installed

if TYPE_CHECKING:
    from hosts.servers.functions import HostFunctions
    from openai_responses.transport.connections import Connections
    from simulator import Simulator
    from stand_in.host import StandInHost

asyncio.set_event_loop_policy(IdleClockPolicy())
adopt_orphans()
gc.disable()  # until the tests are collected, of which nothing is garbage
# Most of what a test makes goes without the collector. With Python's 700 new objects
# from one look to the next, looking takes a fourteenth of the time of all tests.
gc.set_threshold(20_000)

settings.register_profile(
    "quick",
    max_examples=40,  # always the same ones, so more of them find nothing new
    derandomize=True,
    deadline=None,  # whoever must be quick is measured in CPU time
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=5_000,
    deadline=None,  # whoever must be quick is measured in CPU time
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("quick")


@pytest.hookimpl(trylast=True)  # the option that names a profile has been read by then
def pytest_configure() -> None:
    """Let a quick test try the same examples whatever else is loaded.

    Hypothesis also tries what is written in the sources that are loaded. So a file of
    tests alone would try others than among all; and each worker would read them all.
    """
    if settings.get_current_profile_name() == "quick":
        providers._get_local_constants = Constants


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let temporary files of the tests, workers and servers lie in one folder.

    It is removed with the run: workers and servers are ended, and remove nothing then.
    """
    if hasattr(session.config, "workerinput"):
        return
    # What pytest keeps of its last three runs stays.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    scratch = tempfile.mkdtemp(prefix="tests-")
    os.chmod(scratch, 0o755)  # some tests run servers of other users
    session.config.stash[_SCRATCH] = Path(scratch)
    os.environ["TMPDIR"] = tempfile.tempdir = scratch


ALONE = ("openai_responses", "owui_manifold")
"""Directories of tests that talk to nobody outside their own process."""
_SERVERS_MARKS = MARKS.keys() - {"sandbox"}
_KNOWN_WORK = pytest.StashKey[Set[object]]()
"""The tasks and timers of the loop then."""
_SESSION = pytest.StashKey[pytest.Session]()
_SCRATCH = pytest.StashKey[Path]()
_KNOWN_PROCESSES = pytest.StashKey[Set[int]]()
"""The children of this process when a test begins."""
LONG = (
    "hosts",
    "sandbox",
    "test_release.py",
    "test_soak_of_faults.py",
    "test_regular_expressions.py",
    "test_bundle_loads.py",
    "test_fuzz.py",
)
SKIPS_NOTHING = "TESTS_SKIP_NOTHING"
"""Set by scripts/verify.py: a failed installation must not hide tests."""
FIXTURES = {
    "host_functions": "host",
    "sandbox_tool": "sandbox",
    "shared_sandbox": "sandbox",
}
"""The marks of the tests that use a fixture."""
STARTS_SERVER = re.compile(r"\b(OpenWebUI|PipelinesServer|shared_servers)\(")
USES_PAGE = "from hosts.browser"
"""Both are in the text of a file of tests/hosts."""
SECOND_HALF = "test_o"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what says itself what it needs; begin with the files that take long.

    Workers take whole files in this order, so what is left for the end is short.
    """
    for item in items:
        for mark in _implied_marks(item):
            item.add_marker(mark)
        # Whoever is the first to need Open WebUI waits for its start.
        starts_host = _place(item.path)[0] == "hosts" or item.get_closest_marker("host")
        if starts_host and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(180))
        missing = _missing_need(item)
        if missing:
            reason = f"needs {missing}, which scripts/test installs"
            item.add_marker(pytest.mark.skip(reason=reason))
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: _rank(item.path, counts[item.path]))


@cache
def _place(file: Path) -> tuple[str, ...]:
    """Return the directories and the name of a file of tests, of which many ask."""
    return file.relative_to(Path(__file__).parent).parts


def _rank(file: Path, count: int) -> tuple[int, bool, int]:
    """Files of these directories take tens of seconds each, all others few.

    Of the hosts, those that share a server take minutes together; of the rest, the
    longest have the most tests. With one of these at the end, a worker would wait for it.
    """
    place = _place(file)
    if place[0] not in LONG:
        return len(LONG), False, 0
    name = "/".join(("tests", *place))
    starts_server = place[0] == "hosts" and _file_or_group(name) == name
    return LONG.index(place[0]), starts_server, -count if starts_server else 0


def _implied_marks(item: pytest.Item) -> Iterator[str]:
    used = getattr(item, "fixturenames", ())
    yield from (mark for fixture, mark in FIXTURES.items() if fixture in used)
    if any("sandbox" in part for part in _place(item.path)):
        yield "sandbox"


def _missing_need(item: pytest.Item) -> str:
    """Return the name of something that a test needs and that is not installed."""
    if SKIPS_NOTHING in os.environ:
        return ""
    for mark in item.iter_markers():
        for need in MARKS.get(mark.name, ()):
            if not is_installed(need):
                return need.name
    return ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker whole files, and one all those that share a server or the page."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = lambda name: _file_or_group(name.partition("::")[0])
    return scheduling


@cache
def _file_or_group(file: str) -> str:
    """Return the group of a file whose tests share what each worker would start.

    Workers collect the tests, so of the fixtures nothing is known here. All tests of one
    server take longer than those of the page: two halves of the alphabet have one each.
    """
    directory, _, name = file.rpartition("/")
    if directory != "tests/hosts":
        return file
    text = Path(__file__).with_name("hosts").joinpath(name).read_text("utf-8")
    if STARTS_SERVER.search(text):
        return file
    if USES_PAGE in text:
        return "page"
    return "host" if name < SECOND_HALF else "host again"


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name the rows of tables that pytest would number."""
    return case_name(val)


def pytest_collection_finish() -> None:
    """Collect garbage again, but do not look for it among what was imported."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what runs before a test."""
    item.stash[_KNOWN_PROCESSES] = child_processes()
    if _is_alone(item):
        item.stash[_KNOWN_WORK] = under_way()
    return (yield)


@pytest.hookimpl(specname="pytest_runtest_protocol")
def pytest_run_in_worker(
    item: pytest.Item, nextitem: pytest.Item | None
) -> bool | None:
    """Let a worker report one thing of a test that passes, instead of five.

    To send and to read the reports of ten thousand tests took ten seconds. pytest looks
    for hooks among the names alone that begin with its own.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """End what a test leaves running, also one that fails; nothing may be left.

    Hosts, which many tests share, are ended with the session.
    """
    try:
        return (yield)
    finally:
        if not any(item.get_closest_marker(mark) for mark in _SERVERS_MARKS):
            left = end_new_processes(item.stash[_KNOWN_PROCESSES])
            assert not left, f"left running: {left}"
        if _is_alone(item):
            work = under_way() - item.stash[_KNOWN_WORK]
            assert not work, f"left under way: {work}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what a failed test of hosts has left."""
    session.config.stash[_SESSION] = session
    if session.config.pluginmanager.has_plugin("dsession"):
        return  # the children of this process are those that run the tests
    end_new_processes(frozenset())


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End also if a test hung in a thread; by now its name has been printed.

    Workers are ended by the process that started them.
    """
    if _SCRATCH in config.stash:
        shutil.rmtree(config.stash[_SCRATCH], ignore_errors=True)
    if _SESSION in config.stash and not hasattr(config, "workerinput"):
        exit_soon(config.stash[_SESSION].exitstatus)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let only those use what is installed whose marks say so."""
    begin_test(mark.name for mark in item.iter_markers())
    forget_threads()
    skip_waiting(_is_alone(item))


def _is_alone(item: pytest.Item) -> bool:
    return _place(item.path)[0] in ALONE


@pytest.fixture(scope="session")
def host_functions(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["HostFunctions"]:
    """The real Open WebUI's functions, in one process for the tests of all rooms."""
    from hosts.servers.functions import run_host_functions

    with run_host_functions(tmp_path_factory.mktemp("open-webui")) as functions:
        yield functions


# What these import takes half a second or more, which many tests can do without.


@pytest_asyncio.fixture
async def connections() -> AsyncIterator["Connections"]:
    """Connections that are closed after the test."""
    from openai_responses.transport.connections import Connections

    opened = Connections()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def sim() -> AsyncIterator["Simulator"]:
    """The API in its strictest profile."""
    from simulator import Simulator

    async with Simulator() as simulator:
        yield simulator


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "StandInHost":
    """Open WebUI's names, in memory."""
    from stand_in.host import StandInHost

    return StandInHost(monkeypatch, tmp_path)
