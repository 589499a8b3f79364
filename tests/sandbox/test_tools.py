"""What the tools give back when no one attacks them."""

import asyncio
import json
import os
import shutil
import tempfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from sandbox.backend import MEBIBYTE, SharedLimits
from sandbox.tools import OfferedFile, SandboxTools
from sandbox.workspaces import Workspace, WorkspaceKey, WorkspacePool
from sandboxes.owned import OwnedTools
from sandboxes.pretended import Pretended, confined_answering
from sandboxes.real import TIGHT, Chat, sandboxed
from strictness.forms import argument_error, strict_schema
from upstream.server import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_output_status_and_result_are_told(chat: Chat) -> None:
    """Each stream under its own name; a process that dies of a signal leaves its own.

    Threads, a pool and what runs at exit are waited for, as for any program.
    """
    streams = "import sys\nprint('out 東京')\nprint('err', file=sys.stderr)"
    crash = "import ctypes\nprint('before')\nctypes.string_at(0)"
    last = """
import atexit, multiprocessing, threading
atexit.register(print, "last")
with multiprocessing.get_context("fork").Pool(2) as pool:
    positive = pool.map(abs, [-1, -2])
threading.Thread(target=lambda: print("thread")).start()
positive
"""
    written = await chat.run(streams)

    told: dict[str, Any] = {
        "stdout": "out 東京\n",
        "stderr": "err\n",
        "result": None,
        "files": [],
    }
    assert written.told == told
    assert not written.answer.failed
    crashed = await chat.run(crash)
    assert crashed.answer.failed
    assert crashed.told["stdout"] == "before\n"
    assert crashed.told["note"] == "The code was ended by signal 11."
    ended = await chat.run(last)
    assert ended.result == [1, 2]
    assert ended.told["stdout"].split() == ["thread", "last"]


async def test_result_is_the_last_expression(chat: Chat) -> None:
    """As JSON where it has JSON, else as its repr; it is no way around a limit."""
    results = {
        "x = {'a': [1, None, 'é']}\nx": {"a": [1, None, "é"]},
        "(1, 2)": [1, 2],
        "{1} | {2}": "{1, 2}",
        "float('nan')": "nan",
        "'a text'": "a text",
        "x = 5": None,
        "": None,
        "if True:\n    7": None,
        "__name__": "__main__",
        "class A: pass\nimport pickle\npickle.loads(pickle.dumps(A())).__module__": (
            "__main__"
        ),
    }
    for code, result in results.items():
        assert (await chat.run(code)).result == result, code

    cut = (await chat.run("list(range(100_000))")).result
    assert cut.startswith("[0, 1, 2, ")
    assert cut.endswith("...")
    assert len(cut) < TIGHT.output


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def f():\n    1 / 0\nf()", "line 2, in f\n    1 / 0\n"),
        ("def f(:", "SyntaxError"),
        ("x = 1\nmissing", "NameError: name 'missing' is not defined"),
        ("class A:\n  def __repr__(self): raise OSError('no')\nA()", "OSError: no"),
        ("class A:\n  def __repr__(self): return 1 / 0\nA()", "line 2, in __repr__"),
        ("10 ** 5000", "ValueError: Exceeds the limit"),
        ("input()", "EOFError"),
        ("import sys\nsys.exit('that was it')", "that was it"),
        ("import numpy", "to the folder `wheels` of SANDBOX_OPTIONS"),
        (
            f"with open('a', 'wb') as a:\n    a.write(bytes({2 * TIGHT.file}))",
            "administrator raise `disk_mb` in SANDBOX_OPTIONS",
        ),
    ],
)
async def test_failure_is_told_as_python_tells_it(
    chat: Chat, code: str, words: str
) -> None:
    """With the lines of the code, without ours; with the setting that would help."""
    ran = await chat.run(code)

    assert ran.answer.failed
    assert words in ran.told["stderr"]
    assert "note" not in ran.told
    assert "execute" not in ran.told["stderr"]
    assert '"<string>"' not in ran.told["stderr"]


