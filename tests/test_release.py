"""The files that people download: what is in them, and how they are checked."""

import ast
import json
import lzma
import shutil
import subprocess
import sys
import types
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import black
import pytest

import release
from bundling.targets import FUNCTION_KEYS
from owui_manifold.call.valves import Valves
from releasing import contents, packed
from releasing.contents import (
    ADMINISTRATION,
    ADMINISTRATION_ID,
    FUNCTIONS,
    MODELS,
    PIPE_ID,
    READABLE,
    SANDBOX,
    SANDBOX_ID,
    SWITCHES,
    check_release,
    frontmatter,
    packed_name,
    plugins_file,
    version_of,
)
from releasing.download_page import PAGE, download_page
from releasing.files import release_files
from releasing.imports import models_file
from releasing.packed import PackedError, pack, unpack
from shells.administration import ADMINISTRATION_ID as LOOKED_FOR
from shells.valve_texts import comma_list

SMALL = '"""\ntitle: Small\nversion: 1.0.0\n\nBuilt.\n"""\n\nWORD = "hello"\n'
READABLE_PIPE = READABLE[PIPE_ID]


@pytest.fixture(scope="module", autouse=True)
def unpacked_once() -> Iterator[None]:
    """To read a packed file, it is packed again: of most tests it is the same one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "unpack", cache(unpack))
        yield


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return release_files()


@pytest.fixture(scope="module")
def built_folder(
    files: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("built")
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    (folder / PAGE).write_text(download_page(folder), "utf-8")
    return folder


@pytest.fixture
def folder(built_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built_folder, tmp_path / "release")


@pytest.fixture(scope="module")
def pipe() -> str:
    return (release.ROOT / READABLE_PIPE).read_text("utf-8")


@pytest.mark.parametrize("plugin_id", READABLE)
def test_packed_file_holds_the_readable_one(
    plugin_id: str, files: dict[str, str]
) -> None:
    """Its code, on the same lines, with the same frontmatter.

    Whoever opens the readable one sees before the code what to paste instead.
    """
    readable = (release.ROOT / READABLE[plugin_id]).read_text("utf-8")
    header = readable.split('"""')[1]
    text = files[packed_name(plugin_id)]

    code = ast.parse(unpack(text, READABLE[plugin_id]))
    assert first_difference(code, ast.parse(readable)) is None
    assert frontmatter(text) == frontmatter(readable)
    assert tuple(frontmatter(text)) == FUNCTION_KEYS
    assert "Do not paste this file into Open WebUI." in header
    assert f"\nrelease/{packed_name(plugin_id)}\n" in header


def first_difference(one: object, other: object) -> tuple[object, object] | None:
    """Compare all nodes with their lines; a text alone is as good as `pass`.

    A dump of both trees takes several times as long.
    """
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if type(one) is not type(other):
            return one, other
        if isinstance(one, ast.AST):
            ours, theirs = vars(one), vars(other)
            if ours.keys() != theirs.keys():
                return one, other
            for name, value in ours.items():
                if name not in ENDS:
                    waiting.append((value, theirs[name]))
        elif isinstance(one, list) and isinstance(other, list):
            ours_kept = [each for each in one if not is_text(each)]
            theirs_kept = [each for each in other if not is_text(each)]
            if len(ours_kept) != len(theirs_kept):
                return one, other
            waiting.extend(zip(ours_kept, theirs_kept, strict=True))
        elif one != other:
            return one, other
    return None


ENDS = ("end_lineno", "end_col_offset")
"""Of a class, which may end with a text."""


def is_text(node: object) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            return True
    return False


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param("def f(a):\n    return a - 1\n", id="operator"),
        pytest.param("def f(a):\n    return a + 2\n", id="value"),
        pytest.param("def f(a):\n    return a + 1.0\n", id="type of a value"),
        pytest.param("def f(a):\n\n    return a + 1\n", id="line"),
        pytest.param("def f(a):\n    return  a + 1\n", id="column"),
        pytest.param("def f(b):\n    return a + 1\n", id="name"),
        pytest.param("def f(a):\n    return a + 1\nf(1)\n", id="one more statement"),
    ],
)
def test_other_code_is_a_difference(changed: str) -> None:
    """What stands for the comparison of a packed file with the readable one."""
    code = ast.parse("def f(a):\n    return a + 1\n")

    assert first_difference(code, ast.parse(changed)) is not None
    assert first_difference(code, ast.parse("def f(a):\n    return a + 1\n'x'")) is None


