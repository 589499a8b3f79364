"""Everything that the bundler refuses, each with its module and line."""

from pathlib import Path

import pytest

from bundles.sample import (
    ENTRY,
    PIPELINE_ENTRY,
    PLAIN_METHOD,
    REPLIES,
    SAMPLE,
    WORDS,
    write,
)
from bundling.building import build
from bundling.refusals import BundleRefused
from bundling.targets import TARGETS, Target

PIPE, PIPELINE, *_ = TARGETS
WORDS_PATH = "pipes/openai_responses/words.py"
REPLIES_PATH = "pipes/owui_chat/replies.py"
ENTRY_PATH = "pipes/owui_manifold/pipe.py"
PIPELINE_PATH = "pipelines/gpt5_agent/pipeline.py"


def refusals(
    root: Path, files: dict[str, str], target: Target = PIPE
) -> list[tuple[str, int, str]]:
    with pytest.raises(BundleRefused) as caught:
        build(target, write(root, SAMPLE | files))
    return [(each.module, each.line, each.reason) for each in caught.value.refusals]


# Lines that follow the docstring of openai_responses.words (so they begin on line 2),
# the line that is refused, and words of the reason.
IN_ONE_MODULE = [
    ("from .errors import X", 2, "a relative import"),
    ("from . import errors", 2, "a relative import"),
    ("from __future__ import annotations", 2, "cannot resolve its"),
    ("import openai_responses.sse", 2, "as a module"),
    ("from openai_responses import sse", 2, "is no module of ours"),
    ("from owui_chat.no import X", 2, "must not import it"),
    ("from json import *", 2, "a star import from json"),
    ("def f() -> None:\n    import json", 3, "below the top level"),
    ("try:\n    import json\nfinally: ...", 3, "below the top level"),
    ("import json; X = 1", 2, "shares its line"),
    ("import httpx", 2, "imports httpx; a bundle has"),
    ("from openai.types import X", 2, "imports openai; a bundle"),
    ("from open_webui.env import X", 2, "imported as a module"),
    ("# taken from utils", 2, '"from utils"'),
    ('X = "from apps"', 2, '"from apps"'),
    ('X = """\na text from mainland\n"""', 3, '"from main"'),
    ("from configparser import Error", 2, '"from config"'),
    ("def f() -> str:\n    return __name__", 3, "__name__ means"),
    ("X = (\n    __file__\n)", 3, "__file__ means something else"),
    ('__all__ = ["X"]', 2, "__all__ means something else"),
    ("from typing import TYPE_CHECKING", 2, "TYPE_CHECKING means"),
    ("import typing\nX = typing.TYPE_CHECKING", 3, "CHECKING means"),
    ('def f(x: "int") -> None: ...', 2, 'annotation "int"'),
    ('def f(*x: "int") -> None: ...', 2, 'annotation "int"'),
    ('async def f() -> "int": ...', 2, 'annotation "int"'),
    ('X: list["int"] = []', 2, 'annotation "int"'),
    ('X: Annotated["int", "why"] = 1', 2, 'annotation "int"'),
    ('class C:\n    x: "int"', 3, 'annotation "int"'),
    ('X: TypeAlias = "int"', 2, 'annotation "int"'),
    (
        "def f() -> None:\n    class L: ...\n    def g(x: L) -> None: ...",
        4,
        "the annotation L is local to f",
    ),
    (
        "def f(t: type) -> None:\n    class L:\n        x: t",
        4,
        "the annotation t is local to f",
    ),
    (
        "async def f() -> None:\n    def g(x: (await h())) -> None: ...",
        3,
        "is not valid here",
    ),
    ("X = = 1", 2, "is not valid here"),
    ("type X = int", 2, "is not valid here"),
    ("f()", 2, "an effect at import"),
    ("if True:\n    X = 1", 2, "an effect at import"),
    ("with f():\n    pass", 2, "an effect at import"),
    ("try:\n    X = 1\nfinally:\n    pass", 2, "an effect at import"),
    ("X = 1\nX += 1", 3, "an effect at import"),
    ("class C: ...\nC.x = 1", 3, "changes another object at"),
    (
        "class C:\n    x = [1]\n    x[0], y = 2, 3",
        4,
        "changes another object at import",
    ),
    ("class C:\n    f()", 3, "an effect at import"),
    ("X = (Y := 1)", 2, "an assignment inside an expression"),
    ('X = open("x")', 2, "calls open at import"),
    ("import time\nX = [time.time()]", 3, "calls time.time"),
    (
        "from time import monotonic as now\nclass C:\n    x = now()",
        4,
        "calls time.monotonic at import",
    ),
    (
        "import os\ndef f(x: str = os.getcwd()) -> None: ...",
        3,
        "calls os.getcwd at import",
    ),
    (
        "import random\n@f(random.random())\nclass C: ...",
        3,
        "calls random.random at import",
    ),
    ('import os\nX = os.environ["X"]', 3, "reads the environment"),
    ('from os import environ\nX = environ.get("X")', 3, "os.environ.get at import"),
    ("X = 1\ndef f() -> None:\n    global X", 4, "rebinds the global X"),
    ("class Filter: ...", 2, "a second host class, Filter"),
    ("from asyncio import Event", 2, "a second host class, Event"),
    ("import json\njson = 1", 3, "json is already json in"),
    (
        "from re import compile\nfrom ast import parse as compile",
        3,
        "compile is already re.compile in openai_responses.words, line 2",
    ),
]