async def test_written_files_come_back(chat: Chat) -> None:
    """New ones and changed ones, also one whose size and time are as before."""
    await chat.run("open('a.txt', 'w').write('old'); open('b.txt', 'w').write('b')")

    ran = await chat.run(
        "import os\nos.mkdir('plots')\nat = os.stat('a.txt').st_mtime_ns\n"
        "open('a.txt', 'w').write('new')\nos.utime('a.txt', ns=(at, at))\n"
        "open('plots/a.png', 'wb').write(b'PNG')\n_ = open('b.csv', 'w').write('1,2')"
    )

    files = [(f.name, f.media_type, f.path.read_bytes()) for f in ran.answer.files]
    assert files == [
        ("a.txt", "text/plain", b"new"),
        ("b.csv", "text/csv", b"1,2"),
        ("a.png", "image/png", b"PNG"),
    ]
    assert ran.told["files"] == ["a.txt", "b.csv", "plots/a.png"]


@dataclass
class Copying:
    """What was seen of copies of files, which wait until they may go on."""

    workspace: Workspace | None = None
    threads: list[Thread] = field(default_factory=list)
    had_spool: list[bool] = field(default_factory=list)
    may_go_on: Event = field(default_factory=Event)


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> Copying:
    seen = Copying()
    export_files = Workspace.export_files

    def watched(workspace: Workspace, spool: Path, *given: Any) -> Any:
        seen.workspace = workspace
        seen.threads.append(current_thread())
        seen.may_go_on.wait(10)
        seen.had_spool.append(spool.exists())
        return export_files(workspace, spool, *given)

    monkeypatch.setattr(Workspace, "export_files", watched)
    return seen


def writing_tools() -> SandboxTools:
    answer = {"stdout": "", "stderr": "", "result": "", "status": 0}
    changed = confined_answering({**answer, "changed": [["a.txt", 0, 4]]}, b"[]\nrain")
    return OwnedTools(make_backends=lambda _: [Pretended(changed)])


async def test_cancelled_call_waits_for_the_thread_that_copies(
    copying: Copying,
) -> None:
    """What it reads is removed afterward; the workspace is as it was."""
    tools = writing_tools()
    task = asyncio.create_task(Chat(tools).run(""))
    await until(lambda: bool(copying.threads))

    task.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    copying.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await tools.close()

    assert copying.had_spool == [True]
    assert copying.workspace
    assert copying.workspace.archive is None


async def test_server_goes_on_while_files_are_copied(copying: Copying) -> None:
    """They may have 64 MB: no other answer waits for them."""
    tools = writing_tools()
    copying.may_go_on.set()

    result = await Chat(tools).run("")
    [file] = result.answer.files
    content = file.path.read_bytes()
    await tools.close()

    assert content == b"rain"
    assert current_thread() not in copying.threads


async def test_only_some_files_are_handed_out(chat: Chat) -> None:
    ran = await chat.run("for n in range(30): open(f'{n:02}', 'w').write('x')")

    assert len(ran.answer.files) == TIGHT.returned_files
    assert ran.told["note"] == "20 more files are not shown."


async def test_caches_are_no_results(chat: Chat) -> None:
    """Nor do they count among the files that are not shown; they stay for later runs."""
    folders = [".cache/pip", ".config/matplotlib", "src/__pycache__", "results"]

    ran = await chat.run(
        f"import os\nfor folder in {folders}:\n    os.makedirs(folder)\n"
        "    for n in range(9): open(f'{folder}/{n}', 'w').write('x')\n"
        "_ = open('module.pyc', 'w').write('x')"
    )

    assert [file.name for file in ran.answer.files] == [str(n) for n in range(9)]
    assert "note" not in ran.told
    kept = await chat.file("list", path=".config/matplotlib")
    assert '"0"' in kept.text


