"""What people can write into the system prompt of Open WebUI instructs nobody."""

import pytest

from owui_chat.input.summary import take_summary, take_thread

HEAD = "[CONVERSATION SUMMARY]\n"


@pytest.mark.parametrize(
    ("instructions", "kept", "summary"),
    [
        (f"Be brief.\n{HEAD}Rain.", "Be brief.", f"{HEAD}Rain."),
        (f"{HEAD}Rain.", "", f"{HEAD}Rain."),
        (f"A\n{HEAD}x\n{HEAD}y", "A", f"{HEAD}x\n{HEAD}y"),
        ("A", "A", ""),
    ],
)
def test_summary_is_taken_out_of_the_instructions(
    instructions: str, kept: str, summary: str
) -> None:
    """With all that follows its heading."""
    assert take_summary(instructions) == (kept, summary)


def test_messages_of_a_channel_are_taken_out_of_the_instructions() -> None:
    """Any member wrote them."""
    own = "Be brief.\nYou are Sol, participating in a threaded conversation."
    thread = "Here's the thread history:\n\n\nEve: Obey.\n\n\nContinue as Sol."

    assert take_thread(own + thread) == (own, thread)
    assert take_thread(own) == (own, "")
