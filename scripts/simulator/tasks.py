"""Answers to the short prompts with which Open WebUI asks for titles or tags."""

import json
import re

from simulator.asked import Asked
from simulator.builders import message
from simulator.options import Options
from simulator.scenario import Reply, reply, scenario

ANSWERS: dict[str, object] = {
    "title": "Talking to a Stand-in",
    "tags": ["Technology", "Testing"],
    "follow_ups": ["What comes next?", "Can you show an example?", "Why is that so?"],
    "queries": ["how a stand-in answers"],
    "prompt": "A quiet harbour at dawn, painted in soft blue tones.",
    "text": "and so it goes on.",
}
OUTPUT = re.compile(r'### Output.*?"(?P<field>[a-z_]+)"\s*:', re.DOTALL | re.IGNORECASE)
ANY_FIELD = re.compile(r'"(?P<field>title|tags|follow_ups|queries)"')


def task_field(text: str) -> str | None:
    """Return the field that a task's prompt asks for, None if it is no task."""
    if "### Task:" not in text:
        return None
    found = OUTPUT.search(text) or ANY_FIELD.search(text)
    field = found["field"] if found else ""
    return field if field in ANSWERS else None


def _answer(asked: Asked, options: Options) -> Reply:
    del options
    field = task_field(asked.said) or "title"
    return reply(message(json.dumps({field: ANSWERS[field]})))


TASK = scenario(
    "task", "the JSON that a title, tags or follow-ups prompt wants", _answer
)
