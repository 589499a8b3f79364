"""What Open WebUI tells of a conversation in the system prompt: nobody's instruction.

It stores a summary of a long chat in the chat's row, where the owner of the chat can
write any text, and an imported chat brings its own. It appends what stands there to the
system prompt (utils/middleware.py:2163 of 0.12.4). For a model that is mentioned in a
channel, it puts what all members wrote into the system prompt (routers/channels.py:1344).
Here both are taken out again: the model reads them as a message of the user.
"""

from openai_responses.json_input import JsonObject, as_mapping, as_text

_HEADING = "[CONVERSATION SUMMARY]\n"
_NAMES = ("contextSummary", "context_summary")


def take_summary(instructions: str, rows: JsonObject) -> tuple[str, str]:
    """Return the instructions without the summary, and the summary with its heading.

    `rows` are the messages of the chat's row. What Open WebUI appended behind the summary
    goes with it: where that begins, only the row could say, which its owner writes.
    """
    stored = [as_mapping(row).get(name) for row in rows.values() for name in _NAMES]
    before, heading, summary = instructions.partition(_HEADING)
    if not heading or not any(map(as_text, stored)):
        return instructions, ""
    return before.rstrip("\n"), heading + summary


_THREAD_HEADING = "Here's the thread history:\n"


def take_thread(instructions: str) -> tuple[str, str]:
    """Return the instructions for a channel without its messages, and these.

    What Open WebUI says behind them goes with them.
    """
    before, heading, thread = instructions.partition(_THREAD_HEADING)
    return before.rstrip("\n"), heading + thread
