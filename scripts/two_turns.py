"""One chat of two turns as a browser has it, to see what the second one replays."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from hosts.people.client import Json
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from simulator import RecordedRequest, Simulator

QUESTIONS = (
    "A bat and a ball cost 1.10 together, the bat 1.00 more than the ball. "
    "What does the ball cost? Think it through.",
    "And if both cost 1.30 together?",
)
KEPT_UNDER = "openai_responses_pipe"
TURN_SECONDS = 300


async def check_two_turns(user: User, model: str, simulator: Simulator | None) -> int:
    """Ask twice, print what was replayed; 0 if the reasoning was, else 1."""
    if simulator:
        simulator.forget()  # what another model was asked before
    async with Tab(user) as tab:
        print(f"\nTwo turns with {model}, streamed:")
        first = await tab.send(model, QUESTIONS[0], seconds=TURN_SECONDS)
        before = len(simulator.requests) if simulator else 0
        second = await tab.send(
            model, QUESTIONS[1], chat_id=first.chat_id, seconds=TURN_SECONDS
        )
        kept = await kept_reasoning(tab, first)
    fine = [answered(1, first), answered(2, second)]
    print(f"  the chat keeps {len(kept)} reasoning item(s) of turn 1")
    if simulator:
        fine.append(was_replayed(simulator.requests, before))
    else:
        fine.append(bool(kept))
        print("  what turn 2 sent cannot be seen from here; OpenAI accepted it")
    print("Replayed." if all(fine) else "NOT replayed.")
    return 0 if all(fine) else 1


def answered(number: int, turn: Turn) -> bool:
    """Say how a turn went."""
    if turn.error:
        print(f"  turn {number} failed: {turn.error}")
    else:
        print(f"  turn {number}: {len(turn.text)} characters")
    return bool(turn.text) and not turn.error


async def kept_reasoning(tab: Tab, turn: Turn) -> list[str]:
    """The encrypted content that the stored chat holds of one answer."""
    chat = await tab.user.chat(turn.chat_id)
    records = [
        value for key, value in chat.items() if key == f"{KEPT_UNDER}:{turn.message_id}"
    ]
    answer = chat["history"]["messages"][turn.message_id]
    return list(encrypted([*records, answer.get("output")]))


def encrypted(stored: Any) -> Iterator[str]:
    """Every encrypted content within a JSON value, in its order."""
    if isinstance(stored, dict):
        content = stored.get("encrypted_content")
        if content:
            yield content
        if stored.get("type") == "reasoning.encrypted":  # as the agents keep it
            yield str(stored.get("data"))
        for value in stored.values():
            yield from encrypted(value)
    elif isinstance(stored, list):
        for value in stored:
            yield from encrypted(value)


def was_replayed(requests: Sequence[RecordedRequest], before: int) -> bool:
    """Say which reasoning turn 2 sent; `before` it there were turn 1's requests."""
    if before == len(requests):
        print("  turn 2 sent nothing")
        return False
    minted = list(encrypted([request.response for request in requests[:before]]))
    sent = list(itertools.takewhile(is_no_answer, requests[before].body["input"]))
    carried = list(encrypted(sent))
    same = bool(minted) and carried == minted
    print(f"  turn 2 sent {len(carried)} reasoning item(s) before turn 1's answer")
    print(f"  encrypted_content {'is' if same else 'is NOT'} turn 1's, byte for byte")
    return same


def is_no_answer(item: Json) -> bool:
    """Whether an input item is something else than an assistant's message."""
    return item.get("role") != "assistant"
