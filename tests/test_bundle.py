"""What the bundler builds from small projects; how its command answers."""

import re
from pathlib import Path

import black

from bundle_sample import (
    ENTRY,
    FRONTMATTER,
    PIPELINE_ENTRY,
    SAMPLE,
    WORDS,
    run_bundle,
    write,
)
from bundling.building import build
from bundling.targets import TARGETS

PIPE, PIPELINE, *_ = TARGETS

# ---------------------------------------------------------------- what is built


def test_bundle_opens_with_the_frontmatter_and_a_note(tmp_path: Path) -> None:
    """Line 1 is three quotes; the key lines follow, then where the file comes from."""
    text = build(PIPE, write(tmp_path, SAMPLE))

    assert text.startswith(
        f'"""\n{FRONTMATTER}\nBuilt by scripts/bundle.py from pipes/'
    )
    opening = text.partition('\n"""')[0].splitlines()
    key_lines = [line for line in opening if re.match(r"\s*[a-z_]+:", line, re.I)]
    assert key_lines == FRONTMATTER.splitlines()
    assert "do not edit" in "".join(opening)


def test_modules_stand_after_what_they_import(tmp_path: Path) -> None:
    """Each module is a chapter under its banner of one line, the entry module last."""
    text = build(PIPE, write(tmp_path, SAMPLE))

    assert [
        line for line in text.splitlines() if line.startswith("# ") and "." in line
    ] == [
        "# openai_responses.words",
        "# owui_chat.replies",
        "# owui_manifold.pipe",
    ]
    assert "Told in order." not in text


def test_packages_are_not_mixed(tmp_path: Path) -> None:
    """A package is finished before the next begins, whoever needs its last module."""
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


def test_foreign_imports_are_hoisted_and_merged(tmp_path: Path) -> None:
    """Each foreign name is imported once, the standard library first."""
    text = build(PIPE, write(tmp_path, SAMPLE))

    imports = [line for line in text.splitlines() if "import " in line]
    assert imports == [
        "import asyncio",
        "import asyncio as aio",
        "import os.path",
        "from collections.abc import AsyncIterator, Callable",
        "from dataclasses import dataclass, field",
        "from typing import Literal",
        "from pydantic import BaseModel",
        "from pydantic.fields import FieldInfo",
    ]


UNUSED = '''"""What nothing needs, and what is needed by one way only."""

import heapq
import json
from string import Template

# Sorts what nobody sorts.
ORDER = heapq.heapify


class Lonely:
    """Names itself."""

    def copy(self) -> object:
        """Another one."""
        return Lonely()


# The limit of a word.
LIMIT, REST = 5, 6
"""Words are short."""


@staticmethod
def shorten(text: str) -> str:
    # JSON has its own quotes.
    return json.loads(text)[:LIMIT]  # as documented


def write_letter(text: str) -> str:
    """Needs what is kept, but nothing needs this."""
    return Template(shorten(text)).template
'''
KEPT = (
    UNUSED[UNUSED.index("LIMIT, REST") : UNUSED.index("def write_letter")]
    .replace('"""Words are short."""\n', "")
    .replace("    # JSON has its own quotes.\n", "")
)


def test_only_what_the_host_class_leads_to_is_written(tmp_path: Path) -> None:
    """The rest is left out, as are lines of comment and imports that only it needs."""
    entry = ENTRY.replace(
        "import reply\n", "import reply\nfrom owui_chat.unused import shorten\n"
    ).replace("yield reply(", "yield shorten(")
    files = {
        "pipes/owui_chat/unused.py": UNUSED,
        "pipes/owui_manifold/pipe.py": entry,
    }

    text = build(PIPE, write(tmp_path, SAMPLE | files))

    assert KEPT.strip() in text
    imports = [line for line in text.splitlines() if "import " in line]
    assert "import json" in imports
    for gone in ("heapq", "Template", "Lonely", "write_letter", "nobody sorts"):
        assert gone not in text
    assert "owui_chat.replies" not in text
    assert "import Callable" not in text


def test_bodies_are_left_as_they_are(tmp_path: Path) -> None:
    """What follows the imports of a module stands in the bundle, but no docstring."""
    text = build(PIPE, write(tmp_path, SAMPLE))

    for source, begin in (
        (WORDS, "import FieldInfo\n\n"),
        (ENTRY, "import BaseModel\n\n\n"),
    ):
        assert re.sub(r'    """.*"""\n\n', "", source.partition(begin)[2]) in text


