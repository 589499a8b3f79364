"""Small pipelines, each of which shows one thing about the server."""

PLAIN = '''
class Pipeline:
    """Answers with its arguments."""

    def pipe(self, user_message, model_id, messages, body):
        given = body.get("agent_context", "nothing")
        return f"{model_id}: {user_message}, {len(messages)}, {given}"
'''

MANIFOLD = '''
from typing import Literal

from pydantic import BaseModel


class Valves(BaseModel):
    WORD: str = "one"
    NUMBER: int = 1
    KIND: Literal["a", "b"] = "a"


class Pipeline:
    """Two models, valves, both filters, and a record of what happened to it."""

    def __init__(self):
        self.type = "manifold"
        self.id = "agents"
        self.name = "Agents: "
        self.valves = Valves()
        self.seen = []

    def pipelines(self):
        return [{"id": "first", "name": "First"}, {"id": "second", "name": "Second"}]

    async def on_startup(self):
        self.seen.append("started")

    async def on_valves_updated(self):
        self.seen.append(f"valves {self.valves.WORD} {self.valves.NUMBER}")

    async def inlet(self, body, user):
        return {**body, "agent_context": [user["name"], body["metadata"]["chat_id"]]}

    def pipe(self, user_message, model_id, messages, body):
        return f"{model_id} {self.valves.WORD} {self.valves.NUMBER} {self.seen}"
'''

# The kinds of answers, by the question.
ANSWERS = '''
import json, threading, time
from pydantic import BaseModel


class Event(BaseModel):
    word: str


class Own:
    """An iterator that is no generator."""

    def __init__(self):
        self.left = ["one", "two"]

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        return self.left.pop(0)


def texts():
    yield "one"
    yield b"two"


def dicts():
    yield {"event": 1}
    yield Event(word="w")


def lines():
    yield "data: {}"
    yield b"data: 1"


def breaks():
    yield "kept?"
    raise ValueError("broken")


class Pipeline:
    def __init__(self):
        self.seen = []
        self.go_on = threading.Event()

    def pipe(self, user_message, model_id, messages, body):
        return getattr(self, user_message)()

    def text(self):
        return "said"

    def dict(self):
        return {"whole": True}

    def model(self):
        return Event(word="w")

    def texts(self):
        return texts()

    def dicts(self):
        return dicts()

    def lines(self):
        return lines()

    def own(self):
        return Own()

    def breaks(self):
        return breaks()

    def raises(self):
        raise ValueError("broken")

    def nothing(self):
        return None

    def waits(self):
        try:
            yield "begun"
            self.go_on.wait(30)
            self.seen.append("waited to the end")
            yield "late"
            self.seen.append("pulled after that")
        finally:
            self.seen.append("closed")

    def let_go(self):
        self.seen.append("let go")
        self.go_on.set()
        return "let go"

    def was_seen(self):
        return json.dumps(self.seen)
'''

COROUTINES = """
class Pipeline:
    async def pipe(self, user_message, model_id, messages, body):
        return "never read"
"""

ASYNC_GENERATOR = """
class Pipeline:
    async def pipe(self, user_message, model_id, messages, body):
        yield "never read"
"""

# Each of these fails to load: the name, the words that the server prints.
UNLOADABLE = {
    "no_class": ("class Pipe: ...\n", "Pipeline"),
    "no_python": ("class Pipeline(:\n", "invalid syntax"),
    "raises": ("raise ValueError('a canary')\n", "a canary"),
    "no_instance": (
        "class Pipeline:\n    def __init__(self): raise ValueError('a canary')\n",
        "a canary",
    ),
    "future_dataclass": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Point:\n    x: int\n\n\nclass Pipeline: ...\n",
        "__dict__",
    ),
    "future_model": (
        "from __future__ import annotations\nfrom typing import Optional\n"
        "from pydantic import BaseModel\n\n\n"
        "class Pipeline:\n    class Valves(BaseModel):\n"
        "        WORD: Optional[str] = None\n\n"
        "    def __init__(self): self.valves = self.Valves()\n",
        "not fully defined",
    ),
    "requirement": (
        '"""\ntitle: x\nrequirements: no-such-package-of-ours\n"""\n'
        "class Pipeline: ...\n",
        "no-such-package-of-ours",
    ),
}

STARTUP_FAILS = """
class Pipeline:
    async def on_startup(self):
        raise ValueError("no start today")

    def pipe(self, user_message, model_id, messages, body):
        return ""
"""
