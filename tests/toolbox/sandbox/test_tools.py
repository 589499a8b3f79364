"""What the tools give back when nobody attacks them."""

import asyncio
import ensurepip
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pretended_sandbox import CONFINED, Pretended, answering
from sandbox_sample import TIGHT, Chat, sandboxed
from schema_forms import argument_error, strict_schema
from toolbox.sandbox.tools import SandboxTools

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = [
    "python_execute",
    "sandbox_fs_list",
    "sandbox_fs_read",
    "sandbox_fs_write",
    "sandbox_fs_mkdir",
    "sandbox_fs_remove",
]

# ---------------------------------------------------------------- code


async def test_what_is_printed_comes_back(chat: Chat) -> None:
    """Both streams, apart."""
    code = "import sys\nprint('out 東京')\nprint('err', file=sys.stderr)"

    ran = await chat.run(code)

    assert ran.told == {
        "stdout": "out 東京\n",
        "stderr": "err\n",
        "result": None,
        "files": [],
    }
    assert not ran.answer.failed


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("1 + 1", 2),
        ("x = {'a': [1, None, 'é']}\nx", {"a": [1, None, "é"]}),
        ("(1, 2)", [1, 2]),
        ("{1} | {2}", "{1, 2}"),
        ("float('nan')", "nan"),
        ("'a text'", "a text"),
        ("x = 5", None),
        ("None", None),
        ("", None),
        ("if True:\n    7", None),
        ("__name__", "__main__"),
        ("class A: pass\nimport pickle\ntype(pickle.loads(pickle.dumps(A())))", "A"),
    ],
)
async def test_result_is_the_last_expression(
    chat: Chat, code: str, result: object
) -> None:
    """As JSON where it has JSON, else as its repr."""
    found = (await chat.run(code)).result

    assert found == result or (code.startswith("class") and "__main__.A" in found)


async def test_long_result_is_cut(chat: Chat) -> None:
    """A result is no way around the limit of the output."""
    result = (await chat.run("list(range(100_000))")).result

    assert result.startswith("[0, 1, 2, ")
    assert result.endswith("...")
    assert len(result) < TIGHT.output


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f():\n    1 / 0\nf()", "line 2, in f\n    1 / 0\n"),
        ("def f(:", "SyntaxError"),
        ("x = 1\nmissing", "NameError: name 'missing' is not defined"),
        ("class A:\n  def __repr__(self): raise OSError('no')\nA()", "OSError: no"),
        ("input()", "EOFError"),
        ("import sys\nsys.exit('that was it')", "that was it"),
    ],
)
async def test_failure_is_told_as_python_tells_it(
    chat: Chat, code: str, said: str
) -> None:
    """With the lines of the code, without ours."""
    ran = await chat.run(code)

    assert ran.answer.failed
    assert said in ran.told["stderr"]
    assert "execute" not in ran.told["stderr"]


async def test_crash_is_told(chat: Chat) -> None:
    """A process that dies of a signal leaves what it had printed."""
    ran = await chat.run("import ctypes\nprint('before')\nctypes.string_at(0)")

    assert ran.answer.failed
    assert ran.told["stdout"] == "before\n"
    assert ran.told["note"] == "The code was ended by signal 11."


async def test_threads_and_processes_of_the_code_are_waited_for(chat: Chat) -> None:
    """As any program would: threads, a pool, what runs at exit."""
    code = """
import atexit, multiprocessing, threading
atexit.register(print, "last")
with multiprocessing.get_context("fork").Pool(2) as pool:
    positive = pool.map(abs, [-1, -2])
threading.Thread(target=lambda: print("thread")).start()
positive
"""
    ran = await chat.run(code)

    assert ran.result == [1, 2]
    assert ran.told["stdout"].split() == ["thread", "last"]


# ---------------------------------------------------------------- files


