"""The turns of a soak: what is asked, what goes wrong, and how each may end."""

from dataclasses import dataclass, field
from typing import Any, Literal

from openai_responses.endings import SENTENCES

Verdict = Literal[
    "finished",
    "stopped by the user",
    "injected fault",
    "not stored by the host",
    "UNEXPLAINED",
]
Json = dict[str, Any]
LAST_WORDS = "That is all for now."
"""Of the simulator's usual answer."""
SUNNY = "It said: Sunny in"
"""The answer from the output of a tool."""
TOOLS: Json = {"tool_ids": ["toolkit"]}


@dataclass(frozen=True)
class Case:
    """One kind of turn."""

    name: str
    scenario: str
    """What the simulator is told to do."""
    words: str = LAST_WORDS
    """With these an answer is whole."""
    sentence: str = ""
    """How the sentence begins that the person sees; empty: the answer is whole."""
    stopped: bool = False
    """Whether the person stops it, some moment after it was asked."""
    plain: bool = False
    """Whether an API client asks, who has no chat and leaves instead of stopping."""
    background: bool = False
    """Whether a model answers that goes on at OpenAI."""
    body: Json = field(default_factory=dict)

    @property
    def question(self) -> str:
        """What is typed."""
        return f"sim:{self.scenario} What do you say to this?"


@dataclass(frozen=True)
class Seen:
    """What came of one turn, as the person and the chat's row have it."""

    ended: bool
    text: str = ""
    sentence: str = ""
    stop_pressed: bool = False
    streamed: str = ""
    """The text that the page showed while it was written."""
    told: str = ""
    """The sentence that the page showed in red."""
    stored: bool = True
    """Whether Open WebUI wrote the end of the answer: it waits five seconds for SQLite,
    and gives up without a line in its log (docs/reference/open-webui.md)."""


@dataclass(frozen=True)
class Explained:
    """A turn's ending, and why it ended so."""

    verdict: Verdict
    reason: str = ""


def explain(case: Case, seen: Seen) -> Explained:
    """Say why a turn ended as it did; only what was planned explains it."""
    if not seen.ended:
        return Explained("UNEXPLAINED", "it did not end")
    if seen.sentence:
        return _explain_sentence(case, seen.sentence)
    if seen.stop_pressed:
        return Explained("stopped by the user")
    if case.sentence and not seen.stored and seen.told.startswith(case.sentence):
        return Explained("not stored by the host", "its sentence")
    if case.sentence:
        return Explained("UNEXPLAINED", "no sentence tells of the fault")
    if not seen.stored and case.words in seen.streamed:
        return Explained("not stored by the host", "all of it, until a reload")
    if case.words not in seen.text:
        return Explained("UNEXPLAINED", f"not whole: ...{seen.text[-80:]!r}")
    return Explained("finished")


def _explain_sentence(case: Case, sentence: str) -> Explained:
    if case.sentence and sentence.startswith(case.sentence):
        return Explained("injected fault", sentence.partition(" (Error id")[0])
    return Explained("UNEXPLAINED", sentence)


def _sentence(kind: str, code: str = "", **facts: str) -> str:
    """Return what the pipe says of an ending, or its beginning where a fact is open.

    It names the server that it asked.
    """
    text = SENTENCES[kind][code].replace("OpenAI", "127.0.0.1")
    for name, fact in facts.items():
        text = text.replace(f"{{{name}}}", fact)
    return text.partition("{")[0]


def _call(function: str) -> Json:
    """Return the fields with which the model has to call a function."""
    choice = {"type": "function", "function": {"name": function}}
    return {**TOOLS, "tool_choice": choice}


WHOLE = (
    Case("a short answer", "short", words="."),
    Case("a chat turn", "chat"),
    Case("a long answer", "long,deltas=400,delay=4", words="word399"),
    Case("a slow drip, bytes apart", "slow,deltas=60,chunks=7", words="word59"),
    Case("broken up anywhere", "chat,chunks=random,crlf,comments,keepalive=5"),
    Case("a late first byte", "chat,wait=4000"),
    Case("429 once", "chat,status=429,times=1,retry-after-ms=50"),
    Case("503 once", "chat,status=503,times=1,retry-after-ms=50"),
    Case("a tool", "tool", words=SUNNY, body=_call("get_weather")),
    Case("a tool twice", "tool-twice", words=SUNNY, body=_call("get_weather")),
    Case("five tools at once", "five-calls", words=SUNNY, body=_call("get_weather")),
    Case(
        "a tool that fails",
        "tool",
        words="broken_weather failed",
        body=_call("broken_weather"),
    ),
    Case("a plain client", "chat", plain=True),
    Case("dropped, fetched again", "chat,drop=60", background=True),
)
FAILED = (
    Case("429", "chat,status=429", sentence=_sentence("refused", "429")),
    Case("500", "chat,status=500", sentence=_sentence("failed", "server_error")),
    Case("502", "chat,status=502", sentence=_sentence("failed", "server_error")),
    Case("503", "chat,status=503", sentence=_sentence("refused", "503")),
    Case(
        "a gateway's page",
        "html-error",
        sentence=_sentence("refused", "5", status="502"),
    ),
    Case("no credit", "quota", sentence=_sentence("failed", "insufficient_quota")),
    Case("cut", "cut", sentence=_sentence("cut")),
    Case("dropped", "drop", sentence=_sentence("cut")),
    Case("cut in a call", "tool-cut", sentence=_sentence("cut"), body=TOOLS),
    Case("stalled", "stall", sentence=_sentence("idle_timeout")),
    Case("failed", "failed", sentence=_sentence("failed", "server_error")),
    Case(
        "incomplete",
        "incomplete",
        sentence=_sentence("incomplete", "max_output_tokens"),
    ),
    Case("a page for an answer", "html-200", sentence=_sentence("unreadable")),
)
STOPPED = (
    Case("stopped in the text", "slow,deltas=400", stopped=True),
    Case("stopped in a silence", "stall", stopped=True),
    Case("stopped before a retry", "chat,status=503,retry-after=50", stopped=True),
    Case("stopped in a tool", "tool", stopped=True, body=_call("slow_weather")),
    Case("stopped in the background", "slow,deltas=400", stopped=True, background=True),
    Case("a plain client leaves", "slow,deltas=400", stopped=True, plain=True),
)
CASES = WHOLE + FAILED + STOPPED
