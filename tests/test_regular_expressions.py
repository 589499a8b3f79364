"""No regular expression of the sources takes more than linear work on a foreign text.

One of square cost held the server for 13 seconds over a name of 36 kB. The patterns are
found in the sources, so a new one is read as well.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from measures import pattern_work
from measures.pattern_work import (
    SHORT_LIMIT,
    compile_pattern,
    hardest_texts,
    match_end,
    worst_growth,
    worst_limit_growth,
)

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [
    path
    for folder in ("pipes", "pipelines")
    for path in sorted((ROOT / folder).glob("*/**/*.py"))
]
CALLS = ("compile", "match", "search", "sub", "subn", "findall", "finditer", "split")
AT_START = {"match", "fullmatch"}
MAX_GROWTH = 2.6
"""Of work when a text doubles: 2 is linear, 4 is square."""
MEASURED_BY = (
    sys.version,
    Path(__file__).read_text("utf-8"),
    Path(pattern_work.__file__).read_text("utf-8"),
)


def texts_of(module: str, name: str) -> list[str]:
    texts = []
    waiting = [getattr(import_module(module), name)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, tuple | list):
            waiting.extend(value)
    return texts


MADE_IN_FUNCTIONS: Mapping[str, Sequence[str]] = {
    "openai_responses.causes: phrase": [
        *texts_of("openai_responses.causes", "_PHRASES"),
        *texts_of("openai_responses.causes", "_CERTAIN_PHRASES"),
    ],
    "openai_responses.errors: phrase": texts_of(
        "openai_responses.errors", "_CODES_OF_WORDS"
    ),
    "openai_responses.repairs.refusal: phrase": [
        text
        for name in vars(import_module("openai_responses.repairs.finding"))
        if name.startswith("_") and name.isupper()
        for text in texts_of("openai_responses.repairs.finding", name)
    ],
    # Schemas of the settings of administrators.
    "openai_responses.json_input: schema": [
        *texts_of("owui_manifold.call.model_valves", "_OVERRIDE_FORMS"),
        *texts_of("owui_manifold.call.remote_servers", "_SERVER_LABEL"),
        *texts_of("owui_manifold.call.remote_servers", "_SOME_TEXT"),
    ],
    "gpt5_agent.tools.host_calls: f'(?:{re.escape(prefix)})+'": [
        "(?:a_)+",
        "(?:a_a_)+",
    ],
    # Addresses that the server's administrator allows.
    "gpt5_agent.shell.server_access: f'{pattern}(/.*)?'": [
        r"https://[^/]*\.company\.example(/.*)?"
    ],
    # Paths of parameters that a server named.
    "openai_responses.repairs.refusal: f'param\\\\W{{1,12}}{re.escape(path)}|{listed}'": [
        r"param\W{1,12}input\[3\]\.id"
        r"|path(?:\\[nrt]|\W){1,40}input(?:\\[nrt]|\W){1,40}3(?:\\[nrt]|\W){1,40}id"
    ],
    # The folders of a server.
    "openai_responses.redaction: pattern": [
        r"(?:(?<![\w.~/\\-])|(?<=file://))(?:/app[/\\]++data|/app)"
        r"(?![\w-]|\.\w)(?:[/\\]++[^\s/\\\"'`<>()\[\],;:]*+)*+"
    ],
    # It is compiled to see whether it can be, and never used.
    "openai_responses.requests.json_schema: pattern": ["a"],
}
"""The values of patterns that have no global name, by module and source."""

ALWAYS_AT_THE_END: Mapping[str, str] = {
    # `_strip_old_blocks` reads only what lies in front of the last end of a block.
    "owui_chat.input.history": "</details>\n"
}
"""What a module guarantees about the end of a text before it uses a pattern."""


class FoundPattern(NamedTuple):
    """One use of `re` in a source; `methods` say how a compiled pattern is used."""

    module: str
    line: int
    written: str
    values: list[tuple[str | bytes, int]]
    methods: frozenset[str]

    def __str__(self) -> str:
        return f"{self.module}:{self.line}"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts[1:])


USE = re.compile(r"\bre\.(?!escape|Pattern|[A-Z])\w+\(")
TEXTS = {module_name(path): path.read_text() for path in SOURCES}
USES = {
    module: count for module, text in TEXTS.items() if (count := len(USE.findall(text)))
}
"""How many patterns each source has."""
NAMES = re.findall(r"(\w+) = re\.compile\(", "".join(TEXTS.values()))


def used_methods(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the methods that are called on each global name, over all sources.

    A name that is passed on may be searched with.
    """
    methods: dict[str, set[str]] = {}
    for tree in trees.values():
        attributes = {}
        loaded = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                attributes[node.value] = node.attr
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                loaded.append(node)
        for name in loaded:
            method = attributes.get(name, "search")
            methods.setdefault(name.id, set()).add(method)
    return methods


def found_patterns() -> Iterator[FoundPattern]:
    telling = re.compile(rf"\bre\.|\b(?:{'|'.join(NAMES)})\b")
    trees = {
        module: ast.parse(text)
        for module, text in TEXTS.items()
        if telling.search(text)
    }
    methods = used_methods(trees)
    for module in USES:
        tree = trees[module]
        names = {
            node.value: target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if is_use_of_re(node):
                assert isinstance(node, ast.Call)
                assert isinstance(node.func, ast.Attribute)
                own = {node.func.attr}
                if own == {"compile"}:
                    own = methods.get(names.get(node, ""), {"search"})
                yield read_call(module, node, frozenset(own))


def is_use_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr not in ("escape", "Pattern", "purge")
    )


