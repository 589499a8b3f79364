"""Check the pages that people write against what they speak of.

python scripts/pages.py --check

Links and pictures have to be there, each row of the specification and of the agents'
requirements has to name tests that are there and about it, docs/parameters.md has to
say what is sent, and a line of a host has to say what the page says where that host is
installed. `scripts/readme.py` writes and checks the tables that are made from the code.
"""

import argparse
import ast
import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("pipes", "pipelines", "testkit")]

from calls.sample import call_of, chat  # noqa: E402 - the path first
from openai_responses.requests.build import (  # noqa: E402 - the path first
    ResponsesRequest,
)
from openai_responses.requests.parameters import (  # noqa: E402
    ACCOUNT_KEYS,
    ANSWER_KEYS,
)
from owui_manifold.call.valves import UserValves, Valves  # noqa: E402
from owui_manifold.prepare.chat import build_chat_request  # noqa: E402
from stand_in.host import StandInHost  # noqa: E402

DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
SPECIFICATION = DOCS / "reference/specification.md"
REQUIREMENTS = DOCS / "reference/agent-requirements.md"
PARAMETERS = DOCS / "parameters.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
HOSTS = ROOT / ".venv/hosts"
NEWEST = "0.12.4"
LARGEST_PICTURE = 200_000
MOST = 0.02
"""The share of all tests that a word of a row may be in: more have `status`."""
NOT_THE_CALLERS = {
    "background",
    "background_options",
    "include",
    "input",
    "instructions",
    "model",
    "repairs",
    "store",
    "tools",
}
_LINK = re.compile(r"\[[^]]*\]\(([^)]+)\)")
_ROW = re.compile(
    r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \| (`.+?`) \| (`.+`) \|$", re.MULTILINE
)
_REQUIREMENT = re.compile(
    r"^\| (R\d+) \| [^|]+ \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE
)
_TEST = re.compile(r"`([^`]+::[^`]+)`")
_TEST_OF_PAGE = re.compile(r"`tests/([^`]+::[^`]+)`")
_HOST_LINE = re.compile(r"`([\w/]+\.py):(\d+)`(?:\s+of\s+([\d.]+))?\s+\(`([^`]+)`\)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong; return the exit status."""
    parser = argparse.ArgumentParser(description="Check the pages that people write.")
    parser.add_argument("--check", action="store_true", help="as it does anyway")
    parser.parse_args(arguments)
    faults = [
        *link_faults(),
        *picture_faults(),
        *specification_faults(),
        *requirement_faults(),
        *name_faults(),
        *parameter_faults(),
        *host_line_faults(),
    ]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


# ---------------------------------------------------------------- links, pictures


def link_faults() -> Iterator[str]:
    """Yield the links to files and headings that are not there."""
    for page in PAGES:
        without_code = re.sub(r"`[^`\n]*`", "", page.read_text("utf-8"))
        for target in _LINK.findall(without_code):
            file, _, heading = target.partition("#")
            if file.startswith("https://"):
                continue
            linked = (page.parent / file) if file else page
            if not linked.exists() or (heading and heading not in headings(linked)):
                yield f"{page.name}: {target} leads nowhere"


@cache
def headings(page: Path) -> set[str]:
    """Return the headings of a page as GitHub puts them into an address."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {word.replace(" ", "-") for word in words}


def picture_faults() -> Iterator[str]:
    """Yield the pictures that no page shows, and those that are heavy."""
    texts = "".join(page.read_text("utf-8") for page in PAGES)
    for picture in sorted((DOCS / "pictures").glob("*.png")):
        if picture.name not in texts:
            yield f"{picture.name} is on no page"
        if picture.stat().st_size > LARGEST_PICTURE:
            yield f"{picture.name} has more than {LARGEST_PICTURE:,} bytes"


# ---------------------------------------------------------------- specification


def specification_faults() -> Iterator[str]:
    """Yield what is wrong with the rows of the specification."""
    text = SPECIFICATION.read_text("utf-8")
    rows = _ROW.findall(text)
    lines = [line for line in text.splitlines() if line[:2] == "| "]
    if len(lines) - 2 != len(rows):
        yield f"{SPECIFICATION.name}: a line of the table has another form"
    for row, _, here, words, tests in rows:
        for fault in row_faults(here, words, tests):
            yield f"{SPECIFICATION.name}, {row}: {fault}"


def row_faults(here: str, words: str, tests: str) -> Iterator[str]:
    """Yield what is wrong with the cells of a row."""
    if not here.startswith(("As specified", "Differs: ")):
        yield "it does not say whether it holds"
    if here.startswith("Differs") and len(here.split()) <= 10:
        yield "it differs without a reason"
    wanted = words[1:-1].split("`, `")
    named = tests[1:-1].split("`, `")
    sources: list[str] = []
    for test in named:
        source = all_tests().get(test)
        if source is None:
            yield f"{test} does not exist"
            continue
        sources.append(source)
        if not any(word in source for word in wanted):
            yield f"{test} has none of its words"
    for word in wanted:
        if not any(word in source for source in sources):
            yield f"no test of it has {word}"
        if share_of(word) > MOST:
            yield f"too many tests have {word}"


def requirement_faults() -> Iterator[str]:
    """Yield the agents' requirements without tests for both homes."""
    rows = _REQUIREMENT.findall(REQUIREMENTS.read_text("utf-8"))
    if [row[0] for row in rows] != [f"R{number}" for number in range(1, 41)]:
        yield f"{REQUIREMENTS.name}: a row is missing or has another form"
    for row, both, *homes in rows:
        for cell in homes:
            has_shared = cell == "the shared test" and _TEST.search(both)
            if not _TEST.search(cell) and not has_shared:
                yield f"{REQUIREMENTS.name}, {row}: a home without a test"
        for test in _TEST.findall(" ".join((both, *homes))):
            if test not in all_tests():
                yield f"{REQUIREMENTS.name}, {row}: {test} does not exist"


def name_faults() -> Iterator[str]:
    """Yield the tests by which a page names what shows something, and that are gone."""
    for page in PAGES:
        for test in _TEST_OF_PAGE.findall(page.read_text("utf-8")):
            if test not in all_tests():
                yield f"{page.name}: {test} does not exist"


@cache
def all_tests() -> dict[str, str]:
    """Return the source of every test by its id, with what it uses of its own file."""
    found: dict[str, str] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        path = file.relative_to(TESTS).as_posix()
        parts = parts_of(file.read_text("utf-8"))
        for name, source in parts.items():
            if name.startswith("test_"):
                used = set(re.findall(r"\w+", source)) & parts.keys()
                texts = [parts[each] for each in sorted(used)]
                found[f"{path}::{name}"] = "\n".join(texts)
    return found


def parts_of(source: str) -> dict[str, str]:
    """Return the source of each function, class and constant of a file, by name."""
    lines = source.splitlines()
    parts: dict[str, str] = {}
    for node in ast.parse(source).body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        marks = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(mark.lineno for mark in marks)])
        for name in names:
            parts[name] = "\n".join(lines[start - 1 : node.end_lineno])
    return parts


