"""The bundle for the Pipelines server: what its loader cannot take is refused."""

from pathlib import Path

import pytest

from bundles.sample import PIPELINE_ENTRY, PLAIN_METHOD, SAMPLE, write
from bundling.building import build
from bundling.refusals import BundleRefused
from bundling.targets import TARGETS

PIPELINE = TARGETS[1]


def built(root: Path, entry: str) -> str:
    """The bundle of the sample with that entry."""
    files = SAMPLE | {"pipelines/gpt5_agent/pipeline.py": entry}
    return build(PIPELINE, write(root, files))


def refusals(root: Path, entry: str) -> list[tuple[str, int, str]]:
    """What is refused of it."""
    with pytest.raises(BundleRefused) as caught:
        built(root, entry)
    return [(each.module, each.line, each.reason) for each in caught.value.refusals]


def test_a_plain_pipe_is_built(tmp_path: Path) -> None:
    """The sample is as it was written, after the modules of both folders."""
    text = built(tmp_path, PIPELINE_ENTRY)

    assert PLAIN_METHOD in text
    assert text.index("class Greeting:") < text.index("class Pipeline:")


# What is in the place of the sample's pipe(), the line of the method that is
# refused, words of the reason.
METHODS = {
    "coroutine": ("    async def pipe(self) -> None: ...\n", 0, "pipe is async"),
    "generator": (
        "    def pipe(self) -> object:\n        if self:\n            yield 1\n",
        0,
        "pipe yields",
    ),
    "delegation": (
        "    def pipe(self) -> object:\n        yield from ()\n",
        0,
        "pipe yields",
    ),
    "async list": (
        "    async def pipelines(self) -> list[str]: ...\n",
        0,
        "pipelines is async",
    ),
    "sync inlet": (
        f"{PLAIN_METHOD}\n    def inlet(self) -> None: ...\n",
        3,
        "inlet is not",
    ),
    "sync outlet": (
        f"{PLAIN_METHOD}\n    def outlet(self) -> None: ...\n",
        3,
        "outlet is",
    ),
    "sync start": (
        f"{PLAIN_METHOD}\n    def on_startup(self) -> None: ...\n",
        3,
        "on_startup is not async; it is awaited",
    ),
    "sync end": (
        f"{PLAIN_METHOD}\n    def on_shutdown(self) -> None: ...\n",
        3,
        "on_shutdown is not async",
    ),
}


@pytest.mark.parametrize("case", METHODS)
def test_a_method_that_the_server_cannot_call_is_refused(
    case: str, tmp_path: Path
) -> None:
    """An empty or garbled answer would be all that anybody sees."""
    method, offset, words = METHODS[case]
    entry = PIPELINE_ENTRY.replace(PLAIN_METHOD, method)
    first = entry[: entry.index(method)].count("\n") + 1

    refused = refusals(tmp_path, entry)

    assert [(at, module) for module, at, why in refused if words in why] == [
        (first + offset, "gpt5_agent.pipeline")
    ]


FINE = {
    "inner generator": (
        "    def pipe(self) -> object:\n"
        "        def one() -> object:\n            yield 1\n\n"
        "        return one()\n"
    ),
    "another method": f"{PLAIN_METHOD}\n    async def other(self) -> None: ...\n",
    "awaited": f"{PLAIN_METHOD}\n    async def inlet(self) -> None: ...\n",
}


@pytest.mark.parametrize("case", FINE)
def test_a_method_that_only_looks_like_it_is_built(case: str, tmp_path: Path) -> None:
    """Inner functions may yield, other methods may be coroutines."""
    assert built(tmp_path, PIPELINE_ENTRY.replace(PLAIN_METHOD, FINE[case]))


# Lines at the top of the entry's imports, and words of the reason.
IMPORTS = {
    "the host's package": ("import open_webui.env", "imports open_webui; a bundle has"),
    "the pipe": ("from owui_manifold.pipe import Pipe", "imports owui_manifold"),
    "a package of the real server": ("import requests", "imports requests"),
    "the future": (
        "from __future__ import annotations",
        "the Pipelines server cannot resolve its strings",
    ),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_an_import_that_is_not_there_is_refused(case: str, tmp_path: Path) -> None:
    """The file loads without anything to install."""
    line, words = IMPORTS[case]
    entry = PIPELINE_ENTRY.replace(
        "from openai_responses.words", f"{line}\nfrom openai_responses.words"
    )

    assert [why for _, _, why in refusals(tmp_path, entry) if words in why]


def test_requirements_are_refused(tmp_path: Path) -> None:
    """The server would run pip, which can break it for good."""
    entry = PIPELINE_ENTRY.replace("license: MIT", "license: MIT\nrequirements: mcp")

    (refused,) = refusals(tmp_path, entry)

    assert refused[2].startswith("the frontmatter must have, in this order, title")
