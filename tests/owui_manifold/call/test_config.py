"""What valves come to: where to send, how long to wait, what to ask for."""

from typing import Any

import pytest

from calls.sample import MODEL, call_of, chat, host_context
from manifold.learning import repair_scope
from openai_responses.items import json_digest
from openai_responses.loop.spending import Budget
from openai_responses.loop.tools import CallLimits
from openai_responses.models.resolve import resolve_model
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import LeaveOutParameter
from openai_responses.requests.build import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.transport.deadlines import Timeouts
from owui_manifold.call.config import build_endpoint, read_config, run_limits
from owui_manifold.call.context import Caller
from owui_manifold.call.expert import PipeExpertKeys
from owui_manifold.call.valves import TOOL_SWITCHES, UserValves, Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import Prepared
from owui_manifold.run.spending import budget_of

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

TOOL = {"type": "function", "function": {"name": "now", "parameters": {}}}
NO_SUMMARY = LeaveOutParameter("reasoning.summary")
NO_STREAM = LeaveOutParameter("stream", json_digest(True))


def never() -> bool:
    return False


def valves(**given: Any) -> Valves:
    return Valves.model_validate({"API_KEY": "sk-1", **given})


async def prepared(
    administrator: dict[str, Any],
    user: dict[str, Any] | None = None,
    streams: bool = True,
    learned: LeaveOutParameter | None = None,
) -> Prepared:
    """A request with one tool, after a refusal showed something."""
    call = call_of(
        chat("Hi", tools=[TOOL]),
        valves(**administrator),
        Caller(MODEL, "user-1", "chat-1", "m-1", streams=streams),
        UserValves.model_validate(user or {}),
        host=host_context({"now": {"spec": {}}}),
    )
    if learned:
        scope = repair_scope(call.endpoint, call.model.id, call.caller.user_id)
        call.memory.repairs.learn(scope, TriedRepair(learned), never)
    return await build_chat_request(call)


async def chosen(*given: Any, **more: Any) -> ResponsesRequest:
    return (await prepared(*given, **more)).request


def secrets(valves: Valves, user: UserValves | None = None) -> list[str]:
    return [*read_config(valves, {"valves": user}).secrets]


async def test_every_valve_of_the_connection_arrives() -> None:
    """Without the white space of a copy and paste."""
    endpoint = build_endpoint(
        valves(
            BASE_URL="https://gateway.example/openai",
            API_KEY=" sk-1\n",
            ORGANIZATION=" org-1 ",
            PROJECT=" proj-1 ",
            EXTRA_HEADERS='{"X-Team": "blue"}',
            COMPATIBILITY="strict",
            VERIFY_SSL=False,
            CA_BUNDLE=" /certificates.pem ",
            PROXY=" http://proxy:3128 ",
        )
    )

    assert endpoint.url("/responses") == "https://gateway.example/openai/responses"
    assert endpoint.headers() == {
        "Authorization": "Bearer sk-1",
        "Content-Type": "application/json",
        "OpenAI-Organization": "org-1",
        "OpenAI-Project": "proj-1",
        "X-Team": "blue",
    }
    assert not endpoint.verify_ssl
    assert endpoint.ca_bundle == "/certificates.pem"
    assert endpoint.proxy == "http://proxy:3128"
    assert endpoint.compatibility == "strict"


async def test_limits_are_those_of_the_expert_settings() -> None:
    limits = run_limits(
        PipeExpertKeys(
            connect_timeout_seconds=5,
            first_event_timeout_seconds=60,
            idle_timeout_seconds=70,
            total_timeout_seconds=80,
            max_retries=3,
            max_retry_wait_seconds=9,
        ),
        resolve_model("gpt-6.1-sol"),
    )

    assert limits.timeouts == Timeouts(5, 60, 70, 80)
    assert limits.retries == RetryPolicy(3, 9)


async def test_user_who_inherits_gets_what_the_administrator_set() -> None:
    """And leaves effort and verbosity to the model."""
    request = await chosen({"REASONING_SUMMARY": "concise"})

    assert request.parallel_tool_calls is None  # the API's default

    assert request.reasoning == {"summary": "concise", "context": "all_turns"}
    assert request.text is None
    assert request.stream is True
    assert request.include == ["reasoning.encrypted_content"]
    assert [tool["name"] for tool in request.tools or ()] == ["now"]