async def test_workspace_that_outgrows_new_limits_is_emptied(chat: Chat) -> None:
    workspaces = WorkspacePool()
    small = TIGHT._replace(disk=MEBIBYTE, file=MEBIBYTE)
    before = replace(chat, tools=SandboxTools(workspaces, TIGHT))
    after = replace(chat, tools=SandboxTools(workspaces, small))
    attached = [offer("f-1", "a.txt", b"rain", b"rain")]
    assert await before.tools.receive(chat.key, attached) == []
    await before.run("_ = open('large', 'wb').write(bytes(3 << 20))")

    emptied = (await after.run("1")).answer.text

    assert "an administrator has lowered its limits. It is empty now." in emptied
    assert await after.tools.receive(chat.key, attached) == []
    assert (await after.run("open('a.txt').read()")).result == "rain"
    await before.tools.close()
    await after.tools.close()
    await workspaces.close()


async def test_workspace_lasts_but_nothing_else(chat: Chat) -> None:
    """Files with their folders, links and rights are there again; variables are not."""
    await chat.run(
        "import os\nos.makedirs('a/b')\nopen('a/b/run', 'w').write('x')\n"
        "os.chmod('a/b/run', 0o700)\nos.symlink('a/b/run', 'link')\n"
        "open('/tmp/gone', 'w')\nx = 1"
    )

    ran = await chat.run(
        "import os\n[open('link').read(), os.access('a/b/run', os.X_OK),"
        " os.listdir('/tmp'), 'x' in globals()]"
    )

    assert ran.result == ["x", True, [], False]


async def test_chats_are_apart(chat: Chat) -> None:
    other = Chat(chat.tools, chat.name + " of somebody else")
    nobody = Chat(chat.tools, "")
    await chat.run("open('mine', 'w')")
    await nobody.run("open('lost', 'w')")

    seen = [
        (await lonely.run("import os\nos.listdir()")).result
        for lonely in (other, nobody)
    ]

    assert seen == [[], []]


async def test_calls_of_one_chat_take_turns(chat: Chat) -> None:
    await asyncio.gather(*(chat.run(f"open('{n}', 'w')") for n in range(4)))

    assert sorted((await chat.run("import os\nos.listdir()")).result) == list("0123")


async def test_lost_folder_is_no_exception() -> None:
    """Somebody may tidy up the folder for temporary files, or fill the disk."""
    async with sandboxed() as chat:
        ran = await chat.run("open('a', 'w').write('x')")
        shutil.rmtree(ran.answer.files[0].path.parent)

        lost = await chat.run("1")

        assert lost.answer.text == "Error: The run ended without an answer."
        assert "No such file or directory" in chat.log[-1]
        assert await replace(chat, name="another chat").still_works()


async def test_file_tools_work_together(chat: Chat) -> None:
    answers = [
        await chat.file("write", path="texts/a.txt", content="Zürich"),
        await chat.file("mkdir", path="/work/empty/inner"),
        await chat.file("list", path="."),
        await chat.file("read", path="texts/a.txt"),
        await chat.file("list", path="texts"),
        await chat.file("remove", path="empty"),
        await chat.file("remove", path="texts/a.txt"),
        await chat.file("list", path="texts"),
    ]

    assert [answer.text for answer in answers] == [
        "Wrote 7 bytes.",
        "The folder is there.",
        '[{"name": "empty", "kind": "folder"}, {"name": "texts", "kind": "folder"}]',
        "Zürich",
        '[{"name": "a.txt", "kind": "file", "size": 7}]',
        "Removed.",
        "Removed.",
        "[]",
    ]
    assert not any(answer.failed for answer in answers)


async def test_binary_file_is_returned_as_a_file(chat: Chat) -> None:
    await chat.run(
        "import os\nos.mkdir('.cache')\nopen('.cache/a.png', 'wb').write(b'\\0')\n"
        "open('a.png', 'wb').write(bytes(range(256)))"
    )

    shown = await chat.file("read", path="a.png")
    cached = await chat.file("read", path=".cache/a.png")

    assert shown.text == "It is not text; the user gets the file of 256 bytes."
    assert [file.path.read_bytes() for file in shown.files] == [bytes(range(256))]
    assert cached.files == ()
    assert cached.text == (
        "It is not text, and files of a cache are not given to the user."
    )


