"""The answer to `/check`: each piece of the set-up, tried out."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from calls.outcomes import chunks_of, plain_text
from calls.sample import USER, call_of, chat, host_context, valves_for
from openai_responses.loop.events import RunDone
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from owui_administration.filter import Filter
from owui_chat.commands import without_commands
from owui_chat.messages import parse_messages
from owui_manifold.call.config import SWITCH_CONTRACT
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.pipe import Pipe
from owui_manifold.run.checkup import check_lines
from owui_manifold.run.commands import stream_lines
from simulator import Simulator
from stand_in.host import StandInHost, close_connections, host_request
from upstream.server import KEY, Answerer, Upstream

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

MODEL = "gpt-5.2"
ADMIN = Caller(f"my_pipe.{MODEL}", "user-1", "chat-1", "m-1", is_admin=True)


async def findings(
    base_url: str, key: str, dropped: dict[str, int] | None = None, /, **valves: Any
) -> str:
    """Return the text that an administrator reads."""
    connections = Connections()
    given = {"BASE_URL": base_url, "API_KEY": key, "MODEL_ID": f"auto, {MODEL}"}
    call = call_of(
        chat("/check"),
        Valves.model_validate({**given, **valves}),
        ADMIN,
        host=host_context(request=host_request()),
    )
    call.memory.dropped.update(dropped or {})
    events = stream_lines(check_lines(call, connections, []))
    shown = [event async for event in events]
    await connections.close()
    ended = shown[-1]
    assert isinstance(ended, RunDone)
    assert not ended.ending.is_failure
    text = "".join(event.text for event in shown if isinstance(event, TextDelta))
    assert ended.output[0]["content"][0]["text"] == text
    return text


async def test_working_setup_passes_every_check(sim: Simulator) -> None:
    text = await findings(sim.base_url, sim.api_key, ENABLE_WEB_SEARCH=True)

    bodies = [request.body for request in sim.requests if request.body]
    lines = text.strip().splitlines()[2:-2]
    heads = [line.split("**")[1] for line in lines]
    assert heads == [
        "Valves",
        "Usage",
        "Filters",
        "The key",
        "A small request",
        "Streaming",
        "Summaries",
        "web_search",
        "Earlier reasoning",
    ]
    assert all(line.startswith("- ✅ **") for line in lines)
    assert text.endswith("\n\nResult: no problems.\n")
    assert len(bodies) == 4
    assert all(body["store"] is False for body in bodies)
    assert all(body["max_output_tokens"] == 16 for body in bodies)
    part = {"type": "input_text", "text": "ping"}
    ping = {"type": "message", "role": "user", "content": [part]}
    assert all(body["input"] == [ping] for body in bodies)


async def test_stored_valve_without_effect_is_named(sim: Simulator) -> None:
    """An old value that turned a billed search on is not lost silently."""
    text = await findings(sim.base_url, sim.api_key, ENABLE_WEB_SEARCH_TOOL=True)

    assert "- ⚠️ **Warning: Stored valves.** These have no effect." in text
    named = "\n  - `ENABLE_WEB_SEARCH_TOOL`: Set `ENABLE_WEB_SEARCH` instead.\n"
    assert named in text
    assert "web_search" not in text
    assert text.endswith("\n\nResult: 1 warning.\n")


async def test_dropped_reasoning_is_counted_by_cause(sim: Simulator) -> None:
    dropped = {"prefix_mismatch": 3, "end_user_mismatch": 1}
    text = await findings(sim.base_url, sim.api_key, dropped)

    assert (
        "❌ **Problem: Earlier reasoning.** The API left some of it out since the last "
        "start: 3 prefix_mismatch, 1 end_user_mismatch. Look for filters" in text
    )


async def test_models_that_the_key_lacks_are_named(sim: Simulator) -> None:
    names = f"{MODEL}, gpt-6.1-sol, gpt-6.1-sol-high"
    text = await findings(sim.base_url, "sk-simulator-limited", MODEL_ID=names)

    [line] = [line for line in text.splitlines() if "The key" in line]
    named = (
        "The model's server accepts it, but does not list these models: gpt-6.1-sol. "
    )
    assert line.startswith(f"- ⚠️ **Warning: The key.** {named}")
    assert line.endswith("change MODEL_ID.")
    assert text.endswith("\n\nResult: 1 warning.\n")


async def test_wrong_key_ends_the_check(sim: Simulator) -> None:
    """The message of a chat is there, the key does not; nothing more is tried."""
    text = await findings(sim.base_url, "sk-wrong-CANARY")

    [line] = [line for line in text.splitlines() if line.startswith("- ❌")]
    assert line.startswith("- ❌ **Problem: A small request.** ")
    assert line.endswith("The other checks need an answer, so they were skipped.")
    assert "API_KEY" in line
    assert "CANARY" not in text
    assert "Streaming" not in text
    assert text.endswith("\n\nResult: 1 problem and 1 warning.\n")


def serving(
    answer: Callable[[Any], dict[str, Any] | None], status: int = 400
) -> Answerer:
    """A server that lists a model, and answers a body, perhaps with an error."""

    async def serve(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"data": [{"id": MODEL}]})
        error = answer(await request.json())
        if error:
            return web.json_response({"error": error}, status=status)
        return web.json_response({"status": "completed", "output": []})

    return serve


def refusing(param: str, code: str, named: str = "") -> Answerer:
    """A server that refuses requests with something in them, and their text."""
    error = {"code": code, "param": named or f"{param}.summary", "message": "CANARY"}
    return serving(lambda body: error if body.get(param) else None)


@pytest.mark.parametrize(
    ("param", "named", "missing", "advice", "works"),
    [
        (
            *("reasoning", "reasoning.summary", "Summaries"),
            *("or set REASONING_SUMMARY to `disabled`.", "A small request"),
        ),
        ("stream", "stream", "Streaming", "or turn off ENABLE_STREAM.", "Summaries"),
    ],
)
async def test_unverified_organization_is_told_what_is_missing(
    param: str, named: str, missing: str, advice: str, works: str
) -> None:
    """A chat goes on without it, and the other lines still come."""
    async with Upstream(refusing(param, "unsupported_value", named)) as upstream:
        text = await findings(upstream.base_url, KEY)

    problem = f"❌ **Problem: {missing}.** "
    [line] = [line for line in text.splitlines() if problem in line]
    assert line.endswith(advice)
    assert f"✅ **{works}**" in text
    assert "CANARY" not in text


async def test_refused_hosted_tools_are_named() -> None:
    servers = '{"server_label": "wiki", "server_url": "https://wiki.example/mcp"}'
    tools = {"ENABLE_WEB_SEARCH": True, "REMOTE_MCP_SERVERS_JSON": servers}
    async with Upstream(refusing("tools", "invalid_value")) as upstream:
        text = await findings(upstream.base_url, KEY, **tools)

    lines = [line for line in text.splitlines() if line.startswith("- ❌")]
    heads = [line.split("**")[1] for line in lines]
    assert heads == ["Problem: web_search.", "Problem: wiki."]
    assert lines[0].endswith("or turn off ENABLE_WEB_SEARCH.")
    assert lines[1].endswith("Check REMOTE_MCP_SERVERS_JSON.")
    assert text.endswith("\n\nResult: 2 problems.\n")


async def test_server_without_a_list_of_models_passes() -> None:
    """Other servers have none; the requests are what counts."""

    async def answer(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.Response(status=404)
        return web.json_response({"status": "completed", "output": []})

    async with Upstream(answer) as upstream:
        text = await findings(upstream.base_url, KEY)

    assert "✅ **The list of models**: The model's server lists no models." in text
    assert "✅ **A small request**" in text


async def test_request_is_repeated_without_a_limit_that_is_too_low() -> None:
    too_low = {"message": "max_output_tokens must be at least 64"}
    server = serving(
        lambda body: too_low if "max_output_tokens" in body else None, status=500
    )
    async with Upstream(server) as upstream:
        text = await findings(upstream.base_url, KEY)

    assert "❌" not in text


FILTER_ID = "openai_responses_administration"
ADA = {**USER, "role": "admin"}
AUTHOR = "The authors of OpenAI Responses Manifold"
ADMINISTRATION_TITLE = "OpenAI Responses Administration"


class Desk:
    """An administrator who has the filter, and asks for a check."""

    def __init__(self, host: StandInHost, sim: Simulator) -> None:
        self.host = host
        self.sim = sim
        host.filters.active[FILTER_ID] = Filter()

    async def check(self, rules: str = "", entries: str = "", **valves: Any) -> str:
        """What is read then, as a telephone writes the command."""
        self.host.filters.valves[FILTER_ID] = {
            "USER_LIMITS_JSON": rules,
            "ENDPOINTS_JSON": entries,
        }
        pipe = Pipe()
        pipe.valves = valves_for(self.sim, **{"MODEL_ID": MODEL, **valves})
        body = chat(" /Check\n", model=f"my_pipe.{MODEL}")
        given: dict[str, Any] = {"__user__": ADA, "__request__": host_request()}
        chunks = await chunks_of(pipe, body, **given)
        await close_connections(pipe)
        return plain_text(chunks)


@pytest.fixture
def desk(host: StandInHost, sim: Simulator) -> Desk:
    return Desk(host, sim)


async def test_models_that_retire_are_named_with_what_replaces_them(desk: Desk) -> None:
    """Those of MODEL_ID, of the agents, for tasks and for pictures, each once."""
    ending = {"shutdown": "2026-01-01", "successor": "gpt-6.1-sol"}
    names = ("gpt-5.6-sol", "gpt-5.4", "gpt-5.1")
    text = await desk.check(
        MODEL_ID="auto, gpt-5.6-sol, gpt-5.6-sol, gpt5_function_calling",
        TASK_MODEL=" gpt-5.1",
        AGENT_JSON='{"model": "gpt-5.4"}',
        IMAGE_GENERATION_OPTIONS='{"model": "gpt-image-1.5"}',
        MODEL_OVERRIDES_JSON=json.dumps(dict.fromkeys(names, ending)),
    )

    [line] = [line for line in text.splitlines() if "retire" in line]
    assert line.startswith("- ⚠️ **Warning: Models that retire.** GPT-5.6 Sol was ")
    assert line.count("Use GPT-6.1 Sol instead.") == 3
    for name in ("GPT-5.6 Sol", "GPT-5.4", "GPT-5.1", "gpt-image-1.5"):
        assert line.count(f"{name} ") == 1
    assert "retire" not in await desk.check()


async def test_rule_that_cannot_be_read_is_named(desk: Desk) -> None:
    """Its users get no answers, while the administrator gets some."""
    text = await desk.check(rules='[{"role": "user", "money": 5}]')
    assert (
        "❌ **Problem: Limits.** Rule 1 of USER_LIMITS_JSON: `per` is missing" in text
    )

    assert "✅ **Limits**" in await desk.check(rules="[]")


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        pytest.param("{", "AGENT_JSON", id="unreadable"),
        pytest.param(
            '{"model": "chatgpt-image-latest"}',
            "the model chatgpt-image-latest cannot call tools",
            id="an agent's model without tools",
        ),
        pytest.param(f'{{"sk-{"a1" * 12}": 1}}', "[redacted]", id="a key as a name"),
    ],
)
async def test_valves_that_keep_from_answers_are_named(
    agent: str, message: str, desk: Desk
) -> None:
    """Also those of agents, while the administrator's own model answers."""
    text = await desk.check(MODEL_ID=f"{MODEL}, gpt5_react", AGENT_JSON=agent)

    problem = "- ❌ **Problem: Valves.** "
    [line] = [line for line in text.splitlines() if line.startswith(problem)]
    assert message in line
    assert "✅ **Streaming**" in text
    assert "✅ **Valves**" in await desk.check()