async def test_users_own_choice_wins() -> None:
    user = {
        "REASONING_EFFORT": "high",
        "REASONING_SUMMARY": "detailed",
        "VERBOSITY": "low",
    }

    administrator = {"REASONING_SUMMARY": "disabled", "PARALLEL_TOOL_CALLS": False}
    request = await chosen(administrator, user)

    assert request.parallel_tool_calls is False

    assert request.reasoning == {
        "effort": "high",
        "summary": "detailed",
        "context": "all_turns",
    }
    assert request.text == {"verbosity": "low"}


@pytest.mark.parametrize(
    ("administrator", "user", "learned", "summary"),
    [
        ("disabled", "inherit", None, None),
        ("auto", "disabled", None, None),
        ("auto", "detailed", NO_SUMMARY, None),
        (
            "auto",
            "detailed",
            LeaveOutParameter("reasoning.summary", json_digest("auto")),
            "detailed",
        ),
    ],
    ids=["disabled", "the user's", "refused", "another value was refused"],
)
async def test_summary_is_not_asked_for_where_it_is_disabled_or_refused(
    administrator: str,
    user: str,
    learned: LeaveOutParameter | None,
    summary: str | None,
) -> None:
    given = {"REASONING_SUMMARY": administrator}, {"REASONING_SUMMARY": user}

    sent = (await chosen(*given, learned=learned)).payload()

    assert sent.get("reasoning", {}).get("summary") == summary


@pytest.mark.parametrize(
    ("streams", "enabled", "learned", "stream"),
    [
        (True, True, None, True),
        (True, True, NO_STREAM, None),
        (True, False, None, False),
        (False, True, None, False),
    ],
)
async def test_stream_needs_the_caller_the_valve_and_the_server(
    streams: bool, enabled: bool, learned: LeaveOutParameter | None, stream: bool | None
) -> None:
    """Two of them are not enough; without the field the answer comes in one piece."""
    request = await chosen({"ENABLE_STREAM": enabled}, streams=streams, learned=learned)

    assert request.payload().get("stream") is stream


@pytest.mark.parametrize(
    ("persist", "carries"),
    [("disabled", False), ("response", True), ("conversation", True)],
)
async def test_reasoning_is_requested_and_carried_unless_disabled(
    persist: str, carries: bool
) -> None:
    """Between the rounds of one answer too."""
    prepared_request = await prepared({"PERSIST_REASONING_TOKENS": persist})

    included = prepared_request.request.include or ()
    assert ("reasoning.encrypted_content" in included) is carries
    assert prepared_request.toolset is not None
    assert prepared_request.toolset.carries_reasoning is carries


async def test_valves_set_the_toolset() -> None:
    given = {
        "MAX_FUNCTION_CALL_LOOPS": 3,
        "MAX_TOOL_CALLS": 7,
        "TOOL_TIMEOUTS": "default: 11, crawl_*: 900",
        "TOOL_OUTPUT_CHARACTERS": 1_700,
        "TOOL_APPROVAL": "now=ask",
        "LOG_LEVEL": "DEBUG",
    }
    prepared_request = await prepared(given)
    toolset = prepared_request.toolset
    assert toolset is not None

    assert toolset.tools.parameters("now") == {"type": "object", "properties": {}}
    assert toolset.approver.rule_for("now") == "ask"
    assert toolset.limits == CallLimits(8, 11, 55, 1_700, [("crawl_*", 900)])
    assert budget_of(prepared_request.call) == Budget(rounds=4, calls=7)
    assert toolset.runs_calls is True
    toolset.log("a line")
    assert prepared_request.call.log.text().endswith("WARNING  a line")


@pytest.mark.parametrize(
    ("administrator", "user", "level"),
    [
        ("WARNING", "INHERIT", "WARNING"),
        ("WARNING", "DEBUG", "DEBUG"),
        ("WARNING", "CRITICAL", "WARNING"),
    ],
)
async def test_level_of_the_log_is_the_more_detailed_one(
    administrator: str, user: str, level: str
) -> None:
    """A user cannot hide from the administrator."""
    own = UserValves.model_validate({"LOG_LEVEL": user})

    config = read_config(valves(LOG_LEVEL=administrator), {"valves": own})

    assert level == config.valves.LOG_LEVEL