WITH_COMMENTS = '''\
"""
title: Small

Built.
"""

# -----
# A chapter.
# -----


class Tools:
    """What they do."""

    def run(self, code: str) -> str:
        """Run code."""
        return "# no comment"  # A comment.


class Empty(Exception):
    """A docstring
    of two lines."""


LIMIT = 5
"""The most."""

if LIMIT:

    def inner() -> None:
        """A docstring."""
        # A comment alone.
        print(f"{LIMIT} # no comment")
'''
WITHOUT_COMMENTS = '''\
"""
title: Small

Built.
"""

# -----

# -----


class Tools:
    """What they do."""

    def run(self, code: str) -> str:
        """Run code."""
        return "# no comment"


class Empty(Exception):
    pass



LIMIT = 5


if LIMIT:

    def inner() -> None:


        print(f"{LIMIT} # no comment")
'''


def test_packed_code_has_only_the_texts_that_are_read_at_run_time() -> None:
    """Open WebUI's: the keys in front, and what the model is told of tools."""
    packed_text = pack(WITH_COMMENTS, READABLE_PIPE)

    assert unpack(packed_text, READABLE_PIPE) == WITHOUT_COMMENTS


def test_packed_file_is_the_same_pipe_when_it_runs(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], pipe: str
) -> None:
    """As the host loads it: the settings and the lines are those of the readable one."""
    module = types.ModuleType("a_packed_pipe")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    exec(files[packed_name(PIPE_ID)], vars(module))

    loaded: Any = module
    assert loaded.Pipe().valves == loaded.Pipe.Valves()
    assert list(loaded.Pipe.Valves.model_fields) == list(Valves.model_fields)
    code = loaded.Pipe.pipe.__code__
    assert code.co_filename == "openai_responses_manifold.py"
    assert "def pipe(" in pipe.splitlines()[code.co_firstlineno - 1]
    assert not hasattr(module, "PACKED")
    assert not hasattr(module, "run_chapters")


def test_chapters_run_one_after_another_as_one_module() -> None:
    """Each sees the names before it; lines have the numbers of the readable file."""
    source = SMALL
    chapter = f"# -----\n# A chapter.\n# -----\nx = '{'x' * 3_000}'\n"
    for number in range(40):
        source += f"\n\n{chapter}n{number} = {number} + len(dir())\n"
    source += "\n\n# -----\n# The last.\n# -----\ndef last() -> int:\n    return n0\n"
    scope: dict[str, Any] = {"__name__": "packed"}

    exec(pack(source, READABLE_PIPE), scope)

    assert [name for name in scope if name.startswith("n") and name[1:].isdigit()] == [
        f"n{number}" for number in range(40)
    ]
    first_line = source[: source.index("def last")].count("\n") + 1
    assert scope["last"].__code__.co_firstlineno == first_line
    assert scope["__doc__"].startswith("\ntitle: Small")


def test_packed_file_is_as_black_leaves_it() -> None:
    """The editor of the host formats what it saves; a changed file does not run."""
    text = pack(SMALL, READABLE_PIPE)

    assert black.format_str(text, mode=black.Mode()) == text
    with pytest.raises(ImportError, match="Download it again"):
        exec(text.replace('DIGEST = "', 'DIGEST = "0'), {})


