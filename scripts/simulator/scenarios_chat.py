"""What the model says in an ordinary chat."""

from simulator.builders import (
    Item,
    message,
    reasoning,
    refusal,
    url_citation,
    web_search_call,
)
from simulator.scenario import Reply, Scenario, reply, scenario

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


def _cited() -> Reply:
    citation = url_citation(
        CITED, "the town's chronicle", "http://127.0.0.1/chronicle", "The chronicle"
    )
    return reply(
        reasoning("**Searching**\n\nThis needs a source."),
        web_search_call("when did the harbour freeze", "http://127.0.0.1/chronicle"),
        message(CITED, annotations=[citation]),
    )


def _talk(*between: Item, before: str, after: str) -> Reply:
    """Say something in passing, do something, then say the rest."""
    return reply(
        reasoning("**Warming up**\n\nFirst a word on what comes."),
        message(before, phase="commentary"),
        *between,
        message(after, phase="final_answer"),
    )


AGAIN = reasoning("**Thinking again**\n\nThe first idea can be said better.")

TABLE = "| city | people |\n| --- | --- |\n| Zürich | 400000 |"
FENCE = "```python\nprint('not closed'"

CHAT_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "chat",
        "reasoning with a summary of two parts, then a few Markdown paragraphs",
        reply(reasoning(*THOUGHTS), message(ANSWER)),
    ),
    scenario(
        "short",
        "reasoning, then one sentence",
        reply(reasoning(*THOUGHTS), message("Turn $turn. I was given $given back.")),
    ),
    scenario(
        "commentary",
        "a commentary message, reasoning, then the final answer",
        _talk(AGAIN, before="Let me look at that.", after="Done: it is 42."),
    ),
    scenario(
        "remarks-only",
        "two commentary messages, and no final answer",
        reply(
            reasoning("**Warming up**\n\nA word first."),
            message("Let me look at that.", phase="commentary"),
            AGAIN,
            message("I looked: it is 42.", phase="commentary"),
        ),
    ),
    scenario(
        "remark-cut",
        "a body that ends in the middle of a commentary message",
        reply(
            reasoning("**Warming up**\n\nA word first."),
            message("One line.\n\nAnd a second one, which is cut.", phase="commentary"),
        ),
        options="cut=18",
    ),
    scenario(
        "two-reasonings",
        "two reasoning items in a row, then the answer",
        reply(reasoning(*THOUGHTS), AGAIN, message(ANSWER)),
    ),
    scenario(
        "empty-summary",
        "reasoning whose summary stays empty",
        reply(reasoning(), message(ANSWER)),
    ),
    scenario(
        "noisy-items",
        "items full of status and nulls, which must not be sent back",
        reply(
            {**reasoning(*THOUGHTS), "status": "completed", "content": None},
            message(ANSWER),
        ),
    ),
    scenario(
        "lone-reasoning",
        "a response that is nothing but reasoning",
        reply(reasoning(*THOUGHTS)),
    ),
    scenario(
        "list",
        "reasoning between a list and a list",
        _talk(AGAIN, before="So far:\n\n- one\n- two", after="- three\n- four\n\nEnd."),
    ),
    scenario(
        "table",
        "reasoning between a table and a table",
        _talk(AGAIN, before=f"So far:\n\n{TABLE}", after=f"{TABLE}\n\nEnd."),
    ),
    scenario(
        "quote",
        "reasoning between a quote and a quote",
        _talk(AGAIN, before="They said:\n\n> one\n> two", after="> three\n\nEnd."),
    ),
    scenario(
        "open-fence",
        "reasoning inside a code block that closes in the next message",
        _talk(AGAIN, before=f"Look:\n\n{FENCE}", after=")\n```\n\nEnd."),
    ),
    scenario(
        "unclosed-fence",
        "an answer that ends inside a code block",
        reply(reasoning(*THOUGHTS), message(f"Look:\n\n{FENCE})\n")),
    ),
    scenario(
        "annotations",
        "a web search, then a sentence with a citation",
        _cited(),
    ),
    scenario(
        "refusal",
        "a message in which the model declines",
        reply(
            reasoning("**Weighing**\n\nThis is not allowed."),
            refusal("I'm sorry, but I can't help with that."),
        ),
    ),
    scenario(
        "reasoning-text",
        "raw reasoning, as open-weight models stream it",
        reply(reasoning(text="First I count. Then I answer."), message(ANSWER)),
    ),
)
