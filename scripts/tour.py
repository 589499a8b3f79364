"""Words to try with the simulator, and a chat in which ten of them were sent."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User

LAKE = "lake"
"""The id of a toolkit; people find it switched on."""
TOOLKIT = '''"""
title: Lake
"""


class Tools:
    def water_temperature(self, city: str) -> str:
        """
        The temperature of the lake at a city.
        :param city: name of the city
        """
        return f"20.5 °C at {city}, measured at 13:40."
'''
TURN_SECONDS = 120
TITLE = "A tour of the pipe"


class Word(NamedTuple):
    """A word that chooses an answer, a question around it, and what it shows."""

    word: str
    question: str
    shows: str

    @property
    def typed(self) -> str:
        """What a person types to get this answer."""
        return f"sim:{self.word}"


WORDS = (
    Word(
        "explain", "Why does ice float?", "thoughts that expand, an answer with a table"
    ),
    Word(
        "swim", "Can I swim at Zürich today?", "a search, a tool, sources in the text"
    ),
    Word("web-search", "When did the harbour freeze?", "pages that the model opened"),
    Word("remarks", "How warm is the lake?", "progress between two rounds of tools"),
    Word("five-calls", "And in five towns?", "five tools at once, each with its card"),
    Word(
        "postcard", "Draw the lake in the evening.", "an image, generated step by step"
    ),
    Word(
        "chart", "Chart the temperatures.", "Python, its chart, and a file to download"
    ),
    Word("429,times=1", "Are you busy?", "a rejected request that is sent again"),
    Word("cut", "Tell me more.", "an interrupted stream: the text is kept"),
    Word("failed", "And the rest?", "an error with a message and an id for the log"),
)


AGENT_WORDS = (
    Word("agent-crew", "Which month was it?", "a task list, two sub-agents, an answer"),
    Word(
        "swim", "Can I swim at Zürich today?", "a search, a tool, sources in the text"
    ),
    Word(
        "chart", "Chart the temperatures.", "Python, its chart, and a file to download"
    ),
    Word("failed", "And the rest?", "an error with a message and an id for the log"),
)
"""Words for the agent in Open WebUI's own list of models."""
SERVER_AGENT_WORDS = (
    Word("agent-write", "Write the list.", "the approval of a call, shown whole"),
    Word("agent-tasks", "When was it warmest?", "two tasks at once, with Python"),
    Word("explain", "Why does ice float?", "thoughts that expand, a table"),
    Word("429,times=1", "Are you busy?", "a rejected request that is sent again"),
    Word("failed", "And the rest?", "an error with a message and an id for the log"),
)
"""Words for the agents on the Pipelines server, whose own tools are the sandbox's."""


def describe_words(words: Sequence[Word] = WORDS) -> Iterator[str]:
    """Yield a line for each word: what to type, and what it shows."""
    width = max(len(word.typed) for word in words)
    for word in words:
        yield f"    {word.typed:<{width}}  {word.shows}"


async def install_lake(admin: User, grants: Json) -> None:
    """Give Open WebUI a tool of its own."""
    form = {
        "id": LAKE,
        "name": "Lake",
        "content": TOOLKIT,
        "meta": {"description": "The gauge of the lake"},
        "access_grants": [grants],
    }
    tools = await admin.call("GET", "/api/v1/tools/")
    if all(tool["id"] != LAKE for tool in tools):
        await admin.call("POST", "/api/v1/tools/create", form)


async def take_tour(admin: User, model: str, say: Callable[[str], None] = print) -> str:
    """Send every word into one chat; return its id. The chat stays, with a title."""
    chat_id: str | None = None
    async with Tab(admin) as tab:
        for word in WORDS:
            say(f"  {word.typed}: {word.shows}")
            turn = await tab.send(
                model,
                f"{word.question} {word.typed}",
                chat_id=chat_id,
                seconds=TURN_SECONDS,
                body={"tool_ids": [LAKE]},
            )
            chat_id = turn.chat_id
    if not chat_id:
        return ""
    await admin.call("POST", f"/api/v1/chats/{chat_id}", {"chat": {"title": TITLE}})
    return chat_id
