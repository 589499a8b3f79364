"""Secrets that may be shown: references, and what only this server can read."""

import json
import os
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gpt5_agent.shell.sealing import (
    reveal_secret,
    seal_secret,
    seal_values,
    signing_secret,
)
from openai_responses.errors import InvalidRequest

SECRET = "sk-simulator-12345"


@pytest.mark.parametrize("secret", ["Schlüssel 🗝", "x" * 5000])
def test_sealed_secret_is_revealed_unchanged(secret: str) -> None:
    """It cannot be read where it is shown, and is whole where it is used."""
    shown = seal_secret(f" {secret}\n")

    assert shown.startswith("sealed:")
    assert secret not in shown
    assert reveal_secret(shown, "API_KEY") == secret


@pytest.mark.parametrize("kept", ["", "env:NAME", "file:/run/key", "sealed:gAAA"])
def test_reference_is_not_sealed(kept: str) -> None:
    """Saving the valves again changes nothing."""
    assert seal_secret(f" {kept} ") == kept


def test_the_key_is_the_owners_alone(folder: Path) -> None:
    """It is made once, next to the pipelines, where the loader does not look."""
    first = seal_secret(SECRET)
    second = seal_secret(SECRET)

    (key,) = folder.iterdir()
    assert key.suffix != ".py"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert first != second
    assert reveal_secret(first, "API_KEY") == reveal_secret(second, "API_KEY") == SECRET


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `pipelines` that is no server's, in the working directory."""
    monkeypatch.delenv("PIPELINES_DIR")
    monkeypatch.delitem(sys.modules, "config", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pipelines"
    folder.mkdir()
    return folder


def test_without_a_server_the_key_stays_in_memory(checkout: Path) -> None:
    """A checkout gets no file; what was sealed can be read as long as we run."""
    shown = seal_secret(SECRET)

    assert SECRET not in shown
    assert reveal_secret(shown, "API_KEY") == SECRET
    assert signing_secret("EMPTY") == signing_secret("EMPTY")
    assert not any(checkout.iterdir())
    assert list(checkout.parent.iterdir()) == [checkout]


def test_server_without_a_variable_has_the_key_in_its_folder(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module `config` says which folder that is (config.py of the server)."""
    config = ModuleType("config")
    monkeypatch.setattr(config, "PIPELINES_DIR", "./pipelines", raising=False)
    monkeypatch.setitem(sys.modules, "config", config)

    shown = seal_secret(SECRET)

    assert [file.name for file in checkout.iterdir()] == ["gpt5_agent.key"]
    assert reveal_secret(shown, "API_KEY") == SECRET


def test_reference_is_read_when_it_is_needed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable, or a file as container platforms mount secrets; a plain text is itself."""
    monkeypatch.setenv("KEY_OF_A_TEST", f"{SECRET}\n")
    (folder / "key.txt").write_text(f"{SECRET}\n")

    for given in (" env: KEY_OF_A_TEST ", f"\tfile: {folder}/key.txt\n", f" {SECRET}"):
        assert reveal_secret(given, "API_KEY") == SECRET
    assert reveal_secret("", "API_KEY") == ""


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("env:", "NO_SUCH_VARIABLE_OF_OURS"),
        ("env:", "BLANK_VARIABLE_OF_OURS"),
        ("file:", "/no/such/file"),
        ("file:", "/usr/"),
        ("file:", "\0"),
        ("sealed:", "gAAAAABcut"),
        ("sealed:", "ü"),
    ],
)
def test_unreadable_secret_is_refused(
    reference: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the valve and the way out, and nothing of the value."""
    monkeypatch.setenv("BLANK_VARIABLE_OF_OURS", "\n")
    seal_secret("so that there is a key")

    with pytest.raises(InvalidRequest) as refused:
        reveal_secret(f"{reference}{value}", "EXTRA_HEADERS")

    assert refused.value.remedy == "setup"
    assert "EXTRA_HEADERS cannot be read" in str(refused.value)
    assert "env:NAME" in str(refused.value)
    assert value not in str(refused.value)


def test_another_key_reads_nothing(folder: Path) -> None:
    """A lost key is a secret to be entered again."""
    shown = seal_secret(SECRET)
    next(folder.iterdir()).unlink()

    with pytest.raises(InvalidRequest):
        reveal_secret(shown, "API_KEY")
    seal_secret("which makes another key")
    with pytest.raises(InvalidRequest):
        reveal_secret(shown, "API_KEY")


def test_key_of_a_process_that_was_faster_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = b"A" * 43 + b"="
    link = os.link

    def link_later(made: str, path: str) -> None:
        Path(path).write_bytes(key)
        link(made, path)

    monkeypatch.setattr(os, "link", link_later)
    seal_secret(SECRET)

    assert [file.read_bytes() for file in folder.iterdir()] == [key]


@pytest.mark.parametrize("way", ["no folder", "no package", "no key", "empty key"])
def test_secret_that_cannot_be_sealed_is_dropped(
    way: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is better lost than shown to whoever reads the valves."""
    match way:
        case "no folder":
            monkeypatch.setenv("PIPELINES_DIR", str(folder / "not there"))
        case "no package":
            monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
        case _:
            content = "no key" if way == "no key" else "\n"
            (folder / "gpt5_agent.key").write_text(content)

    assert seal_secret(SECRET) == "sealed:"
    with pytest.raises(InvalidRequest):
        reveal_secret(seal_secret(SECRET), "API_KEY")


def test_the_values_of_an_object_are_sealed_one_by_one() -> None:
    """The names of headers stay legible, references stay what they are."""
    typed = json.dumps({"X-Key": SECRET, "X-Team": "env:TEAM", "n": 1})
    shown = seal_values(f"\N{NO-BREAK SPACE}{typed}")  # as pages are copied

    assert SECRET not in shown
    headers = json.loads(shown)
    assert headers["X-Team"] == "env:TEAM"
    assert headers["n"] == 1
    assert reveal_secret(headers["X-Key"], "EXTRA_HEADERS") == SECRET
    assert seal_values(shown) == shown
    assert seal_values("{}") == "{}"  # no secret: as a whole it would be no object


@pytest.mark.parametrize("text", ["X-Key: abcdef", '["abcdef"]', "[" * 100_000])
def test_value_that_is_not_an_object_is_sealed_whole(text: str) -> None:
    """Also what somebody typed wrongly may be a secret."""
    assert reveal_secret(seal_values(text), "EXTRA_HEADERS") == text


@pytest.mark.parametrize(
    "key",
    [
        "",
        "EMPTY",
        "none",
        "sk-1234",
        "sk-no-key-required",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx1",
        "<your-openai-api-key>",
        "abcdefg1abcde",  # 13 characters
        "abcdef1abcdef1",  # seven different ones
        "abcdefghijklmn",  # no digit
    ],
)
def test_placeholder_signs_nothing(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own secret does: that of its file, else of the process.

    A file that another process has only begun to write is none yet.
    """
    with_empty_file = tmp_path / "empty"
    with_empty_file.mkdir()
    (with_empty_file / "gpt5_agent.key").write_text("\n")
    for folder in (tmp_path, tmp_path / "not there", with_empty_file):
        monkeypatch.setenv("PIPELINES_DIR", str(folder))

        secret = signing_secret(key)

        assert len(secret) > 40
        assert secret == signing_secret("dummy")


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-4fGh7Jk2Lm9Np3Qr5St8Uv",
        "0123456789abcdef0123456789abcdef",
        "abcdefg1abcdef",  # just enough, all of them
    ],
)
def test_key_that_nobody_guesses_signs(key: str) -> None:
    """All copies of the pipeline have it."""
    assert signing_secret(f" {key}") == key
