"""A small project that bundles."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = '[project]\nname = "sample"\nversion = "1.2.3"\n'
FRONTMATTER = """title: A Pipe
author: Someone
version: 1.2.3
required_open_webui_version: 0.11.4
license: MIT
description: Says hello.
"""
ENTRY = f'''"""
{FRONTMATTER}
The story of a request.

Told in order.
"""

import asyncio
from collections.abc import AsyncIterator

from openai_responses.words import WORD, Greeting
from owui_chat.replies import reply
from pydantic import BaseModel


class Valves(BaseModel):
    """What the administrator chooses."""

    loud: bool = False


class Pipe:
    """Answers a chat."""

    Valves = Valves

    async def pipe(self, body: dict[str, object]) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield reply(Greeting(WORD))
'''
ASYNC_METHOD = """    async def pipe(self, body: dict[str, object]) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield reply(Greeting(WORD))
"""
PLAIN_METHOD = """    def pipe(self, body: dict[str, object]) -> str:
        return reply(Greeting(WORD))
"""
PIPELINE_ENTRY = (
    ENTRY.replace("class Pipe:", "class Pipeline:")
    .replace("required_open_webui_version: 0.11.4\n", "")
    .replace(ASYNC_METHOD, PLAIN_METHOD)
    .replace("import asyncio\nfrom collections.abc import AsyncIterator\n\n", "")
)
WORDS = '''"""The words of a greeting."""

import asyncio as aio
import os.path
from dataclasses import dataclass, field
from typing import Literal

from pydantic.fields import FieldInfo

WORD = "hello"  # the first word


@dataclass(frozen=True, slots=True)
class Greeting:
    """A word said to someone."""

    word: str
    tone: Literal["warm", "cool"] = "warm"
    info: FieldInfo | None = None
    paths: tuple[str, ...] = field(default_factory=lambda: (os.path.sep, aio.__doc__))
'''
REPLIES = '''"""What is said back."""

from collections.abc import Callable
from dataclasses import dataclass

from openai_responses.words import Greeting


@dataclass(frozen=True)
class Reply:
    """An answer with the function that says it."""

    say: Callable[[str], str]


def reply(greeting: Greeting) -> str:

    return Reply(str.title).say(greeting.word)
'''
SAMPLE = {
    "pyproject.toml": PYPROJECT,
    "pipes/owui_manifold/pipe.py": ENTRY,
    "pipes/openai_responses/__init__.py": '"""Nothing but a sentence."""\n',
    "pipes/openai_responses/words.py": WORDS,
    "pipes/owui_chat/replies.py": REPLIES,
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def run_bundle(root: Path, *arguments: str, seed: str = "0") -> tuple[int, str]:
    """Run the command on a project that has its own copy of it."""
    if not (root / "scripts").exists():
        (root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "bundle.py", root / "scripts")
        shutil.copytree(ROOT / "scripts" / "bundling", root / "scripts" / "bundling")
    done = subprocess.run(
        [sys.executable, str(root / "scripts" / "bundle.py"), *arguments],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