async def test_every_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys, the proxy and its password, the seal, each header."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    given = valves(
        API_KEY="",
        PROXY="http://ada:hunter%2F2@proxy:1",
        STORE_ENCRYPTION_KEY="long and random",
        EXTRA_HEADERS='{"X-One": "first", "Authorization": "Token second"}',
    )
    mistyped = valves(EXTRA_HEADERS="X-Team: hunter2")

    assert set(secrets(given, UserValves(API_KEY=" sk-own\n"))) == {
        "sk-environment",
        "sk-own",
        "http://ada:hunter%2F2@proxy:1",
        "hunter/2",
        "long and random",
        "first",
        "Token second",
        "second",  # a server may repeat it alone
    }
    assert "X-Team: hunter2" in secrets(mistyped)


@pytest.mark.parametrize("proxy", ["ada:hunter2@proxy", "http://[", "http://proxy:1"])
async def test_proxy_without_a_password_is_secret_as_it_is(proxy: str) -> None:
    """Also one that is no address."""
    assert secrets(valves(PROXY=proxy)) == ["sk-1", proxy]


async def test_nothing_set_is_no_secret() -> None:
    """An empty text would be found everywhere."""
    blank = valves(API_KEY=" ", PROXY=" ", EXTRA_HEADERS='{"X-Team": " "}')

    assert secrets(blank, UserValves(API_KEY=" ")) == []


CHAT = Caller("f.gpt-5.2", user_id="u-1", chat_id="c-1", message_id="m-1")
ELSEWHERE = Caller("f.gpt-5.2", user_id="u-1", chat_id="c-2", message_id="m-2")
SOMEBODY = Caller("f.gpt-5.2", user_id="u-2", chat_id="c-3", message_id="m-3")


async def defaults(caller: Caller = CHAT, **valves: Any) -> dict[str, Any]:
    given = Valves.model_validate({"API_KEY": "sk-1", **valves})
    prepared = await build_chat_request(call_of(chat("Hi"), given, caller))
    payload = prepared.request.payload()
    names = ("safety_identifier", "prompt_cache_key")
    return {name: payload[name] for name in names if name in payload}


async def test_a_user_is_one_stable_hash() -> None:
    """In every chat the same, of no other user, and not to be read."""
    mine = await defaults()
    mine_too = await defaults(ELSEWHERE)
    anothers = await defaults(SOMEBODY)
    assert mine["safety_identifier"] == mine_too["safety_identifier"]
    assert mine["safety_identifier"] != anothers["safety_identifier"]
    assert "u-1" not in str(mine)
    assert len(mine["safety_identifier"]) <= 64


@pytest.mark.parametrize(
    ("kind", "same_user_shares", "is_sent"),
    [("chat", False, True), ("user", True, True), ("off", True, False)],
)
async def test_cache_key_is_of_the_chat_or_of_the_user(
    kind: str, same_user_shares: bool, is_sent: bool
) -> None:
    here = (await defaults(CHAT, PROMPT_CACHE_KEY=kind)).get("prompt_cache_key")
    there = (await defaults(ELSEWHERE, PROMPT_CACHE_KEY=kind)).get("prompt_cache_key")
    assert (here == there) is same_user_shares
    assert "u-1" not in str(here)  # a hash
    assert (here is not None) is is_sent
    other = (await defaults(SOMEBODY, PROMPT_CACHE_KEY=kind)).get("prompt_cache_key")
    assert not is_sent or here != other


@pytest.mark.parametrize("word", ["id", "email"])
async def test_older_words_for_the_cache_key_mean_the_user(word: str) -> None:
    """Both mean the user; an address is never sent."""
    assert Valves.model_validate({"PROMPT_CACHE_KEY": word}).PROMPT_CACHE_KEY == "user"


async def test_without_a_chat_the_user_is_the_key() -> None:
    """A plain HTTP client has no chat; without a user nothing is sent."""
    plain = Caller("f.gpt-5.2", user_id="u-1")
    assert await defaults(plain) == await defaults(plain, PROMPT_CACHE_KEY="user")
    assert await defaults(Caller("f.gpt-5.2")) == {}