async def test_long_text_is_read_in_part(chat: Chat) -> None:
    await chat.run(
        "open('long', 'w').write('é' * 6000 + 'x')\n"
        "open('fits', 'w').write('é' * 5000)\nopen('longer', 'w').write('x' * 10_001)"
    )

    texts = [
        (await chat.file("read", path=path)).text for path in ("long", "fits", "longer")
    ]

    assert texts == [
        "é" * 5000 + "\n\n[The file continues: it has 12001 bytes.]",
        "é" * 5000,
        "x" * 10_000 + "\n\n[The file continues: it has 10001 bytes.]",
    ]


async def test_passage_is_replaced_wherever_it_is(chat: Chat) -> None:
    """At both ends as well, and although a part of it comes twice.

    A file keeps the line ends of Windows, which a model does not see.
    """
    await chat.file("write", path="a", content="one two two three")
    await chat.file("write", path="b", content="one\r\ntwo\r\nsix")

    for old, new in (("one ", "1 "), ("two two", "2 2"), (" three", "")):
        answer = await chat.file("edit", path="a", old=old, new=new)
        assert not answer.failed, answer.text
    edited = await chat.file("edit", path="b", old="one\ntwo", new="1\n2\n3")

    assert (await chat.file("read", path="a")).text == "1 2 2"
    assert edited.text == "Replaced the passage. The file has 12 bytes now."
    assert (await chat.file("read", path="b")).text == "1\r\n2\r\n3\r\nsix"


@pytest.mark.parametrize(
    ("old", "reason"),
    [("b", "does not occur"), ("aa", "more than once"), ("", "is empty")],
)
async def test_edit_requires_exactly_one_match(
    chat: Chat, old: str, reason: str
) -> None:
    await chat.file("write", path="a", content="aaa")

    answer = await chat.file("edit", path="a", old=old, new="c")

    assert answer.text.startswith("Error: ")
    assert reason in answer.text
    assert (await chat.file("read", path="a")).text == "aaa"


async def test_tools_are_described(chat: Chat) -> None:
    specs = await chat.tools.specs()

    assert [spec["name"] for spec in specs] == [
        "python_execute",
        "sandbox_fs_list",
        "sandbox_fs_read",
        "sandbox_fs_write",
        "sandbox_fs_mkdir",
        "sandbox_fs_remove",
    ]
    for spec in specs:
        assert strict_schema(spec["parameters"]) is not None
        assert spec["description"]
    assert specs[0]["parameters"]["properties"].keys() == {"code"}
    assert argument_error({"code": "1"}, specs[0]["parameters"]) is None


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("sandbox_fs_read", {"path": "absent"}, "No such file or directory."),
        ("sandbox_fs_list", {"path": "absent"}, "No such file or directory."),
        ("sandbox_fs_remove", {"path": "absent"}, "No such file or directory."),
        (
            "sandbox_fs_remove",
            {"path": "."},
            "The workspace itself stays; name what is in it.",
        ),
        ("sandbox_fs_read", {"path": "."}, "Is a directory."),
        ("sandbox_fs_list", {"path": "a\0b"}, "A path has no zero bytes."),
        ("sandbox_fs_list", {"path": "\udcff\ud800"}, "That is no path."),
        ("python_execute", {}, "python_execute needs code, a text."),
        ("sandbox_fs_write", {"path": "a"}, "sandbox_fs_write needs content, a text."),
        ("sandbox_fs_chmod", {}, "There is no tool named sandbox_fs_chmod."),
    ],
)
async def test_wrong_arguments_are_an_error_message(
    chat: Chat, name: str, arguments: dict[str, Any], problem: str
) -> None:
    """A message, never an exception: whoever calls need not have checked them."""
    answer = await chat.tools.call(chat.key, name, arguments)

    assert (answer.text, answer.failed) == (f"Error: {problem}", True)


