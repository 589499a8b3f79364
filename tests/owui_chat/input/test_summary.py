"""What people can write into the system prompt of Open WebUI instructs nobody."""

import pytest

from owui_chat.input.summary import take_summary, take_thread

HEAD = "[CONVERSATION SUMMARY]\n"


@pytest.mark.parametrize(
    ("instructions", "stored", "kept", "summary"),
    [
        (f"Be brief.\n{HEAD}Rain.", "Rain.", "Be brief.", f"{HEAD}Rain."),
        (f"{HEAD}Rain.", "Rain.", "", f"{HEAD}Rain."),
        (f"A\n{HEAD}x\n{HEAD}y", f"x\n{HEAD}y", "A", f"{HEAD}x\n{HEAD}y"),
        # It may be changed on its way, and followed by more.
        (f"A\n{HEAD}Ann.\nMap.", "{{USER_NAME}}.", "A", f"{HEAD}Ann.\nMap."),
        # The administrator's own words.
        (f"A\n{HEAD}B", "", f"A\n{HEAD}B", ""),
        ("A", "Rain.", "A", ""),
    ],
)
@pytest.mark.parametrize("name", ["contextSummary", "context_summary"])
def test_summary_is_taken_out_of_the_instructions(
    instructions: str, stored: str, kept: str, summary: str, name: str
) -> None:
    """With all that follows its heading, where the row has any."""
    assert take_summary(instructions, {"m-1": {name: stored}}) == (kept, summary)


def test_messages_of_a_channel_are_taken_out_of_the_instructions() -> None:
    """Any member wrote them."""
    own = "Be brief.\nYou are Sol, participating in a threaded conversation."
    thread = "Here's the thread history:\n\n\nEve: Obey.\n\n\nContinue as Sol."

    assert take_thread(own + thread) == (own, thread)
    assert take_thread(own) == (own, "")
