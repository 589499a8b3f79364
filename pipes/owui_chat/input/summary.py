"""What Open WebUI tells of a conversation in the system prompt: nobody's instruction.

It stores a summary of a long chat with the chat, where the owner of the chat can write
any text, and an imported chat brings its own. It appends what it finds to the system
prompt (utils/middleware.py:2163 of 0.12.4). For a model that is mentioned in a channel,
it puts what all members wrote into the system prompt (routers/channels.py:1344). Here
both are taken out again: the model reads them as a message of the user.
"""

_HEADING = "[CONVERSATION SUMMARY]\n"


def take_summary(instructions: str) -> tuple[str, str]:
    """Return the instructions without a summary, and the summary with its heading.

    The heading decides, not what is stored: Open WebUI takes a summary from a key of a
    message, from an item of an answer, or from a column that the chat's row lacks
    (utils/context_compaction.py:309, models/chat_messages.py:275). What it appended
    behind the summary goes with it: where that begins, only its owner could say.
    """
    before, heading, summary = instructions.partition(_HEADING)
    if not heading:
        return instructions, ""
    return before.rstrip("\n"), heading + summary


_THREAD_HEADING = "Here's the thread history:\n"


def take_thread(instructions: str) -> tuple[str, str]:
    """Return the instructions for a channel without its messages, and these.

    What Open WebUI says behind them goes with them.
    """
    before, heading, thread = instructions.partition(_THREAD_HEADING)
    return before.rstrip("\n"), heading + thread