@pytest.mark.parametrize(
    ("valves", "message"),
    [
        (
            {"WEB_SEARCH_OPTIONS": '{"alowed_domains": ["a.org"]}'},
            "WEB_SEARCH_OPTIONS contains unknown names: alowed_domains. Known keys: ",
        ),
        (
            {"MODEL_OVERRIDES_JSON": '{"mine": {"lik": "gpt-5.2"}}'},
            "the entry mine has a mistake: the key `lik` is unknown (known keys: ",
        ),
        (
            {"MODEL_OVERRIDES_JSON": f'{{"sk-CANARY{"x" * 20}": 1}}'},
            "the entry [redacted] is not a JSON object",
        ),
        ({"EXTRA_HEADERS": '{"X": 1, "Key": "CANARY"}'}, "EXTRA_HEADERS is not a "),
        ({"API_KEY": ""}, "This pipe has no API key yet."),
        ({"BASE_URL": "ftp://a.example"}, "correct BASE_URL in the valves"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_list_always_appears(
    valves: dict[str, Any], message: str, desk: Desk
) -> None:
    """Each wrong setting is in it, also one without which no chat is answered."""
    text = await desk.check(**valves)

    [line] = [line for line in text.splitlines() if "**Problem: Valves.**" in line]
    assert message in line
    assert "CANARY" not in text
    assert "Result: 1 problem" in text
    said = chat("/check", text)["messages"]
    assert without_commands(parse_messages(said)[1]) == []  # no model is told later


async def test_mistake_that_stops_all_chats_is_the_first_of_three(desk: Desk) -> None:
    text = await desk.check(EXTRA_HEADERS="[", AGENT_JSON="[", API_KEY="")

    lines = [line for line in text.splitlines() if "**Problem: Valves.**" in line]
    assert len(lines) == 3
    assert "no API key" in lines[0]
    assert desk.sim.requests == []


async def test_functions_that_cannot_be_listed(
    monkeypatch: pytest.MonkeyPatch, desk: Desk
) -> None:
    async def fail(_: str) -> None:
        raise RuntimeError("disk")

    monkeypatch.setattr(desk.host.functions, "get_functions_by_type", fail)
    text = await desk.check()

    assert (
        "❌ **Problem: Filters.** Open WebUI could not list them (RuntimeError" in text
    )
    assert "✅ **A small request**" in text


async def test_each_entry_of_the_endpoints_is_asked(desk: Desk) -> None:
    """Also those of groups that the administrator is not in; no key is shown."""
    works = {"api_key": desk.sim.api_key, "base_url": desk.sim.base_url}
    rows = [
        {**works, "groups": ["staff"]},
        {**works, "api_key": "sk-wrong-CANARY", "groups": ["students"]},
        {**works, "models": ["gpt-4.1-research"]},
        {**works, "models": ["gpt-4.1"]},
    ]
    names = f"auto, {MODEL}, gpt-4.1, gpt-4.1-research"
    text = await desk.check(entries=json.dumps(rows), MODEL_ID=names)

    assert "✅ **Entry 1 of ENDPOINTS_JSON**: GPT-5.2 answers at 127.0.0.1.\n" in text
    assert "❌ **Problem: Entry 2 of ENDPOINTS_JSON.** " in text
    refused = "❌ **Problem: Entry 3 of ENDPOINTS_JSON.** GPT-4.1 Research cannot "
    assert refused in text
    assert "✅ **Entry 4 of ENDPOINTS_JSON**: GPT-4.1 answers at 127.0.0.1.\n" in text
    assert "CANARY" not in text


async def test_task_model_that_does_not_answer(desk: Desk) -> None:
    desk.host.settings.values["task.model.external"] = "my_pipe.gone"
    text = await desk.check(TASK_MODEL="gpt-99-unheard-of")

    assert "❌ **Problem: TASK_MODEL.** " in text
    missing = "❌ **Problem: Open WebUI's task models.** Open WebUI has no my_pipe.gone"
    assert missing in text
    assert "✅ **TASK_MODEL**" in await desk.check(TASK_MODEL="gpt-4.1")


async def test_version_tells_files_of_one_version_apart(desk: Desk) -> None:
    """By the digest that `sha256sum` prints for the file."""
    desk.host.functions.add("another", "pipe", content="x", version="3.0.0")
    desk.host.functions.add("my_pipe", "pipe", content="Zürich\n", version="1.2.0.dev")

    digest = "f40e3dbf7c4085b08c862a3200f923d8025d15cc518e7b740cd5f17fb931d286"
    text = await desk.check()
    assert f"✅ **Version**: 1.2.0.dev, SHA-256 {digest}.\n" in text


class OldSwitch:
    """A switch of the first release, which states no contract."""


class NewSwitch:
    """One of a later release, in which what goes to the pipe has changed."""

    CONTRACT = SWITCH_CONTRACT + 1


async def test_filters_of_other_releases(desk: Desk) -> None:
    """They are no problem as long as they work; filters of others say nothing."""
    add = partial(
        desk.host.functions.add, kind="filter", author=AUTHOR, version="0.9.0"
    )
    desk.host.functions.add("other", "filter", title="O", author="O", version="3")
    desk.host.filters.active |= {"search": OldSwitch(), "effort": NewSwitch()}
    add("search", title="Search")
    add(FILTER_ID, title=ADMINISTRATION_TITLE)
    assert "✅ **Filters**" in await desk.check()

    add("effort", title="Effort", is_active=False)
    assert "✅ **Filters**" in await desk.check()

    desk.host.functions.rows[-1].is_active = True
    text = await desk.check()
    [line] = [line for line in text.splitlines() if "Filters" in line]
    assert line == (
        "- ❌ **Problem: Filters.** Effort 0.9.0 does not work with this version of "
        "the pipe. Update the pipe (docs/install.md, Update)."
    )


async def test_filter_for_administrators_that_is_not_asked(desk: Desk) -> None:
    """Switched off, or under an id by which the pipe does not find it."""
    add = partial(desk.host.functions.add, kind="filter", author=AUTHOR)
    add = partial(add, title=ADMINISTRATION_TITLE, version="1.0.0")
    desk.host.filters.active["administration_1"] = Filter()
    add(FILTER_ID, is_active=False)
    add("administration_1")
    text = await desk.check()
    assert f"{ADMINISTRATION_TITLE} is switched off: no limits apply." in text
    assert (
        f"The id of {ADMINISTRATION_TITLE} has to be openai_responses_administration"
        in text
    )


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("title_generation", '{"title": "Setup check"}'),
        ("tags_generation", ""),
        ("follow_up_generation", ""),
    ],
)
async def test_tasks_about_a_check_ask_no_model(
    task: str, text: str, sim: Simulator
) -> None:
    """No one pays for the title of a check; of others' chats a model writes it."""
    pipe = Pipe()
    pipe.valves = valves_for(sim)
    metadata = {"task_body": {"messages": chat("/check", "Fine.")["messages"]}}
    body = {**chat("Write it about the chat."), "stream": False}

    given: dict[str, Any] = {"__task__": task, "__metadata__": metadata}
    result: Any = await pipe.pipe(body, __user__=ADA, **given)

    assert result["choices"][0]["message"]["content"] == text
    assert sim.requests == []
    await pipe.pipe(body, __user__=USER, **given)
    assert len(sim.requests) == 1
