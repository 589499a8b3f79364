"""All cases by name: the transcripts, and chats with the simulator."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chats.pictures import PIXEL
from golden_run.built_files import Settings
from golden_run.pipe_chats import ChatPlan, Question
from golden_run.replay_server import API_KEY
from golden_run.transcripts import Transcript
from simulator.accounts import KEY
from simulator.faults import RefusedPart, refuse_item, refuse_parameter, refuse_tool
from simulator.scenarios.http import HTTP_SCENARIOS

MODEL = "gpt-5.6-sol"
PREFIX_MODEL = "gpt-6.2-sol"
"""A model that wants the prefix of a chat unchanged."""
MCP_SERVERS = (
    '[{"server_label": "clocks", "server_url": "https://clocks.example/mcp"}, '
    '{"server_label": "atlas", "server_url": "https://atlas.example/mcp"}]'
)
_COMMON: Settings = {
    "COMPATIBILITY": "openai",
    "MAX_RETRIES": 0,
    "LOG_LEVEL": "CRITICAL",
}
_ALL_TOOLS: Settings = {
    "ENABLE_WEB_SEARCH": True,
    "ENABLE_IMAGE_GENERATION": True,
    "ENABLE_CODE_INTERPRETER": True,
    "REMOTE_MCP_SERVERS_JSON": MCP_SERVERS,
}
_SECOND = Question("And tomorrow?")


def transcript_plan(transcript: Transcript) -> ChatPlan:
    """Return the chat in which a transcript is the first answer."""
    settings = {**_COMMON, **_ALL_TOOLS, "API_KEY": API_KEY, "MODEL": MODEL}
    if transcript.name.startswith("others/"):
        settings |= {"COMPATIBILITY": "auto"}
    if transcript.name.startswith("background"):
        settings |= {"BACKGROUND_MODELS": MODEL}
    return ChatPlan((Question("How is the weather?"), _SECOND), MODEL, settings)


@dataclass(frozen=True)
class SimulatedChat:
    """A chat whose requests the simulator judges; `faults` are what it refuses."""

    name: str
    questions: tuple[Question, ...]
    model: str = MODEL
    settings: Settings = field(default_factory=dict)
    faults: tuple[RefusedPart, ...] = ()
    administration: Settings = field(default_factory=dict)
    tool_seconds: float = 0

    def plan(self) -> ChatPlan:
        settings = {**_COMMON, "API_KEY": KEY, "MODEL": self.model, **self.settings}
        return ChatPlan(
            self.questions,
            self.model,
            settings,
            administration=self.administration,
            tool_seconds=self.tool_seconds,
        )


def _chat(name: str, *texts: str, model: str = MODEL, **settings: Any) -> SimulatedChat:
    """Return a chat of these questions, with other settings than most."""
    return SimulatedChat(name, tuple(map(Question, texts)), model, settings)


_WITH_PICTURE = (
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": PIXEL}},
)
_RAIN = ("sim:tool Rain?", "And snow?")
_TITLE_PROMPT = '### Task:\nMake a title.\n### Output:\n{ "title": "..." }'
_CHOICES: Settings = {
    "REASONING_EFFORT": "high",
    "VERBOSITY": "low",
    "IMAGE_GENERATION": "on",
    "SHOW_COST": "on",
}
"""Of a user; the image is not theirs to switch on."""
_TEMPORARY = {"chat_id": "temporary:1"}
_SWITCHES = {"openai_responses": {"version": 1, "web_search": True, "thinking": "low"}}

_CHATS: tuple[SimulatedChat, ...] = (
    _chat("hello", "Hi", "And now?", "And then?"),
    _chat("prefix", "Hi", "And now?", "And then?", model=PREFIX_MODEL),
    _chat("prefix-tool", *_RAIN, model=PREFIX_MODEL),
    _chat("effort", "Hi", "And now?", model="gpt-5.2-high"),
    _chat("older-model", "Hi", "And now?", model="gpt-4.1"),
    _chat("pro-model", "Hi", "And now?", model="gpt-5.2-pro"),
    _chat("unknown-model", "Hi", "And now?", model="gpt-7-sol"),
    _chat("foreign-model", "Hi", "And now?", model="llama-4"),
    _chat("auto-model", "Hi", "And now?", model="gpt-5-auto"),
    _chat("strict-server", *_RAIN, COMPATIBILITY="strict"),
    _chat("not-streamed", *_RAIN, ENABLE_STREAM=False),
    _chat("cost", "Hi", SHOW_COST=True),
    _chat("approval", *_RAIN, TOOL_APPROVAL="get_*=ask, apply_note=deny"),
    _chat("denied", "sim:parallel Rain?", "And snow?", TOOL_APPROVAL="*=deny"),
    _chat(
        *("round-limit", "sim:tool-forever Rain?", "And snow?"),
        MAX_FUNCTION_CALL_LOOPS=2,
        MAXIMUM_ITERATIONS=2,
    ),
    _chat("call-limit", "sim:five-calls Rain?", "And snow?", MAX_TOOL_CALLS=2),
    SimulatedChat(
        "sampling",
        (Question("Hi", body={"temperature": 0.3, "max_tokens": 400, "seed": 7}),),
    ),
    _chat(
        *("other-server-memory", "Hi", "And now?"),
        PERSIST_REASONING_TOKENS="disabled",
    ),
    _chat("tool-results-forgotten", *_RAIN, PERSIST_TOOL_RESULTS=False),
    SimulatedChat("picture", (Question("What is this?", list(_WITH_PICTURE)), _SECOND)),
    SimulatedChat("switches", (Question("Hi", metadata=_SWITCHES), _SECOND)),
    SimulatedChat("check", (Question("/check", user={"role": "admin"}),)),
    SimulatedChat("title", (Question(_TITLE_PROMPT, task="title_generation"),)),
    _chat("wrong-key", "Hi", API_KEY="sk-wrong"),
    _chat("no-key", "Hi", API_KEY=""),
    _chat("wrong-servers", "Hi", REMOTE_MCP_SERVERS_JSON="[{"),
    _chat("wrong-overrides", "Hi", MODEL_OVERRIDES_JSON="{"),
    _chat("retried", "sim:500,times=1 Hi", MAX_RETRIES=1),
    _chat("retried-thrice", "sim:500,times=3 Hi", MAX_RETRIES=3),
    _chat("retried-twice-of-three", "sim:500,times=3 Hi", MAX_RETRIES=2),
    SimulatedChat("user-valves", (Question("Hi", user_valves=_CHOICES), _SECOND)),
    SimulatedChat(
        "administrators-valves",
        (Question("Hi", user_valves=_CHOICES, user={"role": "admin"}), _SECOND),
    ),
    SimulatedChat(
        "nothing-to-change",
        (Question("Hi", user_valves=_CHOICES, metadata=_SWITCHES), _SECOND),
        settings={"USER_MAY_CHANGE": "nothing"},
    ),
    replace(
        _chat(
            *("tool-timeout", "sim:parallel Rain?", "And snow?"),
            TOOL_TIMEOUTS="default: 60, get_*: 2",
        ),
        tool_seconds=5,
    ),
    _chat(
        "compacted-with-open-calls",
        *(f"sim:tool-twice Rain? {'And where? ' * 1200}", "And snow?"),
        COMPACTION_TOKENS=1000,
    ),
    SimulatedChat(
        "two-users",
        (
            Question("sim:tool Rain?"),
            Question("And snow?", user={"id": "user-2"}),
            Question("And hail?"),
        ),
        faults=(refuse_tool("get_weather"),),
    ),
    SimulatedChat(
        "two-users-parameter",
        (Question("Hi"), Question("And now?", user={"id": "user-2"})),
        faults=(refuse_parameter("reasoning.summary"),),
    ),
    SimulatedChat(
        "temporary",
        (
            Question("sim:tool Rain?", metadata=_TEMPORARY),
            Question("And snow?", metadata=_TEMPORARY | _SWITCHES),
            Question("And hail?", metadata=_TEMPORARY),
        ),
    ),
    replace(
        _chat("counted", "Hi", "/usage"),
        administration={
            "USER_LIMITS_JSON": '[{"money": 9, "per": "day", "show": true}]'
        },
    ),
    replace(
        _chat("used-up", "Hi", "And now?"),
        administration={"USER_LIMITS_JSON": '[{"tokens": 30, "per": "day"}]'},
    ),
    _chat("address-without-http", "Hi", "And now?", BASE_URL="ftp://127.0.0.1/v1"),
    _chat(
        *("address-with-password", "Hi", "And now?"),
        BASE_URL="http://someone:secret@127.0.0.1/v1",
    ),
    _chat("retried-later", "sim:429,times=1,retry-after=2 Hi", MAX_RETRIES=1),
)
_REFUSALS: Mapping[str, RefusedPart] = {
    "reasoning": refuse_item("reasoning"),
    "reasoning-message": refuse_item("reasoning", form="message"),
    "reasoning-phrase": refuse_item("reasoning", form="phrase"),
    "reasoning-status": refuse_item("reasoning", key="summary"),
    "call-id": refuse_item("function_call", form="id"),
    "output-openrouter": refuse_item("function_call_output", form="openrouter"),
    "text": refuse_item(text="And", form="message"),
    "tool": refuse_tool("get_weather"),
    "tool-failed": refuse_tool("get_weather", delivery="failed"),
    "tool-phrase": refuse_tool("apply_note", form="phrase"),
    "verbosity": refuse_parameter("text.verbosity", form="litellm"),
    "summary": refuse_parameter("reasoning.summary", form="phrase"),
    "effort": refuse_parameter("reasoning.effort", form="message"),
    "cache-key": refuse_parameter("prompt_cache_key", delivery="error"),
    "identifier": refuse_parameter("safety_identifier", form="litellm"),
    "stream": refuse_parameter("stream"),
    "unnamed": refuse_item("reasoning", form="unnamed"),
}
"""What a server refuses in every request that contains it, by the name of the case."""


def simulated_chats() -> Iterator[SimulatedChat]:
    """Yield the chats of the table, all answers over plain HTTP, and all refusals."""
    yield from _CHATS
    for scenario in HTTP_SCENARIOS:
        yield _chat(f"http-{scenario.name}", f"sim:{scenario.name} Hi")
    for name, refusal in _REFUSALS.items():
        asked = _chat(f"refused-{name}", *_RAIN, "And hail?")
        yield replace(asked, faults=(refusal,))
