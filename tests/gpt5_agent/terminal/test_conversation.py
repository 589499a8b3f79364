"""What the command line can get wrong."""

import pytest

from gpt5_agent.terminal.conversation import run_conversation

WRONG: list[tuple[tuple[str, ...], str]] = [
    ((), "no API key"),
    (("--set=NONSENSE=1",), "There is no valve named NONSENSE."),
    (("--listen=0",), "Set GPT5_AGENT_TOKEN"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_what_cannot_begin_is_said(
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one sentence, with a status of failure."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GPT5_AGENT_TOKEN", raising=False)
    if arguments:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1")

    assert run_conversation(arguments) == 1

    assert sentence in capsys.readouterr().err
