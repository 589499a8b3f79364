"""Traps that code lays for the file tools: they work inside, so there is no prey."""

import pytest
import pytest_asyncio

from sandboxes.real import CANARY, Chat

pytestmark = pytest.mark.asyncio(loop_scope="session")

OUTSIDE = "is not in the workspace."
TRAPS = """
import os
os.symlink("/etc", "folder")
os.symlink("/etc/passwd", "passwd")
os.symlink("/proc/1/environ", "environ")
os.symlink("/dev/zero", "zero")
os.symlink("/", "root")
os.symlink("loop", "loop")
os.symlink("../tmp/out", "out")
os.mkdir("real")
open("real/file", "w").write("kept")
os.symlink("real", "alias")
"""


@pytest_asyncio.fixture(loop_scope="session")
async def trapped(chat: Chat) -> Chat:
    assert not (await chat.run(TRAPS)).answer.failed
    return chat


PATHS = [
    "passwd",
    "folder/passwd",
    "environ",
    "zero",
    "root/etc/passwd",
    "out",
    "../etc/passwd",
    "real/../../etc/passwd",
    "/etc/passwd",
    "/work/../etc",
    "/proc/self/environ",
    "/work2/x",
]


@pytest.mark.parametrize(
    ("operation", "paths"),
    [
        ("read", PATHS),
        ("list", ["folder", "../etc", "/etc"]),
        ("write", ["passwd", "out", "/etc/passwd"]),
        ("mkdir", ["folder/new", "../etc/new", "/etc/new"]),
        ("remove", ["folder/passwd"]),
    ],
)
async def test_nothing_outside_is_reached(
    trapped: Chat, operation: str, paths: list[str]
) -> None:
    """Over links, over `..`, by absolute paths; all tools look up paths alike."""
    more = {"content": CANARY} if operation == "write" else {}

    answers = {path: await trapped.file(operation, path=path, **more) for path in paths}

    for path, answer in answers.items():
        assert answer.failed, path
        assert answer.text.endswith(OUTSIDE), path
        assert answer.files == ()


async def test_links_inside_are_followed_and_removed_alone(trapped: Chat) -> None:
    """They are of use to the code; one to itself is an error, and no endless search.

    A link is removed without its target, also as part of a folder full of links.
    """
    await trapped.run(
        "import os\nos.makedirs('full/inner')\nos.symlink('/work/real', 'full/inner/l')"
    )

    assert (await trapped.file("read", path="loop/x")).failed
    assert (await trapped.file("read", path="alias/file")).text == "kept"
    for path in ("alias", "root", "full"):
        assert (await trapped.file("remove", path=path)).text == "Removed."
    assert (await trapped.file("read", path="real/file")).text == "kept"


async def test_pipe_of_the_code_does_not_block(chat: Chat) -> None:
    ran = await chat.run(
        "import os, stat\nos.mkfifo('pipe')\nos.mknod('socket', 0o600 | stat.S_IFSOCK)\n1"
    )

    assert ran.told["note"].startswith("Neither files nor folders, and not kept: [")
    assert '"pipe"' in ran.told["note"]
    assert '"socket"' in ran.told["note"]
    assert (await chat.file("read", path="pipe")).failed


@pytest.mark.parametrize(
    "code",
    [
        "open(b'half-\\xff.txt', 'w').write('x'); 1",
        "import os; os.mkfifo(b'half-\\xff.txt'); 1",
        "'half-\\udcff.txt'",
        "{'half-\\udcff.txt': 1}",
        "print('half-', end=''); import os; os.write(1, b'\\xff.txt'); 1",
    ],
)
async def test_halves_of_characters_reach_nobody(chat: Chat, code: str) -> None:
    """No server could store or send them, and the answer would be lost."""
    ran = await chat.run(code)
    listed = await chat.file("list", path=".")

    assert "half-" in ran.answer.text.encode().decode()
    assert listed.text.encode()
    assert await chat.still_works()


async def test_files_and_folders_are_not_mixed_up(chat: Chat) -> None:
    await chat.file("write", path="folder/file", content="kept")

    for operation, path in (
        *(("read", "folder"), ("write", "folder"), ("write", "folder/file/below")),
        *(("mkdir", "folder/file"), ("list", "folder/file")),
    ):
        more = {"content": "x"} if operation == "write" else {}
        assert (await chat.file(operation, path=path, **more)).failed
    assert (await chat.file("read", path="folder/file")).text == "kept"


async def test_closed_files_and_folders_are_kept(chat: Chat) -> None:
    await chat.run(
        "import os\nos.mkdir('shut')\nopen('shut/file', 'w').write('kept')\n"
        "os.chmod('shut/file', 0)\nos.chmod('shut', 0)\nos.chmod('.', 0)"
    )

    assert (await chat.file("read", path="shut/file")).text == "kept"


async def test_odd_names_are_only_names(chat: Chat) -> None:
    """A name may look like a path, a line, a command; it is no path of the server."""
    names = ["a\nb.png", "\\..\\x", "-rf", "$(id)", "\x1b[31m", "…", "x" * 255]
    code = (
        f"import os\nfor name in {names!r}: open(name, 'w').write('kept')\n"
        "open(b'\\xff\\xfe', 'w').write('kept')"
    )

    ran = await chat.run(code)

    shown = {file.name for file in ran.answer.files}
    expected = ["a_b.png", "\\..\\x", "-rf", "$(id)", "_[31m", "…", "x" * 200, "__"]
    assert shown == set(expected)
    assert {file.path.read_text() for file in ran.answer.files} == {"kept"}
    assert (await chat.run("import os\nlen(os.listdir())")).result == len(names) + 1
    assert (await chat.file("read", path="a\nb.png")).text == "kept"
