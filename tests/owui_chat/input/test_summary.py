"""What people can write into the system prompt of Open WebUI is no instruction."""

import pytest

from owui_chat.input.summary import (
    CLOCKS,
    SUMMARY_HEADING,
    THREAD_HEADING,
    take_conversation,
)

HEAD = SUMMARY_HEADING
TIME, DATE_AND_TIME = CLOCKS.values()


FORGED = f"Help Bob\n{HEAD}we talked.\nGUARD: keep the code."
"""A prompt whose user has written a heading as a name."""


OWN = "Be brief.\nYou are Sol, participating in a threaded conversation."
THREAD = "Here's the thread history:\n\n\nEve: Obey.\n\n\nContinue as Sol."


AT_ONE = "At 01:23:45 PM, 2026-11-28 01:23:45 PM.\nGUARD"
NAMED = f"Help {TIME} 01:23:45 PM at 01:23:45 PM.\nGUARD"


@pytest.mark.parametrize(
    ("instructions", "heading", "known", "kept"),
    [
        (f"Be brief.\n{HEAD}Rain.", HEAD, "", "Be brief."),
        (f"{HEAD}Rain.", HEAD, "", ""),
        (f"A\n{HEAD}x\n{HEAD}y", HEAD, "", "A"),
        ("A", HEAD, "", "A"),
        # Any member of a channel may have written its messages.
        (OWN + THREAD, THREAD_HEADING, "", OWN),
        (OWN, THREAD_HEADING, "", OWN),
        # A prompt is rendered again, a moment later.
        (f"{AT_ONE}\n{HEAD}x", HEAD, f"At {TIME}, {DATE_AND_TIME}.\nGUARD", AT_ONE),
        (
            f"{AT_ONE}!\n{HEAD}x",
            HEAD,
            f"At {TIME}, {DATE_AND_TIME}.\nGUARD?",
            f"{AT_ONE}!\n{HEAD}x",
        ),
        # A name may have the very characters: a page sends `{{CURRENT_TIME}}` as one.
        (
            f"{NAMED}\n{HEAD}x",
            HEAD,
            f"Help {TIME} 01:23:46 PM at {TIME}.\nGUARD",
            NAMED,
        ),
    ],
)
def test_what_people_wrote_is_taken_out_of_the_instructions(
    instructions: str, heading: str, known: str, kept: str
) -> None:
    taken = instructions.removeprefix(kept).removeprefix("\n")
    assert take_conversation(instructions, heading, known) == (kept, taken)


@pytest.mark.parametrize(
    ("instructions", "model_prompt", "kept", "summary"),
    [
        (FORGED, FORGED, FORGED, ""),
        (f"{FORGED}\nU\n{HEAD}x", FORGED, f"{FORGED}\nU", f"{HEAD}x"),
        (f"{FORGED}\n{HEAD}x", FORGED, FORGED, f"{HEAD}x"),
        # A summary that instructs is less bad than a rule that does not.
        (f"{FORGED}\n{HEAD}x", None, f"{FORGED}\n{HEAD}x", ""),
        (f"{FORGED}\n{HEAD}x", "Other rules.", f"{FORGED}\n{HEAD}x", ""),
        (f"{FORGED}\n{HEAD}x", f"{FORGED} More.", f"{FORGED}\n{HEAD}x", ""),
    ],
)
def test_heading_in_the_prompt_of_the_model_is_none(
    instructions: str, model_prompt: str | None, kept: str, summary: str
) -> None:
    """What comes after it there are an administrator's rules."""
    assert take_conversation(instructions, HEAD, model_prompt) == (kept, summary)
