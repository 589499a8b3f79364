"""Write the tables of docs/ that are made from the code.

python scripts/readme.py            writes them
python scripts/readme.py --check    writes nothing; exit status 1 names what is stale

A table is between `<!-- table NAME -->` and `<!-- end -->`.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "pipes"), str(ROOT / "pipelines")]

from gpt5_agent.shell.valves import Valves as AgentValves  # noqa: E402 - the path first
from openai_responses.endings import FAULTS, MESSAGES  # noqa: E402
from openai_responses.errors import NO_FAULT  # noqa: E402
from owui_manifold.call.expert import (  # noqa: E402
    ImageOptions,
    PipeExpertKeys,
    WebSearchOptions,
)
from owui_manifold.call.valves import UserValves, Valves  # noqa: E402
from owui_sandbox.tools import StoredSandboxOptions  # noqa: E402
from sandbox.options import SandboxOptions  # noqa: E402
from settings.expert_keys import AgentExpertKeys  # noqa: E402
from settings.shared_valves import SHARED  # noqa: E402
from settings.table import Door, page_texts  # noqa: E402
from shells.valve_messages import PIPE_SHELL, fault_advice  # noqa: E402
from strategies.parameters import StrategyParameters  # noqa: E402

DOCS = ROOT / "docs"
SPECIFICATION = DOCS / "reference" / "specification.md"
_ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| Differs(.+?) \| `", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_IN_BRACKETS = ("code", "param")
_TABLE = re.compile(
    r"(?P<begin><!-- table (?P<name>[a-z-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check every page that has a table; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the tables of the pages.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    stale = [
        (page, text)
        for page, text in current_pages()
        if page.read_text("utf-8") != text
    ]
    for page, text in stale:
        if check:
            message = f"{page.name} is stale; run: python scripts/readme.py"
            print(message, file=sys.stderr)
        else:
            page.write_text(text, "utf-8")
            print(f"wrote {page.name}")
    return 1 if check and stale else 0


def current_pages() -> Iterator[tuple[Path, str]]:
    """Yield each page with the text that it should have.

    Raises KeyError for an unknown table, ValueError for a table that no page shows.
    """
    made = tables()
    pages = {page: page.read_text("utf-8") for page in sorted(DOCS.glob("*.md"))}
    shown: set[str] = set()
    for text in pages.values():
        shown.update(match["name"] for match in _TABLE.finditer(text))
    missing = made.keys() - shown
    if missing:
        raise ValueError(f"No page shows the table {', '.join(sorted(missing))}.")
    for page, text in pages.items():
        yield page, with_tables(text, made)


def tables() -> dict[str, str]:
    """Return the text of every table, by its name."""
    return {
        "valves": valves_table(Valves, "pipe", SHARED),
        "user-valves": valves_table(UserValves, "pipe"),
        "expert-settings": keys_table(PipeExpertKeys),
        "web-search-options": keys_table(WebSearchOptions),
        "image-options": keys_table(ImageOptions),
        "agent-parameters": keys_table(StrategyParameters),
        "agent-valves": valves_table(AgentValves, "pipelines", SHARED),
        "agent-expert-settings": keys_table(AgentExpertKeys),
        "sandbox-options": keys_table(SandboxOptions),
        "sandbox-tool-options": keys_table(StoredSandboxOptions),
        "messages": messages_table(MESSAGES),
        "differences": differences_table(SPECIFICATION.read_text("utf-8")),
    }


def with_tables(text: str, made: Mapping[str, str]) -> str:
    """Return a text with current tables; raises KeyError for an unknown one."""

    def table(match: re.Match[str]) -> str:
        return f"{match['begin']}{made[match['name']]}{match['end']}"

    return _TABLE.sub(table, text)


def valves_table(
    valves: type[BaseModel], door: Door, shared: Sequence[str] = ()
) -> str:
    """Return a row for each valve of a page: its name, its default, what it does."""
    rows = [
        (name, valves.model_fields[name], text)
        for name, text in page_texts(valves, door, shared).items()
    ]
    return _settings_table("Valve", rows)


def keys_table(form: type[BaseModel]) -> str:
    """Return a row for each key of a JSON object."""
    rows = [
        (name, field, field.description or "")
        for name, field in form.model_fields.items()
    ]
    return _settings_table("Key", rows)


def _settings_table(heading: str, rows: Iterable[tuple[str, FieldInfo, str]]) -> str:
    shown: list[tuple[str, str, str]] = []
    for name, field, text in rows:
        # The table has a column for the defaults, which the page shows after the text.
        what_it_does, _, _ = text.partition(" Default: ")
        words = [f"`{word}`" for word in possible_words(field.annotation)]
        if any(word not in text for word in words):
            what_it_does = f"{what_it_does} One of {', '.join(words)}."
        shown.append((f"`{name}`", shown_default(field), what_it_does))
    return markdown_table((heading, "Default", "What it does"), shown)


def possible_words(annotation: object) -> list[str]:
    """Return the words that a setting can be; none if it can be anything else, too."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if word]
    others = [kind for kind in get_args(annotation) if kind is not type(None)]
    return possible_words(others[0]) if len(others) == 1 else []


def differences_table(text: str) -> str:
    """Return a row for each of the specification's that is done otherwise here."""
    rows: list[tuple[str, str, str]] = []
    for row, specified, here in _ROW.findall(text):
        shown = here.removeprefix(":").strip()
        # Links of the page lead from another folder.
        shown = re.sub(r"\]\((?:\.\./)?([\w-]+\.md)\)", r"](\1)", shown)
        shown = shown.replace(
            "](agent-requirements.md)", "](reference/agent-requirements.md)"
        )
        rows.append((row, specified, shown[:1].upper() + shown[1:]))
    return markdown_table(("Row", "Specified", "Here, and why"), rows)


def messages_table(messages: Mapping[str, Mapping[str, str]]) -> str:
    """Return a row for each message that a person can see, with all its causes."""
    causes: dict[str, list[str]] = {}
    for kind, by_code in messages.items():
        for code, message in by_code.items():
            advice = fault_advice(FAULTS.get((kind, code), NO_FAULT), PIPE_SHELL)
            advised = f"{message} {advice}".strip()
            causes.setdefault(advised, []).append(shown_cause(kind, code))
    rows = [
        (shown_message(message), ", ".join(listed))
        for message, listed in causes.items()
    ]
    return markdown_table(("Message", "Cause"), rows)


def shown_cause(kind: str, code: str) -> str:
    """Return an ending with the API's code for it, or the status of its answer."""
    if not code:
        ending = kind.replace("_", " ")
        has_codes = kind in ("incomplete", "failed", "refused")
        return f"{ending}, all others" if has_codes else ending
    if not code.isdecimal():
        return f"{kind} `{code}`"
    is_class = len(code) == 1  # 5 stands for 500 to 599
    return f"HTTP {code}xx" if is_class else f"HTTP {code}"


def shown_message(message: str) -> str:
    """Return a message with dots in place of its placeholders."""
    return _PLACEHOLDER.sub(_dots, message)


def _dots(match: re.Match[str]) -> str:
    return " (…)" if match[1] in _IN_BRACKETS else "…"


def shown_default(field: FieldInfo) -> str:
    """Return a default as a person reads it."""
    if isinstance(field.default, bool):
        return "on" if field.default else "off"
    if field.default in ("", None, ()):
        return "empty"
    return f"`{field.default}`"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    rule = ["---" for _ in head]
    return "".join(_table_row(cells) for cells in (head, rule, *rows))


def _table_row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"


if __name__ == "__main__":
    sys.exit(main())