async def test_written_files_come_back(chat: Chat) -> None:
    """New ones or other ones: name, type, bytes."""
    await chat.run("open('old.txt', 'w').write('as it was')")

    ran = await chat.run(
        "import os\nos.mkdir('plots')\n"
        "open('plots/a.png', 'wb').write(b'PNG')\nopen('b.csv', 'w').write('1,2')"
    )

    found = [
        (file.name, file.media_type, file.path.read_bytes())
        for file in ran.answer.files
    ]
    assert found == [
        ("b.csv", "text/csv", b"1,2"),
        ("a.png", "image/png", b"PNG"),
    ]
    assert ran.told["files"] == ["b.csv", "plots/a.png"]


async def test_changed_file_comes_back(chat: Chat) -> None:
    """Also one whose size and time are as before."""
    await chat.run("open('a.txt', 'w').write('old'); open('b.txt', 'w').write('b')")

    ran = await chat.run(
        "import os\nat = os.stat('a.txt').st_mtime_ns\n"
        "open('a.txt', 'w').write('new')\nos.utime('a.txt', ns=(at, at))"
    )

    assert [file.path.read_text("utf-8") for file in ran.answer.files] == ["new"]


async def test_only_some_files_are_handed_out(chat: Chat) -> None:
    """The rest stays in the workspace, and the model knows."""
    ran = await chat.run("for n in range(30): open(f'{n:02}', 'w').write('x')")

    assert len(ran.answer.files) == TIGHT.returned_files
    assert ran.told["note"] == "10 more are not listed."


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
    """Nobody sees another chat's files; without a chat every call is alone."""
    other = Chat(chat.tools, chat.name + " of somebody else")
    nobody = Chat(chat.tools, "")
    await chat.run("open('mine', 'w')")
    await nobody.run("open('lost', 'w')")

    seen = [
        (await one.run("import os\nos.listdir()")).result for one in (other, nobody)
    ]

    assert seen == [[], []]


async def test_calls_of_one_chat_take_turns(chat: Chat) -> None:
    """Two at once do not lose each other's files."""
    await asyncio.gather(*(chat.run(f"open('{n}', 'w')") for n in range(4)))

    assert sorted((await chat.run("import os\nos.listdir()")).result) == list("0123")


async def test_lost_folder_is_no_exception(tmp_path: Path) -> None:
    """Somebody may tidy up the folder for temporary files, or fill the disk."""
    async with sandboxed() as chat:
        ran = await chat.run("open('a', 'w').write('x')")
        shutil.rmtree(ran.answer.files[0].path.parent)

        lost = await chat.run("1")

        assert lost.answer.text == "Error: The run ended without an answer."
        assert "No such file or directory" in chat.log[-1]
        assert await replace(chat, name="another chat").still_works()


# ---------------------------------------------------------------- tools


async def test_file_tools_work_together(chat: Chat) -> None:
    """Write, list, read, make, remove: in the same workspace as the code."""
    answers = [
        await chat.file("write", path="texts/a.txt", content="Zürich"),
        await chat.file("mkdir", path="/work/empty/inner"),
        await chat.file("list", path="."),
        await chat.file("read", path="texts/a.txt"),
        await chat.file("remove", path="empty"),
        await chat.file("remove", path="texts/a.txt"),
        await chat.file("list", path="texts"),
    ]

    assert [answer.text for answer in answers] == [
        "Wrote 7 bytes.",
        "The folder is there.",
        '[{"name": "empty", "kind": "folder"}, {"name": "texts", "kind": "folder"}]',
        "Zürich",
        "Removed.",
        "Removed.",
        "[]",
    ]
    assert not any(answer.failed for answer in answers)


async def test_what_is_no_text_comes_back_as_a_file(chat: Chat) -> None:
    """A picture is shown instead of being read."""
    await chat.run("open('a.png', 'wb').write(bytes(range(256)))")

    answer = await chat.file("read", path="a.png")

    assert answer.text == "It is no text; the user is shown the file of 256 bytes."
    assert [file.path.read_bytes() for file in answer.files] == [bytes(range(256))]


