"""Replies of an ordinary chat: reasoning, Markdown, commentary, refusals."""

from simulator.scenarios.builders import (
    build_message,
    build_reasoning,
    build_url_citation,
    build_web_search_call,
)
from simulator.scenarios.scenario import Reply, Scenario, make_reply, make_scenario

ANSWER = """\
This is turn $turn. I was given $given back. You said: $said

Here is what a **stand-in** can tell you: it thinks for show, answers in *Markdown*, \
and never tires. Zürich, naïve, 東京 and 🚀 are in this sentence so that characters of \
two, three and four bytes cross the wire.

- The first point is short.
- The second has `code` in it.

That is all for now."""

THOUGHTS = (
    "**Reading the question**\n\nThe user said something, and it deserves a look.",
    "**Planning the answer**\n\nA few paragraphs will do; a list makes them readable.",
)

CITED = "The harbour froze in 1963, as the town's chronicle tells."
CHRONICLE = "http://127.0.0.1/chronicle"
CITATION = build_url_citation(CITED, "the town's chronicle", CHRONICLE, "The chronicle")
DECLINED = {"type": "refusal", "refusal": "I'm sorry, but I can't help with that."}
SECOND_REASONING = build_reasoning(
    "**Thinking again**\n\nThe first idea can be said better."
)


def _think_between(before: str, after: str) -> Reply:
    """Return a reply with reasoning between its commentary and its final answer."""
    return make_reply(
        build_reasoning("**Warming up**\n\nFirst a word on what comes."),
        build_message(before, phase="commentary"),
        SECOND_REASONING,
        build_message(after, phase="final_answer"),
    )


TABLE = "| city | people |\n| --- | --- |\n| Zürich | 400000 |"
FENCE = "```python\nprint('not closed'"


CHAT = make_scenario(
    "chat",
    "reasoning with a summary of two parts, then a few Markdown paragraphs",
    build_reasoning(*THOUGHTS),
    build_message(ANSWER),
)
CHAT_SCENARIOS: tuple[Scenario, ...] = (
    CHAT,
    make_scenario(
        "short",
        "reasoning, then one sentence",
        build_reasoning(*THOUGHTS),
        build_message("Turn $turn. I was given $given back."),
    ),
    make_scenario(
        "commentary",
        "a commentary message, reasoning, then the final answer",
        _think_between("Let me look at that.", "Done: it is 42."),
    ),
    make_scenario(
        "remarks-only",
        "two commentary messages, and no final answer",
        build_reasoning("**Warming up**\n\nA word first."),
        build_message("Let me look at that.", phase="commentary"),
        SECOND_REASONING,
        build_message("I looked: it is 42.", phase="commentary"),
    ),
    make_scenario(
        "remark-cut",
        "a stream that ends in the middle of a commentary message",
        build_reasoning("**Warming up**\n\nA word first."),
        build_message(
            "One line.\n\nAnd a second one, which is cut.", phase="commentary"
        ),
        options="cut=18",
    ),
    make_scenario(
        "lone-reasoning",
        "a response with nothing but reasoning",
        build_reasoning(*THOUGHTS),
    ),
    make_scenario(
        "list",
        "reasoning between a list and a list",
        _think_between("So far:\n\n- one\n- two", "- three\n- four\n\nEnd."),
    ),
    make_scenario(
        "table",
        "reasoning between a table and a table",
        _think_between(f"So far:\n\n{TABLE}", f"{TABLE}\n\nEnd."),
    ),
    make_scenario(
        "quote",
        "reasoning between a quote and a quote",
        _think_between("They said:\n\n> one\n> two", "> three\n\nEnd."),
    ),
    make_scenario(
        "unclosed-fence",
        "an answer that ends inside a code block",
        build_reasoning(*THOUGHTS),
        build_message(f"Look:\n\n{FENCE})\n"),
    ),
    make_scenario(
        "annotations",
        "a web search, then a sentence with a citation",
        build_reasoning("**Searching**\n\nThis needs a source."),
        build_web_search_call("when did the harbour freeze", CHRONICLE),
        build_message(CITED, annotations=[CITATION]),
    ),
    make_scenario(
        "refusal",
        "a message in which the model declines",
        build_reasoning("**Weighing**\n\nThis is not allowed."),
        {"type": "message", "role": "assistant", "content": [DECLINED]},
    ),
    make_scenario(
        "reasoning-text",
        "raw reasoning, as open-weight models stream it",
        build_reasoning(text="First I count. Then I answer."),
        build_message(ANSWER),
    ),
)
