"""The bundles this project builds.

The frontmatter lives in the docstring of the entry module: `key: value` lines, a blank
line, then the sentence that every module has. The bundle opens with the key lines as
they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """One bundle: where it starts, what it may contain, where it goes."""

    entry: str
    host_class: str
    packages: tuple[str, ...]  # in reading order; a package imports only earlier ones
    folders: tuple[str, ...]  # path entries that hold the packages
    output: str
    requirements: frozenset[str]  # what may be imported besides the standard library
    frontmatter: tuple[str, ...]
    called_methods: frozenset[str] = frozenset()  # of the host class, never awaited
    awaited_methods: frozenset[str] = frozenset()
    packed: str = ""  # the file of a release that people paste in its place

    def path_of(self, module: str, root: Path) -> Path | None:
        """Return the file of one of our modules; None if there is none."""
        inside = Path(*module.split(".")).with_suffix(".py")
        paths = (root / folder / inside for folder in self.folders)
        return next((path for path in paths if path.is_file()), None)

    def inits(self, root: Path) -> Iterator[tuple[str, Path]]:
        """Yield the name and the file of each `__init__`, of packages and their rooms."""
        for folder in self.folders:
            for package in self.packages:
                for path in sorted((root / folder / package).rglob("__init__.py")):
                    inside = path.relative_to(root / folder).with_suffix("")
                    yield ".".join(inside.parts), path


FUNCTION_KEYS = (
    "title",
    "author",
    "version",
    "required_open_webui_version",
    "license",
    "description",
)
"""What Open WebUI reads of a function."""


def _switch(entry: str, output: str) -> Target:
    """Return the bundle of a switch next to the chat input."""
    return Target(
        entry=f"owui_controls.{entry}",
        host_class="Filter",
        packages=("owui_controls",),
        folders=("pipes",),
        output=f"pipes/{output}.py",
        requirements=frozenset({"pydantic"}),
        frontmatter=FUNCTION_KEYS,
        awaited_methods=frozenset({"inlet"}),
    )


TARGETS = (
    Target(
        entry="owui_manifold.pipe",
        host_class="Pipe",
        packages=(
            "openai_responses",
            "owui_chat",
            "settings",
            "shells",
            "strategies",
            "manifold",
            "owui_host",
            "owui_manifold",
        ),
        folders=("pipes",),
        output="pipes/openai_responses_manifold.py",
        packed="release/openai_responses_packed.py",
        requirements=frozenset({"aiohttp", "pydantic", "open_webui"}),
        frontmatter=FUNCTION_KEYS,
    ),
    Target(
        entry="gpt5_agent.pipeline",
        host_class="Pipeline",
        packages=(
            "openai_responses",
            "owui_chat",
            "settings",
            "shells",
            "strategies",
            "manifold",
            "sandbox",
            "gpt5_agent",
        ),
        folders=("pipes", "pipelines"),
        output="pipelines/gpt5_agent_strategies.py",
        requirements=frozenset({"aiohttp", "pydantic"}),
        frontmatter=("title", "author", "version", "license", "description"),
        called_methods=frozenset({"pipe", "pipelines"}),
        awaited_methods=frozenset(
            {"inlet", "outlet", "on_startup", "on_shutdown", "on_valves_updated"}
        ),
    ),
    _switch("web_search", "openai_responses_search"),
    _switch("effort", "openai_responses_effort"),
    _switch("code_interpreter", "openai_responses_python"),
    _switch("image_generation", "openai_responses_images"),
    _switch("agent", "openai_responses_agent"),
    Target(
        entry="owui_administration.filter",
        host_class="Filter",
        packages=(
            "openai_responses",
            "owui_chat",
            "settings",
            "shells",
            "owui_host",
            "owui_administration",
        ),
        folders=("pipes",),
        output="pipes/openai_responses_administration.py",
        packed="release/openai_responses_administration_packed.py",
        requirements=frozenset({"pydantic", "open_webui"}),
        frontmatter=FUNCTION_KEYS,
        called_methods=frozenset({"stream"}),
        awaited_methods=frozenset({"begin", "inlet", "outlet"}),
    ),
    Target(
        entry="owui_sandbox.tools",
        host_class="Tools",
        packages=(
            "openai_responses",
            "owui_chat",
            "settings",
            "shells",
            "sandbox",
            "owui_host",
            "owui_sandbox",
        ),
        folders=("pipes",),
        output="pipes/openai_responses_sandbox.py",
        packed="release/openai_responses_sandbox_packed.py",
        requirements=frozenset({"pydantic", "open_webui"}),
        frontmatter=FUNCTION_KEYS,
    ),
)
