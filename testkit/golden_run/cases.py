"""All cases by name: the transcripts, and chats with the simulator."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chats.pictures import PIXEL
from golden_run.built_files import Settings
from golden_run.pipe_chats import ChatPlan, Question
from golden_run.replay_server import API_KEY
from golden_run.transcripts import Transcript
from simulator.accounts import KEY
from simulator.faults import RefusedPart, refuse_item, refuse_parameter, refuse_tool
from simulator.scenarios.http import HTTP_SCENARIOS

Json = dict[str, Any]

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


def _asking(*texts: str) -> tuple[Question, ...]:
    return tuple(Question(text) for text in texts)


_WITH_PICTURE = (
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": PIXEL}},
)
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
    SimulatedChat("hello", _asking("Hi", "And now?", "And then?")),
    SimulatedChat("prefix", _asking("Hi", "And now?", "And then?"), PREFIX_MODEL),
    SimulatedChat("prefix-tool", _asking("sim:tool Rain?", "And snow?"), PREFIX_MODEL),
    SimulatedChat("effort", _asking("Hi", "And now?"), "gpt-5.2-high"),
    SimulatedChat("older-model", _asking("Hi", "And now?"), "gpt-4.1"),
    SimulatedChat("pro-model", _asking("Hi", "And now?"), "gpt-5.2-pro"),
    SimulatedChat("unknown-model", _asking("Hi", "And now?"), "gpt-7-sol"),
    SimulatedChat("foreign-model", _asking("Hi", "And now?"), "llama-4"),
    SimulatedChat("auto-model", _asking("Hi", "And now?"), "gpt-5-auto"),
    SimulatedChat(
        "strict-server",
        _asking("sim:tool Rain?", "And snow?"),
        settings={"COMPATIBILITY": "strict"},
    ),
    SimulatedChat(
        "not-streamed",
        _asking("sim:tool Rain?", "And snow?"),
        settings={"ENABLE_STREAM": False},
    ),
    SimulatedChat("cost", _asking("Hi"), settings={"SHOW_COST": True}),
    SimulatedChat(
        "approval",
        _asking("sim:tool Rain?", "And snow?"),
        settings={"TOOL_APPROVAL": "get_*=ask, apply_note=deny"},
    ),
    SimulatedChat(
        "denied",
        _asking("sim:parallel Rain?", "And snow?"),
        settings={"TOOL_APPROVAL": "*=deny"},
    ),
    SimulatedChat(
        "round-limit",
        _asking("sim:tool-forever Rain?", "And snow?"),
        settings={"MAX_FUNCTION_CALL_LOOPS": 2, "MAXIMUM_ITERATIONS": 2},
    ),
    SimulatedChat(
        "call-limit",
        _asking("sim:five-calls Rain?", "And snow?"),
        settings={"MAX_TOOL_CALLS": 2},
    ),
    SimulatedChat(
        "sampling",
        (Question("Hi", body={"temperature": 0.3, "max_tokens": 400, "seed": 7}),),
    ),
    SimulatedChat(
        "other-server-memory",
        _asking("Hi", "And now?"),
        settings={"PERSIST_REASONING_TOKENS": "disabled"},
    ),
    SimulatedChat(
        "tool-results-forgotten",
        _asking("sim:tool Rain?", "And snow?"),
        settings={"PERSIST_TOOL_RESULTS": False},
    ),
    SimulatedChat("picture", (Question("What is this?", list(_WITH_PICTURE)), _SECOND)),
    SimulatedChat("switches", (Question("Hi", metadata=_SWITCHES), _SECOND)),
    SimulatedChat("check", (Question("/check", user={"role": "admin"}),)),
    SimulatedChat("title", (Question(_TITLE_PROMPT, task="title_generation"),)),
    SimulatedChat("wrong-key", _asking("Hi"), settings={"API_KEY": "sk-wrong"}),
    SimulatedChat("no-key", _asking("Hi"), settings={"API_KEY": ""}),
    SimulatedChat(
        "wrong-servers", _asking("Hi"), settings={"REMOTE_MCP_SERVERS_JSON": "[{"}
    ),
    SimulatedChat(
        "wrong-overrides", _asking("Hi"), settings={"MODEL_OVERRIDES_JSON": "{"}
    ),
    SimulatedChat(
        "retried", _asking("sim:500,times=1 Hi"), settings={"MAX_RETRIES": 1}
    ),
    SimulatedChat(
        "retried-thrice", _asking("sim:500,times=3 Hi"), settings={"MAX_RETRIES": 3}
    ),
    SimulatedChat(
        "retried-twice-of-three",
        _asking("sim:500,times=3 Hi"),
        settings={"MAX_RETRIES": 2},
    ),
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
    SimulatedChat(
        "tool-timeout",
        _asking("sim:parallel Rain?", "And snow?"),
        settings={"TOOL_TIMEOUTS": "default: 60, get_*: 2"},
        tool_seconds=5,
    ),
    SimulatedChat(
        "compacted-with-open-calls",
        _asking(f"sim:tool-twice Rain? {'And where? ' * 1200}", "And snow?"),
        settings={"COMPACTION_TOKENS": 1000},
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
    SimulatedChat(
        "counted",
        _asking("Hi", "/usage"),
        administration={
            "USER_LIMITS_JSON": '[{"money": 9, "per": "day", "show": true}]'
        },
    ),
    SimulatedChat(
        "used-up",
        _asking("Hi", "And now?"),
        administration={"USER_LIMITS_JSON": '[{"tokens": 30, "per": "day"}]'},
    ),
    SimulatedChat(
        "address-without-http",
        _asking("Hi", "And now?"),
        settings={"BASE_URL": "ftp://127.0.0.1/v1"},
    ),
    SimulatedChat(
        "address-with-password",
        _asking("Hi", "And now?"),
        settings={"BASE_URL": "http://someone:secret@127.0.0.1/v1"},
    ),
    SimulatedChat(
        "retried-later",
        _asking("sim:429,times=1,retry-after=2 Hi"),
        settings={"MAX_RETRIES": 1},
    ),
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
        yield SimulatedChat(f"http-{scenario.name}", _asking(f"sim:{scenario.name} Hi"))
    for name, refusal in _REFUSALS.items():
        questions = _asking("sim:tool Rain?", "And snow?", "And hail?")
        yield SimulatedChat(f"refused-{name}", questions, faults=(refusal,))