@pytest.mark.parametrize(
    ("command", "words"),
    [("echo a\0b", "embedded null byte"), ("echo \ud800", "surrogates not allowed")],
)
async def test_command_that_cannot_be_started_fails(
    chat: Chat, command: str, words: str
) -> None:
    arguments = {"command": command}
    answer = await chat.tools.call(chat.key, "shell_execute", arguments)

    told = json.loads(answer.text)
    assert (told["status"], told["stdout"]) == ("failed", "")
    assert words in told["stderr"]
    assert answer.failed


async def test_module_that_was_written_can_be_imported(chat: Chat) -> None:
    """In the next run, as in a project; nothing but it is among the files."""
    await chat.file("write", path="shop/prices.py", content="TEA = 3\n")
    wrote = await chat.run("_ = open('stock.py', 'w').write('AMOUNT = 14')")
    ran = await chat.run(
        "import stock\nfrom shop.prices import TEA\nstock.AMOUNT * TEA"
    )

    assert wrote.told["files"] == ["stock.py"]
    assert ran.result == 42
    assert ran.told["files"] == []


@pytest.fixture
def wheels() -> Iterator[Path]:
    """A folder with a wheel, which only the server has to be able to read."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own ones are private
        folder = Path(name)
        with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny.py", "ANSWER = 42\n")
            wheel.writestr("tiny-1.0.data/purelib/more.py", "ANSWER = 43\n")
            wheel.writestr(
                "tiny-1.0.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
            )
        yield folder


async def test_packages_are_installed_once_for_all_chats(wheels: Path) -> None:
    """No run can write them; no chat has less room for them, whatever the umask."""
    before = os.umask(0o077)
    async with sandboxed(wheels=str(wheels)) as chat:
        specs = await chat.tools.specs()
        os.umask(before)
        first = await chat.run("import more, tiny\n[tiny.ANSWER, more.ANSWER]")
        (wheels / "tiny-1.0-py3-none-any.whl").unlink()
        others = Chat(chat.tools, "another chat", chat.log)
        spoilt = await others.run("open('/packages/tiny.py', 'w')")
        again = await others.run("import tiny\ntiny.ANSWER")

    assert "also the packages tiny." in specs[0]["description"]
    assert (first.result, again.result) == ([42, 43], 42)
    assert "Read-only file system" in spoilt.told["stderr"]
    assert chat.log == []


async def test_packages_go_with_their_tools(wheels: Path) -> None:
    installed: list[str] = []

    def make_backends(packages: str) -> list[Pretended]:
        installed.append(packages)
        return []

    lent = WorkspacePool()
    tools = SandboxTools(lent, wheels=str(wheels), make_backends=make_backends)
    assert await tools.specs() == []
    [packages] = map(Path, installed)
    assert (packages / "tiny.py").exists()

    await tools.close()

    assert not packages.exists()
    async with lent.acquire(WorkspaceKey("ada", "chat")):
        pass
    await lent.close()


@pytest.mark.parametrize(
    ("folder", "why"),
    [(".", "File is not a zip file"), ("missing", "No such file or directory")],
)
async def test_wheel_that_cannot_be_installed_is_logged(
    wheels: Path, folder: str, why: str
) -> None:
    (wheels / "broken-1.0-py3-none-any.whl").write_text("no archive")
    async with sandboxed(wheels=str(wheels / folder)) as chat:
        assert await chat.still_works()

    [line] = chat.log
    assert chat.tools.problems == [line]
    assert line.startswith("The wheels of SANDBOX_OPTIONS cannot be installed: ")
    assert why in line


def offer(file_id: str, name: str, *contents: bytes | str) -> OfferedFile:
    """A file that the user attached; each reading of it gives the next content."""
    left = iter(contents)

    async def read() -> bytes | str:
        return next(left)

    return OfferedFile(file_id, name, read)


async def test_attached_file_is_there_once(chat: Chat) -> None:
    """Byte for byte, under a name without a folder; it is read once."""
    offered = [offer("f-1", "../a/da\nta.bin", bytes(range(256)))]

    [note] = await chat.tools.receive(chat.key, offered)

    assert note.endswith(" is named da_ta.bin in the workspace.")
    assert await chat.tools.receive(chat.key, offered) == []
    ran = await chat.run("open('da_ta.bin', 'rb').read() == bytes(range(256))")
    assert ran.result is True


async def test_files_of_a_user_do_not_all_wait_in_memory() -> None:
    """Each chat has its own workspace, and a user as many chats as they like."""
    held = most = 0

    async def read() -> bytes:
        nonlocal held, most
        held += 1
        most = max(most, held)
        await asyncio.sleep(0)
        return b"rain"

    async with sandboxed(shared=SharedLimits(runs=1, runs_per_user=2)) as chat:

        async def receive(number: int) -> None:
            nonlocal held
            key = WorkspaceKey("ada", f"chat {number}")
            assert await chat.tools.receive(key, [OfferedFile("f", "a", read)]) == []
            held -= 1

        await asyncio.gather(*map(receive, range(6)))

    assert (held, most) == (0, 2)


async def test_calls_of_a_user_do_not_all_borrow_a_workspace() -> None:
    """Each call without a chat has a new one, and each call looks at all of them."""
    async with sandboxed(shared=SharedLimits(runs=1, workspaces_per_user=2)) as chat:
        key = WorkspaceKey("ada", "")
        calls = [
            asyncio.create_task(chat.tools.call(key, "sandbox_fs_list", {"path": "."}))
            for _ in range(9)
        ]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        pool = chat.tools._workspaces
        assert isinstance(pool, WorkspacePool)
        borrowed = len(pool._workspaces)
        await asyncio.gather(*calls)

    assert borrowed <= 4


async def test_attached_files_of_one_name_are_numbered(chat: Chat) -> None:
    """None replaces another, nor what the code wrote; the model is told their names.

    As much of a name is kept as a folder takes, in bytes: an emoji has four.
    """
    await chat.file("write", path="data.tar.gz", content="the code's")
    await chat.run("import os; os.symlink('/nowhere', 'link')")
    names = ["a.csv", "b/a.csv", "a.csv", ".env", ".env", "data.tar.gz", "a (2).csv"]
    names += ["link", f"{'long' * 20}.csv", "\U0001f600" * 80]
    offered = [offer(f"f-{n}", name, name.encode()) for n, name in enumerate(names)]

    notes = await chat.tools.receive(chat.key, offered)
    again = await chat.tools.receive(chat.key, offered)
    ran = await chat.run(
        "import os; os.remove('link')\n{n: open(n).read() for n in os.listdir()}"
    )

    assert ran.result == {
        "link (2)": "link",
        "a.csv": "a.csv",
        "a (2).csv": "b/a.csv",
        "a (3).csv": "a.csv",
        ".env": ".env",
        ".env (2)": ".env",
        "data.tar.gz": "the code's",
        "data.tar (2).gz": "data.tar.gz",
        "a (2) (2).csv": "a (2).csv",
        f"{'long' * 19}.csv": names[-2],
        names[-1][-60:]: names[-1],
    }
    assert notes == [
        f"The attached {name} is named {given} in the workspace."
        for name, given in (
            ("b/a.csv", "a (2).csv"),
            ("a.csv", "a (3).csv"),
            (".env", ".env (2)"),
            ("data.tar.gz", "data.tar (2).gz"),
            ("a (2).csv", "a (2) (2).csv"),
            ("link", "link (2)"),
            (names[-2], f"{'long' * 19}.csv"),
            (names[-1], names[-1][-60:]),
        )
    ]
    assert again == []


@pytest.mark.parametrize("user", ["", "ada"])
async def test_attached_file_of_a_call_without_chat_is_told(
    shared_sandbox: Chat, user: str
) -> None:
    """Its workspace would be gone before the call; the file is not even read."""
    key = WorkspaceKey(user, "")

    assert await shared_sandbox.tools.receive(key, [offer("f-1", "a.txt")]) == [
        "Attached files are not in the workspace, because this call belongs to no chat."
    ]


async def test_attached_file_without_a_sandbox_is_told() -> None:
    """What stops the work on all of them is one line."""
    tools = OwnedTools(make_backends=lambda _: [])
    offered = [offer(f"f-{n}", f"{n}.txt") for n in range(2)]

    assert await tools.receive(WorkspaceKey("ada", "chat"), offered) == [
        "Attached files are not in the workspace. Error: There is no sandbox on this "
        "server."
    ]
    assert await tools.receive(WorkspaceKey("ada", "chat"), []) == []
    await tools.close()


async def test_attached_file_may_be_as_large_as_a_workspace() -> None:
    """Neither the server nor a run with little memory holds it more than once."""
    limits = TIGHT._replace(
        memory=64 * MEBIBYTE, disk=24 * MEBIBYTE, file=24 * MEBIBYTE
    )
    content = bytes(limits.file)
    async with sandboxed(limits) as chat:
        tracemalloc.start()
        notes = await chat.tools.receive(chat.key, [offer("f-1", "a", content)])
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        ran = await chat.run("import os\nos.path.getsize('a')")

        assert (notes, ran.result) == ([], limits.file)
        assert peak_bytes < 8 * MEBIBYTE


async def test_attached_file_that_finds_no_room_is_told_each_time(chat: Chat) -> None:
    full = f"for n in range({TIGHT.files}): open(f'{{n}}', 'w')"
    assert not (await chat.run(full)).answer.failed
    rain = offer("f-1", "a.txt", b"rain", b"rain")
    large = offer("f-2", "large.txt", bytes(TIGHT.file + 1))

    notes = [await chat.tools.receive(chat.key, [file]) for file in (rain, rain, large)]

    reason = (
        "a.txt is not in the workspace. Nothing in the workspace was kept, because it "
        "holds more than 50 files and folders: it is as it was before."
    )
    too_large = "large.txt is not in the workspace. File too large."
    assert notes == [[reason], [reason], [too_large]]
    assert (await chat.run("import os\nlen(os.listdir())")).result == TIGHT.files


async def test_attached_file_that_cannot_be_read_is_asked_for_again(chat: Chat) -> None:
    offered = [offer("f-1", "a.txt", "It is gone.", "It is gone.", b"rain")]
    missing = [await chat.tools.receive(chat.key, offered) for _ in range(3)]

    assert missing == [["a.txt is not in the workspace. It is gone."]] * 2 + [[]]
    assert (await chat.run("open('a.txt').read()")).result == "rain"


@pytest.mark.parametrize("more", [0, 1])
async def test_only_the_last_attached_files_count(chat: Chat, more: int) -> None:
    names = [f"{number}.txt" for number in range(50 + more)]
    notes = await chat.tools.receive(
        chat.key, [offer(name, name, "It is gone.") for name in names]
    )

    last = [f"{name} is not in the workspace. It is gone." for name in names[more:]]
    too_many = "Only the last 50 of 51 attached files are in the workspace."
    assert notes == [too_many] * more + last


@pytest.mark.skipif(
    not Path("/usr/share/zoneinfo/Europe/Zurich").exists(), reason="no zones here"
)
async def test_code_knows_the_zones_of_the_server(chat: Chat) -> None:
    ran = await chat.run(
        "from datetime import datetime\nfrom zoneinfo import ZoneInfo\n"
        "datetime(2026, 7, 1, tzinfo=ZoneInfo('Europe/Zurich')).isoformat()"
    )

    assert ran.result == "2026-07-01T00:00:00+02:00"


async def test_stopped_call_leaves_the_file_to_the_next(chat: Chat) -> None:
    """A file counts as received once it is in the workspace."""
    reading = asyncio.Event()

    async def read() -> bytes:
        reading.set()
        await asyncio.sleep(0)  # the call is cancelled here, or in its run
        return b"rain"

    offered = [OfferedFile("f-1", "a.txt", read)]
    task = asyncio.create_task(chat.tools.receive(chat.key, offered))
    await reading.wait()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await chat.tools.receive(chat.key, offered) == []
    assert (await chat.run("open('a.txt').read()")).result == "rain"
