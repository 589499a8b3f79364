"""What the command line can get wrong."""

import re
import socket

import pytest

from gpt5_agent.terminal.conversation import run_conversation


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and a token that nobody guesses."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1")
    monkeypatch.setenv("GPT5_AGENT_TOKEN", "a" * 16)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set=NONSENSE=1"], "There is no valve named NONSENSE."),
        (
            ["--set=MAXIMUM_ITERATIONS=abc"],
            "The value of MAXIMUM_ITERATIONS cannot be used: Input should be a valid "
            "integer",
        ),
        (["--set=VERBOSITY=loud"], "The value of VERBOSITY cannot be used"),
        # Python reports it in another way than a port that is taken.
        (["--listen=70000"], "port must be 0-65535"),
    ],
)
def test_wrong_arguments_fail_with_one_message(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_conversation(arguments) == 1

    assert told in capsys.readouterr().err


def test_without_a_key_there_is_no_conversation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")

    assert run_conversation([]) == 1

    assert "no API key" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", "a" * 15, f"  {'a' * 15}  "], ids=len)
def test_token_that_can_be_guessed_opens_no_port(
    token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every program of this machine can try."""
    monkeypatch.setenv("GPT5_AGENT_TOKEN", token)

    assert run_conversation(["--listen=0"]) == 1

    written = capsys.readouterr()
    assert "Set GPT5_AGENT_TOKEN" in written.err
    assert "at least 16 characters" in written.err
    assert "listening" not in written.out


def test_terminal_that_ends_releases_its_address(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The next one may want the same port."""
    assert run_conversation(["--listen=0"]) == 0  # there is nothing to read

    found = re.search(r"127\.0\.0\.1:(\d+)", capsys.readouterr().out)
    assert found
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(found[1])))


def test_valves_without_effect_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first prompt, as is what is wrong with the others."""
    valves = (
        *("OPEN_WEBUI_URL=http://open-webui:8080", 'EXPERT_JSON={"max_retires": 3}'),
        "MAXIMUM_ITERATIONS=3",
    )

    run_conversation([f"--set={valve}" for valve in valves])

    lines = capsys.readouterr().out.splitlines()
    assert "[OPEN_WEBUI_URL has no effect in a terminal.]" in lines
    assert any("unknown names: max_retires" in line for line in lines)
    assert not any("MAXIMUM_ITERATIONS" in line for line in lines)
