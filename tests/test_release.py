"""The files that people download: what is in them, and that they are current."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import black
import pytest

import release
from bundling.targets import FUNCTION_KEYS, TARGETS
from openai_responses.models.resolve import resolve_model
from owui_manifold.config import comma_list
from owui_manifold.valves import Valves
from releasing.imports import describe, frontmatter, models_file
from releasing.packed import PackedError, pack, unpack

PIPE = (release.ROOT / release.READABLE).read_text("utf-8")
MOST_BYTES = 200_000
SMALL = '"""\ntitle: Small\nversion: 1.0.0\n\nBuilt.\n"""\n\nWORD = "hello"\n'


def released(path: str) -> str:
    """A file of the release."""
    return (release.ROOT / path).read_text("utf-8")


def test_the_release_is_current() -> None:
    """Made of the built files as they are now."""
    assert release.main(["--check"]) == 0


def test_the_packed_file_holds_the_pipe() -> None:
    """Byte for byte, small, and as Black leaves it."""
    packed = released(release.PACKED)

    assert unpack(packed) == PIPE
    assert release.verify(release.ROOT / release.PACKED) == 0
    assert len(packed.encode()) <= MOST_BYTES
    assert black.format_str(packed, mode=black.Mode()) == packed
    assert frontmatter(packed) == frontmatter(PIPE)
    assert tuple(frontmatter(packed)) == FUNCTION_KEYS


def test_the_packed_file_is_the_same_pipe_when_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the host loads it: the settings and the lines are those of the readable one."""
    module = types.ModuleType("a_packed_pipe")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    exec(released(release.PACKED), vars(module))

    loaded: Any = module
    assert loaded.Pipe().valves == loaded.Pipe.Valves()
    assert list(loaded.Pipe.Valves.model_fields) == list(Valves.model_fields)
    code = loaded.Pipe.pipe.__code__
    assert code.co_filename == "openai_responses_manifold.py"
    assert "def pipe(" in PIPE.splitlines()[code.co_firstlineno - 1]
    assert not hasattr(module, "PACKED")


@pytest.mark.parametrize(
    ("old", "new"),
    [("PACKED", "OTHER"), ('"""\n"""', ""), ('DIGEST = "', 'DIGEST = "0'), ("c", "d")],
)
def test_another_file_is_not_unpacked(old: str, new: str) -> None:
    """Neither one that was changed nor one of another kind."""
    packed = pack(SMALL, "pipes/small.py")
    head, assignment, rest = packed.partition("\nDIGEST")

    with pytest.raises(PackedError):
        unpack(head + (assignment + rest).replace(old, new) if new else SMALL)


def test_a_changed_file_does_not_run() -> None:
    """It says what to do."""
    packed = pack(SMALL, "pipes/small.py").replace('DIGEST = "', 'DIGEST = "0')

    with pytest.raises(ImportError, match="Download it again"):
        exec(packed, {})


def test_verify_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A source of somebody else, and no packed file at all."""
    other, none = tmp_path / "other.py", tmp_path / "none.py"
    other.write_text(pack(SMALL, "pipes/small.py"))
    none.write_text(SMALL)

    assert [release.main(["--verify", str(one)]) for one in (other, none)] == [1, 1]
    said = capsys.readouterr().err
    assert "holds another source" in said
    assert "no packed file" in said


def test_a_stale_file_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check writes nothing; the next run brings it up to date."""
    filters = [one.output for one in TARGETS if one.host_class == "Filter"]
    for path in (release.READABLE, *filters):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(released(path))
    monkeypatch.setattr(release, "ROOT", tmp_path)

    assert release.main(["--check"]) == 1
    assert f"{release.PACKED} is stale" in capsys.readouterr().err
    assert release.main([]) == 0
    assert release.main(["--check"]) == 0
    (tmp_path / release.PACKED).write_text(pack(SMALL, "pipes/small.py"))
    assert release.main(["--check"]) == 1


def test_functions_have_names_and_descriptions() -> None:
    """The pipe and three switches, each with the source of its built file."""
    functions = json.loads(released(release.FUNCTIONS))

    assert [one["id"] for one in functions] == [
        "openai_responses",
        "openai_responses_search",
        "openai_responses_effort",
        "openai_responses_python",
    ]
    assert functions[0]["content"] == PIPE
    assert all(one["name"] and one["meta"]["description"] for one in functions)
    # Names of Open WebUI's own switches.
    taken = {"web search", "image", "code interpreter"}
    assert not {one["name"].lower() for one in functions} & taken


def test_the_pipe_finds_the_filter_for_administrators() -> None:
    """Its id is the one that the pipe looks for."""
    (one,) = json.loads(released(release.ADMINISTRATION))

    assert one["id"] == release.ADMINISTRATION_ID
    assert f'_ADMINISTRATION = "{one["id"]}"' in PIPE
    assert "class Filter" in one["content"]


def test_models_are_those_of_the_settings() -> None:
    """For everybody, with icon, description, the switches and native tools."""
    models = json.loads(released(release.MODELS))

    names = comma_list(Valves().MODEL_ID)
    assert [one["id"] for one in models] == [f"openai_responses.{n}" for n in names]
    for one in models:
        assert one["access_grants"][0]["principal_id"] == "*"
        assert one["params"] == {"function_calling": "native"}
        assert one["meta"]["profile_image_url"].startswith("data:image/png;base64,")
        assert one["meta"]["filterIds"] == list(release.filters())
    assert len({one["meta"]["description"] for one in models}) == len(models)


def test_a_model_without_eyes() -> None:
    """It is not offered pictures."""
    blind, seeing = json.loads(models_file("p", ["chatgpt-image-latest", "gpt-5.2"], []))

    assert blind["meta"]["capabilities"]["vision"] is False
    assert seeing["meta"]["capabilities"]["vision"] is True


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("gpt-6.1-sol-high", "for hard questions and long work"),
        ("gpt-6-luna", "small model"),
        ("my-deployment", "A model of OpenAI"),
    ],
)
def test_a_description(name: str, described: str) -> None:
    """By the size in the name; with an effort, if it has one."""
    text = describe(resolve_model(name))

    assert described in text
    assert ("Effort: high." in text) is name.endswith("-high")