# What is replaced in a packed file, by what, and words of the reason.
CHANGES = {
    "appended code": ("run_chapters\n", "run_chapters\nX = 1\n", "Line 51"),
    "changed import": ("import lzma\n", "import evil as lzma\n", "Line 15 was changed"),
    "added requirements": (
        "version: 1.0.0\n",
        "version: 1.0.0\nrequirements: evil\n",
        "Line 4 was changed or added",
    ),
    "changed title": ("title: Small", "title: Smaller", "Line 2 was changed"),
    "changed digest": ('DIGEST = "', 'DIGEST = "0', "Line 17 was changed"),
    "changed loader": ('"exec"', '"eval"', "was changed or added"),
    "code after the digest": ('"\nPACKED', '"; X = 1\nPACKED', "Line 17 was changed"),
    "second text": ("exec(", 'PACKED = """\n"""\nexec(', "was changed or added"),
    "other rows": ('PACKED = """\n', 'PACKED = """\n\n', "was changed or added"),
    "no text": ("PACKED", "OTHER", "not a packed file"),
    "another readable file": (READABLE_PIPE, "pipes/other.py", "was changed or added"),
    "no newline at the end": ("run_chapters\n", "run_chapters", "Line 51"),
}


def reason_against(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    file = folder / "file"
    file.write_text(text, "utf-8")
    assert release.main(["--verify", str(file)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("case", CHANGES)
def test_verify_refuses_any_change_around_the_text(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole file is what would be written from its own payload, or refused."""
    old, new, reason = CHANGES[case]
    original = pack(SMALL, READABLE_PIPE)
    changed = original.replace(old, new)

    assert changed != original
    assert unpack(original, READABLE_PIPE) == SMALL
    assert reason in reason_against(changed, tmp_path, capsys)


def pack_bytes(compressed: bytes) -> str:
    head, begin, rest = pack(SMALL, READABLE_PIPE).partition('\nPACKED = """\n')
    return head + begin + b64encode(compressed).decode() + rest[rest.index('\n"""\n') :]


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(lzma.compress(SMALL.encode())[:-4], id="cut"),
        pytest.param(SMALL.encode(), id="not compressed"),
        pytest.param(lzma.compress(SMALL.encode()) + b"more", id="more behind it"),
        pytest.param(lzma.compress(b"\xff"), id="no text"),
        pytest.param(lzma.compress(SMALL.encode(), preset=9), id="asks for 64 MB"),
    ],
)
def test_verify_refuses_a_damaged_payload(payload: bytes) -> None:
    """Whatever does not unpack to one whole text."""
    with pytest.raises(PackedError, match="damaged or cut"):
        unpack(pack_bytes(payload), READABLE_PIPE)


def test_verify_stops_at_a_size_that_no_source_has(tmp_path: Path) -> None:
    """60 MB of zeros, in a process that has no room for them."""
    bomb = tmp_path / "bomb.py"
    bomb.write_text(pack_bytes(lzma.compress(bytes(60_000_000))), "utf-8")

    done = run_verify(bomb, "ulimit -v 50000; ")

    assert done.returncode == 1
    assert "more than 8,000,000 bytes" in done.stderr


def test_endless_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    endless = tmp_path / "endless.py"
    endless.symlink_to("/dev/zero")

    with pytest.raises(PackedError, match="at most 4,000,000 characters"):
        packed.read_packed(endless)


def run_verify(file: Path, limit: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command with no package at all, as on a machine with only Python."""
    command = f'{limit}exec "$0" -S "$1" --verify "$2"'
    script = str(release.ROOT / "scripts/release.py")
    return subprocess.run(
        ["bash", "-c", command, sys.executable, script, str(file)],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


def test_verify_needs_the_standard_library_alone(built_folder: Path) -> None:
    """It compares with the built files of this checkout, in packed files and in JSON."""
    for name, held in (
        (packed_name(SANDBOX_ID), f"the code of {READABLE[SANDBOX_ID]}"),
        (FUNCTIONS, f"the code of {', '.join([READABLE_PIPE, *SWITCHES.values()])}"),
        (MODELS, f"models of {PIPE_ID} without prompts and tools"),
    ):
        done = run_verify(built_folder / name)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{built_folder / name} holds {held}, and nothing else.\n"


def changed_import(text: str, change: str) -> str:
    """A file to import as somebody else would hand it on."""
    entries = json.loads(text)
    pipe, switch = entries[0], entries[-1]
    content = switch["content"]
    match change:
        case "switch with other code":
            switch["content"] += "\nimport antigravity\n"
        case "switch with other code in front":
            switch["content"] = "import antigravity\n" + switch["content"]
        case "requirements":
            key = "\nlicense: MIT\n"
            switch["content"] = content.replace(key, f"{key}requirements: x\n")
        case "requirements below the keys":
            line = "\n\nBuilt by"
            added = f"\n\nrequirements: x{line[1:]}"
            switch["content"] = content.replace(line, added, 1)
        case "the pipe's id twice":
            entries.insert(0, {**pipe, "content": switch["content"]})
        case "one more function":
            entries.append({**switch, "id": "openai_responses_more"})
        case "another description":
            pipe["meta"]["description"] = "Whatever."
        case "one more field":
            switch["is_global"] = True
        case "one function less":
            entries.pop()
        case "a field twice":
            key = ' "id": "openai_responses",'
            return text.replace(key, f"{key}\n  {key}")
        case "deep":
            return "[" * 100_000
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


IMPORTED = {
    "switch with other code": "of pipes/openai_responses_agent.py. A version is",
    "switch with other code in front": "other key lines than",
    "requirements": "other key lines than",
    "requirements below the keys": "other key lines than",
    "the pipe's id twice": "was added or changed",
    "one more function": "holds other functions than",
    "another description": "was added or changed",
    "one more field": "was added or changed",
    "one function less": "holds other functions than",
    "a field twice": "was added or changed",
    "deep": "is no list of functions",
}


@pytest.mark.parametrize("changed", [ADMINISTRATION_ID, "openai_responses_agent"])
def test_version_is_released_once(
    changed: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another source of the same version is refused, one of a later version is not."""
    path = (READABLE | SWITCHES)[changed]
    built = (release.ROOT / path).read_text("utf-8")
    version = f"version: {version_of(built)}"
    shutil.copytree(release.ROOT / "pipes", tmp_path / "pipes", ignore=no_packages)
    monkeypatch.setattr(contents, "ROOT", tmp_path)

    (tmp_path / path).write_text(built.replace(version, "version: 99.0.0"), "utf-8")
    assert list(check_release(folder)) == []
    (tmp_path / path).write_text(f"{built}\n", "utf-8")
    [message] = check_release(folder)
    assert "A version is released once" in message


def no_packages(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_dir()]


def test_version_of_development_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = tmp_path / READABLE_PIPE
    built.parent.mkdir()
    built.write_text(SMALL.replace("1.0.0", "1.2.0.dev"), "utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "RELEASE", tmp_path / "release")

    assert release.main([]) == 1
    assert "1.2.0.dev is no release" in capsys.readouterr().err
    assert not (tmp_path / "release").exists()


VERIFIED = {
    **IMPORTED,
    "switch with other code": "holds another source than pipes/openai_responses_agent",
    "one more function": "openai_responses_more is not one of ours",
    "deep": "cannot be read",
}
del VERIFIED["one function less"]  # it still holds nothing else


@pytest.mark.parametrize("change", VERIFIED)
def test_verify_refuses_a_changed_import(
    change: str, built_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever somebody else put into a file to import."""
    text = (built_folder / FUNCTIONS).read_text("utf-8")

    reason = reason_against(changed_import(text, change), tmp_path, capsys)

    assert VERIFIED[change] in reason


def test_verify_refuses_what_is_sound_in_itself(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another source, alone or in the place of the pipe; a prompt for all users."""
    keys = json.loads(files[FUNCTIONS])[0]["content"].partition("\n\n")[0]
    other = pack(f'{keys}\n\nBuilt.\n"""\n\nWORD = "hello"\n', READABLE_PIPE)
    prompted = files[MODELS].replace('"params": {', '"params": {"system": "x", ')

    alone = reason_against(other, tmp_path, capsys)
    imported = reason_against(plugins_file({PIPE_ID: other}), tmp_path, capsys)
    models = reason_against(prompted, tmp_path, capsys)

    assert f"holds another source than {READABLE_PIPE}" in alone
    assert f"holds another source than {READABLE_PIPE}" in imported
    assert "A model has more than a name" in models


@pytest.mark.parametrize(
    "change", ["switch with other code", "one function less", "a field twice"]
)
def test_check_refuses_a_changed_import(
    change: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if the page about the files names the digest of the changed one."""
    file = folder / FUNCTIONS
    file.write_text(changed_import(file.read_text("utf-8"), change), "utf-8")
    (folder / PAGE).write_text(download_page(folder), "utf-8")

    assert release.check(folder) == 1
    assert IMPORTED[change] in capsys.readouterr().err


# What is replaced, in which file, and the message.
CONTRADICTIONS = {
    "code": (packed_name(PIPE_ID), "\ndel P", "\nX = 1\ndel P", "was changed or added"),
    "import": (FUNCTIONS, "del PACKED", "X, del PACKED", "to import is not"),
    "filter": (ADMINISTRATION, "del PACKED", "X, del PACKED", "to import is not"),
    "tool": (SANDBOX, "del PACKED", "X, del PACKED", "to import is not"),
    "version": (FUNCTIONS, "version: 1", "version: 0.9", "several versions: 0.9"),
    "switch": (MODELS, '"openai_responses_effort"', '"x"', "name the switches"),
    "prompt": (MODELS, '"params": {', '"params": {"system": "x", ', "has more than a"),
    "tools": (MODELS, '"meta": {', '"meta": {"toolIds": ["x"], ', "has more than a"),
    "icon": (MODELS, "data:image/png;base64,", "https://x.y/", "has more than a"),
    "model twice": (MODELS, "gpt-6-luna", "gpt-5.2", "have the same id"),
    "prefix": (MODELS, '"id": "openai_responses.', '"id": "other.', "is not one of"),
    "digest": (PAGE, f"  {MODELS}", f"0  {MODELS}", "does not describe these files"),
    "form": (MODELS, '"meta"', '"mata"', "cannot be read"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_check_names_contradicting_files(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, old, new, message = CONTRADICTIONS[case]
    text = (folder / name).read_text("utf-8")
    assert old in text
    assert release.check(folder) == 0
    (folder / name).write_text(text.replace(old, new), "utf-8")

    assert release.check(folder) == 1
    assert message in capsys.readouterr().err


def test_filter_and_sandbox_are_imported_as_they_are_looked_for(
    files: dict[str, str],
) -> None:
    """The pipe looks for the filter's id; no access to the sandbox is granted."""
    (exported,) = json.loads(files[ADMINISTRATION])
    (tool,) = json.loads(files[SANDBOX])

    assert exported["id"] == ADMINISTRATION_ID == LOOKED_FOR
    assert exported["content"] == files[packed_name(ADMINISTRATION_ID)]
    assert tool == {
        "id": SANDBOX_ID,
        "name": "Sandbox",
        "meta": {"description": tool["meta"]["description"]},
        "content": files[packed_name(SANDBOX_ID)],
    }
    assert "Python and shell commands" in tool["meta"]["description"]


def test_models_are_those_of_the_settings(files: dict[str, str]) -> None:
    """For everybody, with icon, description, the switches and native tools."""
    models = json.loads(files[MODELS])

    names = comma_list(Valves().MODEL_ID)
    assert [model["id"] for model in models] == [f"openai_responses.{n}" for n in names]
    for model in models:
        assert model["access_grants"][0]["principal_id"] == "*"
        assert model["params"] == {"function_calling": "native"}
        assert model["meta"]["profile_image_url"].startswith("data:image/png;base64,")
        assert model["meta"]["filterIds"] == list(SWITCHES)
    assert len({model["meta"]["description"] for model in models}) == len(models)


def test_models_that_cost_many_times_as_much_are_not_public() -> None:
    """Administrators see them, and give access to whom they choose."""
    names = ["gpt-5.2", "gpt-6.1-sol-pro", "gpt-6.1-sol-research", "gpt-5.2-pro"]
    models = json.loads(models_file("p", names, []))

    assert [bool(model["access_grants"]) for model in models] == [True] + [False] * 3