ALL = UserValves(
    REASONING_EFFORT="max",
    REASONING_SUMMARY="detailed",
    VERBOSITY="high",
    WEB_SEARCH="on",
    IMAGE_GENERATION="on",
    CODE_INTERPRETER="on",
    FILE_INPUT="pdf",
    SERVICE_TIER="priority",
    SHOW_COST="on",
    LOG_LEVEL="DEBUG",
    API_KEY="sk-own",
    SHOW_LOG_ON_ERROR=True,
)
CHOSEN: dict[str, tuple[str, object]] = {
    "effort": ("effort", "max"),
    "summary": ("REASONING_SUMMARY", "detailed"),
    "verbosity": ("verbosity", "high"),
    "file_input": ("FILE_INPUT", "pdf"),
    "service_tier": ("SERVICE_TIER", "priority"),
    "show_cost": ("SHOW_COST", True),
    "log_level": ("LOG_LEVEL", "DEBUG"),
}
"""What these come to where they count, in addition to the kinds of tools."""


def left(may_change: str | None = None, role: str = "user") -> set[str]:
    """Return the settings that still count of a user who changed them all."""
    given = {} if may_change is None else {"USER_MAY_CHANGE": may_change}
    valves = Valves.model_validate({"USER_API_KEYS": "allowed", **given})
    config = read_config(valves, {"valves": ALL, "role": role})
    assert config.own_key == "sk-own"
    assert config.shows_log is (role == "admin")
    applied = {**config._asdict(), **dict(config.valves)}
    kept = {word for word, (name, value) in CHOSEN.items() if applied[name] == value}
    return kept | config.tool_kinds


async def test_every_setting_of_a_user_is_tried() -> None:
    """A new one has to be added above: here it shows whether users may change it."""
    judged_elsewhere = {"API_KEY", "SHOW_LOG_ON_ERROR"}  # in `left`

    assert ALL.model_fields_set == UserValves.model_fields.keys()
    chosen = ALL.model_fields_set - judged_elsewhere
    assert len(CHOSEN) + len(TOOL_SWITCHES) == len(chosen)


def problems(may_change: str) -> tuple[str, ...]:
    return read_config(Valves(USER_MAY_CHANGE=may_change)).problems


EVERYTHING = {*CHOSEN, *TOOL_SWITCHES}


@pytest.mark.parametrize(
    ("may_change", "role", "counts"),
    [
        # Users cannot enable what is costly. Images have a switch, like the other tools.
        (None, "user", EVERYTHING - {"file_input", "service_tier"}),
        # The log of a failed answer is for administrators anyway; keys have a valve.
        ("", "user", set()),
        ("nothing", "user", set()),
        ("nothing", "admin", EVERYTHING),
        ("all", "user", EVERYTHING),
        ("Effort,VERBOSITY", "user", {"effort", "verbosity"}),
        ("file_input, service_tier", "user", {"file_input", "service_tier"}),
        ("image_generation", "user", {"image_generation"}),
    ],
)
async def test_users_may_change_what_the_administrator_says(
    may_change: str | None, role: str, counts: set[str]
) -> None:
    assert left(may_change, role) == counts


async def test_unknown_word_changes_nothing_and_is_reported() -> None:
    """It takes a right away, so the administrator is told."""
    [problem] = problems("efort, summary")
    assert problem.startswith(
        "USER_MAY_CHANGE contains unknown names: efort. Choose from"
    )
    assert "effort, summary" in problem
    assert left("efort, summary") == {"summary"}
    for good in ("", "all", "nothing", "effort , SUMMARY"):
        assert problems(good) == ()


async def test_valves_that_need_permission_are_described_as_such() -> None:
    """Whoever changes one without effect has read that it may have none."""
    refused = read_config(Valves(), {"valves": ALL, "role": "user"}).refused

    marked = {
        name
        for name, field in UserValves.model_fields.items()
        if "(if allowed)" in (field.description or "")
    }
    assert marked == set(refused)


@pytest.mark.parametrize(
    ("parameter", "may_change", "role", "given", "is_refused"),
    [
        ("pdf", "file_input", "user", "pdf", False),
        ("pdf", "effort", "user", "all", True),
        ("pdf", "nothing", "admin", "pdf", False),
        (["pdf"], "all", "user", "off", False),
    ],
)
async def test_a_chat_can_have_a_parameter_for_its_files(
    parameter: object, may_change: str, role: str, given: str, is_refused: bool
) -> None:
    """It comes before the user's own setting; both need the same permission."""
    valves = Valves(USER_MAY_CHANGE=may_change, FILE_INPUT="all")
    person = {"valves": UserValves(FILE_INPUT="off"), "role": role}

    config = read_config(valves, person, {}, {"file_input": parameter})

    assert given == config.valves.FILE_INPUT
    assert list(config.refused) == ["FILE_INPUT"] * is_refused
