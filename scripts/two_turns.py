"""One chat of two turns as a browser has it, to see what the second one replays."""

import itertools
import json
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
RECORD_PREFIX = "openai_responses_pipe"
TURN_SECONDS = 300


async def check_two_turns(user: User, model: str, simulator: Simulator | None) -> int:
    """Ask twice, print what was replayed; return 0 if the reasoning was, else 1."""
    if simulator:
        simulator.forget()  # the requests of a check with another model
    async with Tab(user) as tab:
        print(f"\nTwo turns with {model}, streamed:")
        first = await tab.send(model, QUESTIONS[0], seconds=TURN_SECONDS)
        first_count = len(simulator.requests) if simulator else 0
        second = await tab.send(
            model, QUESTIONS[1], chat_id=first.chat_id, seconds=TURN_SECONDS
        )
        stored = await stored_reasoning(tab, first)
    results = [report_turn(1, first), report_turn(2, second)]
    print(f"  the chat keeps {len(stored)} reasoning item(s) of turn 1")
    results.append(bool(stored))
    if simulator:
        first_requests = simulator.requests[:first_count]
        second_requests = simulator.requests[first_count:]
        results.append(report_replay(first_requests, second_requests))
    else:
        print("  what turn 2 sent cannot be seen from here; OpenAI accepted it")
    print("Replayed." if all(results) else "NOT replayed.")
    return 0 if all(results) else 1


def report_turn(number: int, turn: Turn) -> bool:
    """Print how a turn ended; return whether it was answered."""
    if turn.error:
        print(f"  turn {number} failed: {turn.error}")
    else:
        print(f"  turn {number}: {len(turn.text)} characters")
        if turn.statuses:
            print(f"  {turn.statuses[-1].get('description')}")
    return bool(turn.text) and not turn.error


async def stored_reasoning(tab: Tab, turn: Turn) -> list[str]:
    """Return the encrypted contents that the stored chat has of an answer.

    A record in the output of an answer is one text, which is JSON.
    """
    chat = await tab.user.chat(turn.chat_id)
    answer = chat["history"]["messages"][turn.message_id]
    stored = [chat.get(f"{RECORD_PREFIX}:{turn.message_id}")]
    for item in answer.get("output") or ():
        kept = item.get("kept")
        stored.append(json.loads(kept) if isinstance(kept, str) else item)
    return list(encrypted_contents(stored))


def encrypted_contents(value: Any) -> Iterator[str]:
    """Yield every encrypted content in a JSON value, in its order."""
    if isinstance(value, list):
        for element in value:
            yield from encrypted_contents(element)
    elif isinstance(value, dict):
        content = value.get("encrypted_content")
        if content:
            yield content
        if value.get("type") == "reasoning.encrypted":  # as the agents store it
            yield str(value.get("data"))
        for field in value.values():
            yield from encrypted_contents(field)


def report_replay(
    first_requests: Sequence[RecordedRequest],
    second_requests: Sequence[RecordedRequest],
) -> bool:
    """Print which reasoning turn 2 sent; return whether it was all that turn 1 got."""
    if not second_requests:
        print("  turn 2 sent nothing")
        return False
    responses = [request.response for request in first_requests]
    received = list(encrypted_contents(responses))
    items = second_requests[0].body["input"]
    before_answer = list(itertools.takewhile(_is_before_answer, items))
    replayed = list(encrypted_contents(before_answer))
    is_same = bool(received) and replayed == received
    print(f"  turn 2 sent {len(replayed)} reasoning item(s) before turn 1's answer")
    verb = "is" if is_same else "is NOT"
    print(f"  encrypted_content {verb} turn 1's, byte for byte")
    return is_same


def _is_before_answer(item: Json) -> bool:
    """Tell whether an input item is no message of the assistant."""
    return item.get("role") != "assistant"