async def test_long_text_is_read_in_part(chat: Chat) -> None:
    """Up to the limit of the output, also through the middle of a character."""
    await chat.run("open('long', 'w').write('é' * 6000 + 'x')")

    text = (await chat.file("read", path="long")).text

    assert text == "é" * 5000 + "\n\n[The file goes on: it has 12001 bytes.]"


@pytest.mark.parametrize(
    ("operation", "path", "said"),
    [
        ("read", "absent", "No such file or directory."),
        ("list", "absent", "No such file or directory."),
        ("remove", "absent", "No such file or directory."),
        ("remove", ".", "The workspace itself stays; name what is in it."),
        ("read", ".", "Is a directory."),
        ("list", "a\0b", "A path has no zero bytes."),
        ("list", "\udcff\ud800", "That is no path."),
    ],
)
async def test_wrong_paths_are_said(
    chat: Chat, operation: str, path: str, said: str
) -> None:
    """A sentence, never an exception."""
    answer = await chat.file(operation, path=path)

    assert (answer.text, answer.failed) == (f"Error: {said}", True)


async def test_tools_are_described(chat: Chat) -> None:
    """Names that the API takes, schemas that have a strict form, no dependencies."""
    specs = await chat.tools.specs()
    backends = [Pretended(answering(CONFINED))]
    installing = SandboxTools(wheels="/wheels", backends=backends)
    more = await installing.specs()
    await installing.close()

    assert [spec["name"] for spec in specs] == NAMES
    assert [spec["name"] for spec in more] == NAMES
    for spec in (*specs, *more):
        assert strict_schema(spec["parameters"]) is not None
        assert spec["description"]
    assert specs[0]["parameters"]["properties"].keys() == {"code"}
    assert argument_error({"code": "1"}, specs[0]["parameters"]) is None


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("python_execute", {}, "python_execute needs code, a text."),
        ("sandbox_fs_write", {"path": "a"}, "sandbox_fs_write needs content, a text."),
        ("sandbox_fs_chmod", {}, "There is no tool named sandbox_fs_chmod."),
        (
            "python_execute",
            {"code": "", "dependencies": "numpy"},
            "dependencies is a list of names.",
        ),
        (
            "python_execute",
            {"code": "", "dependencies": ["numpy"]},
            "No packages can be installed here; do without.",
        ),
    ],
)
async def test_wrong_arguments_are_said(
    chat: Chat, name: str, arguments: dict[str, Any], said: str
) -> None:
    """Whoever calls need not have checked them."""
    answer = await chat.tools.call("a chat", name, arguments)

    assert (answer.text, answer.failed) == (f"Error: {said}", True)


# ---------------------------------------------------------------- dependencies

METADATA = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheels() -> Iterator[Path]:
    """A folder with pip's own wheel and one of ours, which everybody can read."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own ones are private
        folder = Path(name)
        folder.chmod(0o755)
        fill(folder)
        yield folder


def fill(folder: Path) -> None:
    """Put the wheels into a folder."""
    [pip] = Path(ensurepip.__path__[0], "_bundled").glob("pip-*.whl")
    (folder / pip.name).write_bytes(pip.read_bytes())
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("tiny-1.0.dist-info/WHEEL", WHEEL)
        wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")


async def test_dependencies_come_out_of_the_folder_of_wheels(wheels: Path) -> None:
    """Installed inside, for one run; nothing else can be named."""
    generous = TIGHT._replace(seconds=120.0, memory=4 * TIGHT.memory)
    async with sandboxed(generous, str(wheels)) as chat:
        specs = await chat.tools.specs()
        found = await chat.run("import tiny\ntiny.ANSWER", dependencies=["tiny==1.0"])
        option = await chat.run("1", dependencies=["--index-url=http://127.0.0.1/"])
        later = await chat.run("import tiny")

    assert "dependencies" in specs[0]["parameters"]["properties"]
    assert found.result == 42
    assert "Invalid requirement" in option.answer.text
    assert "ModuleNotFoundError" in later.told["stderr"]