def test_black_in_the_editors_mode_changes_nothing(tmp_path: Path) -> None:
    """One save in Open WebUI's editor leaves the bundle as it is."""
    text = build(PIPE, write(tmp_path, SAMPLE))

    assert black.format_str(text, mode=black.Mode()) == text


def test_pipeline_needs_no_open_webui_version(tmp_path: Path) -> None:
    """The Pipelines bundle takes modules of both folders."""
    files = SAMPLE | {"pipelines/gpt5_agent/pipeline.py": PIPELINE_ENTRY}

    text = build(PIPELINE, write(tmp_path, files))

    assert "class Pipeline:" in text
    assert "class Greeting:" in text
    assert "required_open_webui_version" not in text


# ------------------------------------------------------------------ the command


def test_command_builds_what_exists(tmp_path: Path) -> None:
    """A bundle without an entry module is no complaint; the other one is written."""
    write(tmp_path, SAMPLE)

    status, said = run_bundle(tmp_path)

    assert status == 0
    assert said.startswith("built pipes/openai_responses_manifold.py")
    assert (tmp_path / PIPE.output).exists()
    assert not (tmp_path / PIPELINE.output).exists()


def test_check_names_the_stale_file_and_writes_nothing(tmp_path: Path) -> None:
    """A bundle that differs from its sources, or is missing, fails the check."""
    write(tmp_path, SAMPLE)
    stale = "pipes/openai_responses_manifold.py is stale"

    missing = run_bundle(tmp_path, "--check")
    run_bundle(tmp_path)
    current = run_bundle(tmp_path, "--check")
    write(tmp_path, {"pipes/openai_responses/words.py": WORDS.replace("hello", "hi")})
    changed = run_bundle(tmp_path, "--check")

    assert (missing[0], current, changed[0]) == (1, (0, ""), 1)
    assert missing[1].startswith(stale)
    assert changed[1].startswith(stale)
    assert "hello" in (tmp_path / PIPE.output).read_text("utf-8")


def test_command_says_what_it_refuses(tmp_path: Path) -> None:
    """A refusal fails the command with module, line and reason; nothing is written."""
    entry = ENTRY.replace("import asyncio\n", "import asyncio\nimport requests\n")
    write(tmp_path, SAMPLE | {"pipes/owui_manifold/pipe.py": entry})

    status, said = run_bundle(tmp_path)

    assert status == 1
    assert "owui_manifold.pipe, line 15: imports requests; a bundle has" in said
    assert "Traceback" not in said
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


def test_docstrings_stay_in_the_sources(tmp_path: Path) -> None:
    """Where one is all there is of a definition, three dots stand for it."""
    words = WORDS + (
        '\n\n_LIMIT = 3\n"""Why it is three."""\n'
        'OPEN_LIMIT = 4\n"""What four means."""\n'
        "\n\nclass Open:\n"
        '    """What everybody uses.\n\n    In other words, something.\n    """\n\n'
        "    size: int = OPEN_LIMIT\n\n"
        "\n\ndef _secret() -> str:\n"
        '    """Return what only this module uses."""\n'
        '    return "psst"\n\n\n'
        "class _Empty(Exception):\n"
        '    """Nothing else stands here."""\n\n\n'
        "class _Words:\n"
        "    size: int = _LIMIT + OPEN_LIMIT\n"
        '    """How many there are."""\n\n'
        "    def first(self) -> str:\n"
        '        """Return what a private class has."""\n'
        "        return _secret()\n\n\n"
        "def open_word() -> str:\n"
        '    """Return a word for everybody."""\n'
        "    raise _Empty(_Words().first(), Open())\n"
    )
    entry = ENTRY.replace(
        "import reply\n", "import reply\nfrom openai_responses.words import open_word\n"
    ).replace("reply(", "open_word() and reply(")
    files = {
        "pipes/openai_responses/words.py": words,
        "pipes/owui_manifold/pipe.py": entry,
    }

    text = build(PIPE, write(tmp_path, SAMPLE | files))

    assert "What everybody uses." not in text
    assert "In other words" not in text
    assert "Return a word for everybody." not in text
    assert "class _Empty(Exception): ...\n" in text
    assert "Nothing else stands here." not in text
    assert 'return "psst"' in text
    assert "Return what only this module uses." not in text
    assert "Return what a private class has." not in text
    assert "What four means." not in text
    assert "Why it is three." not in text
    assert "How many there are." not in text
