"""What the bundler builds from small projects; how its command answers."""

import collections.abc
import re
from pathlib import Path

import black

from bundles.sample import (
    ENTRY,
    FRONTMATTER,
    PIPELINE_ENTRY,
    PLAIN_METHOD,
    REPLIES,
    SAMPLE,
    WORDS,
    run_bundle,
    write,
)
from bundling.building import build
from bundling.chapters import RULER
from bundling.targets import TARGETS

PIPE, PIPELINE, *_ = TARGETS


def format_by_editor(text: str) -> str:
    return black.format_str(text, mode=black.Mode())


def test_bundle_of_the_sample(tmp_path: Path) -> None:
    """Key lines and a note; each foreign name once; a chapter for each module.

    Modules stand after what they import; their banners are their docstrings.
    """
    text = build(PIPE, write(tmp_path, SAMPLE))

    assert text.startswith(
        f'"""\n{FRONTMATTER}\nDo not paste this file into Open WebUI.'
    )
    assert "\nBuilt by scripts/bundle.py from pipes/" in text
    opening = text.partition('\n"""')[0].splitlines()
    key_lines = [line for line in opening if re.match(r"\s*[a-z_]+:", line, re.I)]
    assert key_lines == FRONTMATTER.splitlines()
    assert "do not edit" in "".join(opening)
    assert [line for line in text.splitlines() if "import " in line] == [
        "import asyncio",
        "import asyncio as aio",
        "import os.path",
        "from collections.abc import AsyncIterator, Callable",
        "from dataclasses import dataclass, field",
        "from typing import Literal",
        "from pydantic import BaseModel",
        "from pydantic.fields import FieldInfo",
    ]
    assert re.findall(f"^{RULER}\n# (.+)\n#\n", text, re.MULTILINE) == [
        "openai_responses.words",
        "owui_chat.replies",
        "owui_manifold.pipe",
    ]
    banner = f"""
# owui_manifold.pipe
#
# The story of a request.
#
# Told in order.
{RULER}


class Valves(BaseModel):
"""
    assert banner in text
    assert text.count("title: A Pipe") == 1


def test_packages_are_not_mixed(tmp_path: Path) -> None:
    late = '"""A late word."""\n\nLATE = "late"\n'
    entry = ENTRY.replace(
        "import reply\n", "import reply\nfrom openai_responses.zebra import LATE\n"
    ).replace("reply(Greeting(WORD))", "reply(Greeting(WORD + LATE))")
    files = {
        "pipes/openai_responses/zebra.py": late,
        "pipes/owui_manifold/pipe.py": entry,
    }

    text = build(PIPE, write(tmp_path, SAMPLE | files))

    assert text.index("LATE =") < text.index("def reply(")


def test_bodies_keep_docstrings_and_comments(tmp_path: Path) -> None:
    """What follows the imports of a module is in the bundle, byte for byte."""
    words = f'''{WORDS}

# The limit of a word.
LIMIT = 3
"""Why it is three."""


class Empty(Exception):
    """Nothing else stands here."""


def shorten(text: str) -> str:
    """Return the head of a text; nothing here calls this."""
    # A comment of its own.
    return text[:LIMIT]  # as documented
'''
    files = SAMPLE | {"pipes/openai_responses/words.py": words}

    text = build(PIPE, write(tmp_path, files))

    for source, last_import in (
        (words, "import FieldInfo\n\n"),
        (ENTRY, "import BaseModel\n\n\n"),
    ):
        assert source.partition(last_import)[2] in text


def test_black_in_the_editors_mode_changes_nothing(tmp_path: Path) -> None:
    """Banners and merged imports have Black's form, whatever the bodies begin with."""
    many = ", ".join(sorted(set(collections.abc.__all__) - {"Callable"}))
    exact = "from itertools import accumulate, chain, combinations, compress, cycle, groupby"
    words = WORDS.replace(
        "from dataclasses",
        f"from collections.abc import {many}\n{exact}\nfrom dataclasses",
    )
    replies = REPLIES.replace("@dataclass", "# Said once.\n@dataclass")
    sources = {
        "pipes/openai_responses/words.py": words,
        "pipes/owui_chat/replies.py": replies,
    }
    formatted = {path: format_by_editor(text) for path, text in sources.items()}

    text = build(PIPE, write(tmp_path, SAMPLE | formatted))

    assert "from collections.abc import (\n    AsyncGenerator,\n" in text
    assert f"\n{exact}\n" in text
    assert format_by_editor(text) == text


def test_pipeline_needs_no_open_webui_version(tmp_path: Path) -> None:
    files = SAMPLE | {"pipelines/gpt5_agent/pipeline.py": PIPELINE_ENTRY}

    text = build(PIPELINE, write(tmp_path, files))

    assert PLAIN_METHOD in text
    assert text.index("class Greeting:") < text.index("class Pipeline:")
    assert "required_open_webui_version" not in text


def test_command_builds_what_has_an_entry_and_check_names_what_is_stale(
    tmp_path: Path,
) -> None:
    write(tmp_path, SAMPLE)
    stale = "pipes/openai_responses_manifold.py is stale"

    missing = run_bundle(tmp_path, "--check")
    status, output = run_bundle(tmp_path)
    current = run_bundle(tmp_path, "--check")
    write(tmp_path, {"pipes/openai_responses/words.py": WORDS.replace("hello", "hi")})
    changed = run_bundle(tmp_path, "--check")

    assert status == 0
    assert output.startswith("built pipes/openai_responses_manifold.py")
    assert not (tmp_path / PIPELINE.output).exists()
    assert (missing[0], current, changed[0]) == (1, (0, ""), 1)
    assert missing[1].startswith(stale)
    assert changed[1].startswith(stale)
    assert "hello" in (tmp_path / PIPE.output).read_text("utf-8")


def test_command_reports_module_line_and_reason(tmp_path: Path) -> None:
    entry = ENTRY.replace("import asyncio\n", "import asyncio\nimport requests\n")
    write(tmp_path, SAMPLE | {"pipes/owui_manifold/pipe.py": entry})

    status, output = run_bundle(tmp_path)

    assert status == 1
    assert "owui_manifold.pipe, line 15: imports requests; a bundle has" in output
    assert "Traceback" not in output
    assert not (tmp_path / PIPE.output).exists()


def test_same_bytes_for_any_hash_seed(tmp_path: Path) -> None:
    """The order of a set decides nothing in the bundle."""
    write(tmp_path, SAMPLE)

    built = set()
    for seed in ("0", "1", "4242"):
        run_bundle(tmp_path, seed=seed)
        built.add((tmp_path / PIPE.output).read_bytes())
        (tmp_path / PIPE.output).unlink()

    assert len(built) == 1
