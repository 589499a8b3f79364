"""What earlier writers left in chats, in their exact bytes."""

from collections.abc import Mapping

from openai_responses.items import Item

A = "A" * 26
B = "B" * 26
C = "C" * 26


def earlier_key(payloads: Mapping[str, Item]) -> Item:
    """The one top-level key of a chat that all of them wrote to, by ids of items."""
    items = {
        ulid: {
            "model": "openai_responses.gpt-5.2-high",
            "created_at": 1_750_000_000,
            "payload": payload,
            "message_id": "m-0",
        }
        for ulid, payload in payloads.items()
    }
    return {"openai_responses_pipe": {"__v": 3, "items": items}}


def zero_width(ulid: str) -> str:
    """A marker of 0.8.6: the bits of the id between two word joiners."""
    bits = "".join(f"{ord(letter):08b}" for letter in ulid)
    return f"\u2060{bits.translate({48: 0x200B, 49: 0x200C})}\u2060"


STATUS = (
    '<details type="status" done="true">\n<summary>Done</summary>\n\n- **t**\n'
    "  - sub\n\n---</details>"
)
THOUGHT = (
    '<details type="function_openai_responses.reasoning" done="true">\n'
    "<summary>Done thinking!</summary>\nRain it is.\n</details>"
)
ID_A = A[:16]
ID_B = B[:16]
ID_C = C[:16]
EARLIER = {
    "0.8.6, zero-width": (
        (A, B, C),
        f"{zero_width(A)}{zero_width(B)}{zero_width(C)}\nIt rains.",
    ),
    "0.8.12, v1 with its summary": (
        (A, B, C),
        f"{THOUGHT}\n\n[](openai_responses:v1:reasoning:{A}?model=f.gpt-5.2)\n\n"
        f"\n\n[](openai_responses:v1:function_call:{B}?model=f.gpt-5.2)\n\n"
        f"\n\n[](openai_responses:v1:function_call_output:{C}?model=f.gpt-5.2)\n\n"
        "It rains.",
    ),
    "0.8.28, v2 with its status": (
        (ID_A, ID_B, ID_C),
        f"{STATUS}\n[openai_responses:v2:reasoning:{ID_A}]: #\n"
        f"\n[openai_responses:v2:function_call:{ID_B}]: #\n"
        f"\n[openai_responses:v2:function_call_output:{ID_C}]: #\nIt rains.",
    ),
    "1.0.0, v2 with the model": (
        (ID_A, ID_B, ID_C),
        f"[openai_responses:v2:reasoning:{ID_A}?model=f.gpt-5.2]: #\n"
        f"\n[openai_responses:v2:function_call:{ID_B}?model=f.gpt-5.2]: #\n"
        f"\n[openai_responses:v2:function_call_output:{ID_C}?model=f.gpt-5.2]: #\n"
        "It rains.",
    ),
}
"""The ids of a thought, a call and its output, and the text of the answer."""