def read_call(module: str, node: ast.Call, methods: frozenset[str]) -> FoundPattern:
    written = ast.unparse(node.args[0])
    flags = [
        argument
        for argument in node.args[1:]
        if ast.unparse(argument).startswith("re.")
    ]
    flags += [word.value for word in node.keywords if word.arg == "flags"]
    flag = int(evaluate(module, flags[0])) if flags else 0
    try:
        patterns = [evaluate(module, node.args[0])]
    except NameError:
        patterns = list(MADE_IN_FUNCTIONS.get(f"{module}: {written}", ()))
    values = [(pattern, flag) for pattern in patterns]
    return FoundPattern(module, node.lineno, written, values, methods)


def evaluate(module: str, expression: ast.expr) -> Any:
    """Return the value of an expression of global names; raises NameError."""
    code = compile(ast.Expression(expression), module, "eval")
    return eval(code, vars(import_module(module)))  # it is our own source


@cache
def patterns_by_module() -> Mapping[str, list[FoundPattern]]:
    """The patterns of each source that has some; collecting tests need not find them."""
    found: dict[str, list[FoundPattern]] = {}
    for entry in found_patterns():
        found.setdefault(entry.module, []).append(entry)
    return found


def test_every_use_of_re_is_found() -> None:
    """As a search for the text finds them."""
    found = {module: len(entries) for module, entries in patterns_by_module().items()}

    assert found == USES
    assert sum(found.values()) > 60


@pytest.fixture(scope="module")
def found_linear(pytestconfig: pytest.Config) -> Iterator[set[str]]:
    """Digests of what was measured: a pattern does as much work as in the last run.

    That includes the measuring itself. `pytest --cache-clear` forgets them.
    """
    kept = pytestconfig.cache
    key = "regular-expressions/linear"
    found = set(kept.get(key, ())) if kept else set()
    yield found
    if kept:
        kept.set(key, sorted(found))


@pytest.mark.parametrize("module", USES)
def test_pattern_takes_linear_work(module: str, found_linear: set[str]) -> None:
    """With texts that are made of the pattern's own characters and parts."""
    for entry in patterns_by_module()[module]:
        assert entry.values, f"add {module}: {entry.written} to MADE_IN_FUNCTIONS"
        whole = entry.methods == {"fullmatch"}
        searches = not entry.methods <= AT_START
        ending = ALWAYS_AT_THE_END.get(entry.module, "")
        for pattern, flags in entry.values:
            question = (pattern, flags, whole, searches, ending)
            digest = sha256(repr((*MEASURED_BY, question)).encode()).hexdigest()
            if digest in found_linear:
                continue
            complaint = complaint_about(*question)

            assert not complaint, f"{entry}: {pattern!r}: {complaint}"
            found_linear.add(digest)


def complaint_about(
    pattern: str | bytes, flags: int, whole: bool, searches: bool, ending: str
) -> str:
    """Say what is wrong with the work of a pattern, or nothing."""
    compiled = compile_pattern(pattern, flags, whole=whole)
    if not compiled.has_repeat:  # the steps at a place have a limit
        return ""
    if compiled.has_empty_loop:
        return "a loop that may read nothing"
    hardest = hardest_texts(compiled, searches=searches, ending=ending)
    growth, text = worst_growth(compiled, hardest, searches=searches)
    if growth > MAX_GROWTH:
        return f"grows {growth:.1f} times with {text}"
    if compiled.has_long_limit:
        wider = compile_pattern(pattern, flags, whole=whole, limit=2 * SHORT_LIMIT)
        growth = worst_limit_growth(compiled, wider, hardest, searches=searches)
        if growth > MAX_GROWTH:
            return "its limits multiply"
    return ""


@pytest.mark.parametrize(
    "pattern",
    [r"\.\w*(htm|xht|svg|xml|xsl|rdf)\w*$", r"(a+)+b", r"\s+$", r"<b>.*?</b>"],
)
def test_pattern_of_more_than_linear_work_is_noticed(pattern: str) -> None:
    """The first one held the server: it looked for the ending of a page in a name."""
    compiled = compile_pattern(pattern, 0, whole=False)
    hardest = hardest_texts(compiled, searches=True)
    growth, _ = worst_growth(compiled, hardest, searches=True)

    assert growth > MAX_GROWTH
    assert not compiled.has_long_limit


def test_limits_that_multiply_are_noticed() -> None:
    """Two of a thousand are a million steps for each character."""
    pattern = r"a{0,99}[ab]{0,99}!"
    compiled = compile_pattern(pattern, 0, whole=False)
    wider = compile_pattern(pattern, 0, whole=False, limit=2 * SHORT_LIMIT)

    hardest = hardest_texts(compiled, searches=True)

    assert compiled.has_long_limit
    assert worst_limit_growth(compiled, wider, hardest, searches=True) > MAX_GROWTH


def test_matcher_matches_what_re_matches() -> None:
    """So that its steps are those of the same search."""
    texts = ("", "a", "ab", "aab!", "-1", "1-", "x\ny", "<think>", "`<think>", "A1_")
    for entry in chain.from_iterable(patterns_by_module().values()):
        for pattern, flags in entry.values:
            compiled = compile_pattern(pattern, flags, whole=False, limit=99)
            for text in texts:
                given = text if isinstance(pattern, str) else text.encode()
                match = re.compile(pattern, flags).match(given)  # type: ignore[arg-type]

                assert match_end(compiled.program, text) == (match and match.end())