@cache
def share_of(word: str) -> float:
    """Return the share of all tests that have a word."""
    sources = all_tests().values()
    return sum(word in source for source in sources) / len(sources)


# ---------------------------------------------------------------- parameters


def parameter_faults() -> Iterator[str]:
    """Yield where the table of docs/parameters.md and the code differ."""
    text = PARAMETERS.read_text("utf-8")
    table = text.partition("<!-- parameters -->\n")[2].partition("<!-- end -->")[0]
    lines = [re.split(r" ?\| ", line.strip("| \n")) for line in table.splitlines()[2:]]
    who = {cells[0].strip("`"): cells[5] for cells in lines}
    sent = {cells[0].strip("`"): cells[4] for cells in lines}
    flat = ResponsesRequest.model_fields.keys() - NOT_THE_CALLERS
    inner = {"reasoning.effort", "reasoning.summary", "text.verbosity", "text.format"}
    ours = {name for name, cell in who.items() if cell.startswith("administrator: ")}
    theirs = {name for name, cell in who.items() if cell.startswith("caller")}
    named = set(re.findall(r"`([A-Z_]{4,})`", text)) - {"DEBUG", "WARNING"}
    compared = {
        "rows": (set(who), flat - {"reasoning", "text"} | inner),
        "administrator's": (ours, set(ACCOUNT_KEYS)),
        "caller's": (theirs, {"stream", *ANSWER_KEYS, *inner}),
        "sent": ({name for name in who if sent[name] == "yes"}, sent_by_default()),
        "valves": (
            named,
            named & (Valves.model_fields | UserValves.model_fields).keys(),
        ),
    }
    for what, (written, made) in compared.items():
        if written != made:
            names = ", ".join(sorted(written ^ made))
            yield f"{PARAMETERS.name}: {what}: {names}"


def sent_by_default() -> set[str]:
    """Return the parameters that a chat sends by the defaults of all valves."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        StandInHost(patch, Path(folder))
        call = call_of(chat("Hi"), Valves(API_KEY="sk-1"))
        request = asyncio.run(build_chat_request(call)).request
    payload = request.payload()
    inner = {
        f"{key}.{name}"
        for key in ("reasoning", "text")
        for name in payload.get(key, ())
    }
    flat = payload.keys() - {"reasoning", "text"} - NOT_THE_CALLERS
    return flat | inner - {"reasoning.context"}


# ---------------------------------------------------------------- lines of the host


def host_line_faults() -> Iterator[str]:
    """Yield the lines of installed hosts that say something else than a page."""
    reference = (DOCS / "reference/open-webui.md").read_text("utf-8")
    cited = _HOST_LINE.findall(reference)
    if len(cited) != len(re.findall(r"\.py:\d+", reference)):
        yield "open-webui.md: a line without its text"
    compared = _HOST_LINE.findall((DOCS / "compare.md").read_text("utf-8"))
    for file, line, version, text in [*cited, *compared]:
        [*found] = (HOSTS / f"open-webui-{version or NEWEST}").glob(
            f"lib/*/site-packages/open_webui/{file}"
        )
        if (
            found
            and text not in found[0].read_text("utf-8").splitlines()[int(line) - 1]
        ):
            yield f"{file}:{line} of {version or NEWEST} does not say {text}"


if __name__ == "__main__":
    sys.exit(main())
