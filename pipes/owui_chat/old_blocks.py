"""Blocks that earlier writers put into an answer, for people to look at.

They are `<details>` of a few types: what a pipe was doing, a summary of the reasoning,
tools and code as older Open WebUIs stored them (markers.md §2.3). No model wrote them.
"""

import re

_SIGN = "<details type="
_BLOCK = re.compile(
    r'<details type="(?:status|reasoning|tool_calls|code_interpreter|\w+\.reasoning)"'
    r"[^<>]*>.*?</details>\n?",
    re.DOTALL,
)


def without_old_blocks(text: str) -> str:
    """Return `text` without such blocks; one that is not closed is only text."""
    if _SIGN not in text or "</details>" not in text:
        return text  # and below only what lies before the last end is read, once
    end = text.rindex("</details>") + len("</details>\n")
    return _BLOCK.sub("", text[:end]) + text[end:]