@pytest.mark.parametrize(("source", "line", "words"), IN_ONE_MODULE)
def test_forbidden_code_is_refused_at_its_line(
    source: str, line: int, words: str, tmp_path: Path
) -> None:
    text = f'"""Words."""\n{source}\nWORD = Greeting = "word"\n'

    refused = refusals(tmp_path, {WORDS_PATH: text})

    places = [(module, at) for module, at, reason in refused if words in reason]
    assert places == [("openai_responses.words", line)], refused


FINE = [
    'from typing import Literal\nX: Literal["a"] | None = None',
    'from typing import Annotated\nX: Annotated[int, "b"] = 1',
    "def f(e: Exception) -> str:\n    return type(e).__name__",
    'import re\nX = re.compile("x")',
    "import time\nX = lambda: time.time()",
    "import time\ndef f(x: object = time.time) -> None: ...",
    "class C:\n    pass\nclass D: ...",
    "def f() -> None:\n    L = int\n    x: L = 1",
    "X = 1\nX = 2",
]


@pytest.mark.parametrize("source", FINE)
def test_allowed_lookalikes_are_built(source: str, tmp_path: Path) -> None:
    text = f'"""Words."""\n{source}\nWORD = Greeting = "word"\n'

    assert "WORD" in build(PIPE, write(tmp_path, SAMPLE | {WORDS_PATH: text}))


# Lines added to owui_chat.replies, which of them is refused, words of the reason.
ACROSS_MODULES = [
    (
        "WORD = 1",
        1,
        "WORD is already openai_responses.words.WORD in openai_responses.words, line 10",
    ),
    (
        "from re import sub as field",
        1,
        "field is already dataclasses.field in openai_responses.words, line 5",
    ),
    ("def dataclass() -> None: ...", 1, "dataclass is already dataclasses.dataclass"),
    (
        "from openai_responses.words import WORD as W",
        1,
        "an alias for a name of openai_responses.words",
    ),
    (
        "from openai_responses.words import FieldInfo",
        1,
        "openai_responses.words does not define FieldInfo",
    ),
    ("X = FieldInfo", 1, "uses FieldInfo without importing it"),
    ("def f() -> str:\n    return WORD", 2, "uses WORD without"),
    ("from owui_manifold.chain import X", 1, "owui_chat comes before owui_manifold"),
]


@pytest.mark.parametrize(("source", "line", "words"), ACROSS_MODULES)
def test_refused_across_modules(
    source: str, line: int, words: str, tmp_path: Path
) -> None:
    above = len(REPLIES.splitlines()) + 1

    refused = refusals(tmp_path, {REPLIES_PATH: f"{REPLIES}\n{source}\n"})

    places = [(module, at) for module, at, reason in refused if words in reason]
    assert places == [("owui_chat.replies", above + line)], refused


IN_A_CIRCLE = {
    "pipes/openai_responses/sounds.py": (
        '"""Sounds."""\n\nfrom openai_responses.words import WORD\n'
    ),
    WORDS_PATH: WORDS.replace(
        "import os.path", "import os.path\nfrom openai_responses.sounds import X"
    ),
}
WHOLE_FILES = {
    "two modules that need each other": (
        IN_A_CIRCLE,
        "openai_responses.sounds",
        3,
        "this import closes the cycle openai_responses.words -> "
        "openai_responses.sounds -> openai_responses.words",
    ),
    "no docstring": (
        {WORDS_PATH: WORDS.partition("\n\n")[2]},
        "openai_responses.words",
        1,
        "a module needs a docstring",
    ),
    "entry without the host's class": (
        {ENTRY_PATH: ENTRY.replace("class Pipe:", "class Pump:")},
        "owui_manifold.pipe",
        1,
        "the entry module defines no class Pipe",
    ),
    "entry with the host's class twice": (
        {ENTRY_PATH: f"{ENTRY}\n\nclass Pipe: ...\n"},
        "owui_manifold.pipe",
        len(ENTRY.splitlines()) + 3,
        "a second host class, Pipe",
    ),
    "code in a package's __init__": (
        {"pipes/owui_chat/__init__.py": '"""A package."""\n\nX = 1\n'},
        "owui_chat.__init__",
        3,
        "a package's __init__ has a docstring only",
    ),
}
"""Files, and the one refusal: its module, its line, the whole reason."""


@pytest.mark.parametrize("case", WHOLE_FILES)
def test_file_is_refused_as_a_whole(case: str, tmp_path: Path) -> None:
    files, module, line, reason = WHOLE_FILES[case]

    assert refusals(tmp_path, files) == [(module, line, reason)]


def test_builtin_hidden_by_another_module_is_refused(tmp_path: Path) -> None:
    words = f"{WORDS}\n\ndef reversed(word: str) -> str:\n    return word[::-1]\n"
    replies = f"{REPLIES}\n\nBACK = tuple(reversed((1, 2)))\n"

    ((module, line, reason),) = refusals(
        tmp_path, {WORDS_PATH: words, REPLIES_PATH: replies}
    )

    assert (module, line) == ("owui_chat.replies", len(replies.splitlines()))
    assert reason.startswith("uses reversed without importing it")


FRONTMATTERS = [
    ("version: 1.2.3", "version: 1.2.4", "version is not 1.2.3"),
    ("license: MIT", "license: MIT\nrequirements: x", "in this order"),
    ("author: Someone\n", "", "in this order, title, author, version"),
    ("author: Someone", "author:", "a line without a plain value"),
    ("A Pipe", "A \\\\ Pipe", "a line without a plain value"),
    ("title: A Pipe", "A Pipe", "in this order"),
    ("\nThe story of a request.\n\nTold in order.\n", "", "a sentence must follow"),
]


@pytest.mark.parametrize(("good", "bad", "words"), FRONTMATTERS)
def test_wrong_frontmatter_is_refused(
    good: str, bad: str, words: str, tmp_path: Path
) -> None:
    refused = refusals(tmp_path, {ENTRY_PATH: ENTRY.replace(good, bad, 1)})

    assert [(module, at) for module, at, why in refused if words in why] == [
        ("owui_manifold.pipe", 1)
    ]


def test_everything_is_refused_at_once(tmp_path: Path) -> None:
    """Who moves code sees all places in one go, in the order of the sources."""
    files = {
        WORDS_PATH: WORDS + "\nprint(__name__)\nX = __file__\n",
        REPLIES_PATH: REPLIES + "\nimport requests\n",
    }

    refused = refusals(tmp_path, files)

    above = len(WORDS.splitlines()) + 2
    below = len(REPLIES.splitlines()) + 2
    assert [(module, line) for module, line, _ in refused] == [
        ("openai_responses.words", above),
        ("openai_responses.words", above),
        ("openai_responses.words", above + 1),
        ("owui_chat.replies", below),
    ]


GENERATOR = "    def pipe(self) -> object:\n        if self:\n            yield 1\n"
METHODS = [
    ("    async def pipe(self) -> None: ...\n", 0, "pipe is async"),
    ("    async def pipelines(self) -> list[str]: ...\n", 0, "pipelines is async"),
    (GENERATOR, 0, "pipe yields"),
    (GENERATOR.replace("yield 1", "yield from ()"), 0, "pipe yields"),
    *(
        (f"{PLAIN_METHOD}\n    def {name}(self) -> None: ...\n", 3, f"{name} is not")
        for name in ("inlet", "outlet", "on_startup", "on_shutdown")
    ),
]
"""What is in the place of the sample's pipe(), and which of its lines is refused."""


@pytest.mark.parametrize(("method", "offset", "words"), METHODS)
def test_method_that_the_pipelines_server_cannot_call_is_refused(
    method: str, offset: int, words: str, tmp_path: Path
) -> None:
    """An empty or garbled answer would be all that anybody sees."""
    entry = PIPELINE_ENTRY.replace(PLAIN_METHOD, method)
    first = entry[: entry.index(method)].count("\n") + 1

    refused = refusals(tmp_path, {PIPELINE_PATH: entry}, PIPELINE)

    assert [(at, module) for module, at, why in refused if words in why] == [
        (first + offset, "gpt5_agent.pipeline")
    ]


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            "    def pipe(self) -> object:\n        def one() -> object:\n"
            "            yield 1\n\n        return one()\n",
            id="inner generator",
        ),
        f"{PLAIN_METHOD}\n    async def other(self) -> None: ...\n",
        f"{PLAIN_METHOD}\n    async def inlet(self) -> None: ...\n",
    ],
)
def test_method_that_only_looks_like_it_is_built(method: str, tmp_path: Path) -> None:
    """Inner functions may yield, other methods may be coroutines."""
    entry = PIPELINE_ENTRY.replace(PLAIN_METHOD, method)

    assert build(PIPELINE, write(tmp_path, SAMPLE | {PIPELINE_PATH: entry}))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\nfrom", "\nimport open_webui.env\nfrom", "imports open_webui; a bundle has"),
        ("\nfrom", "\nfrom owui_manifold.pipe import Pipe\nfrom", "imports owui_mani"),
        ("license: MIT", "license: MIT\nrequirements: mcp", "in this order, title, au"),
    ],
    ids=["the host's package", "the pipe", "requirements"],
)
def test_what_the_pipelines_server_lacks_is_refused(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    """The file loads without anything to install: pip can break that server for good."""
    entry = PIPELINE_ENTRY.replace(old, new, 1)

    refused = refusals(tmp_path, {PIPELINE_PATH: entry}, PIPELINE)

    assert [why for _, _, why in refused if words in why]
