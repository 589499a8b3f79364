"""Several endpoints: where a call goes, where a chat stays, and what follows a failure."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from calls.outcomes import (
    advice,
    chunks_of,
    errors,
    grown,
    result_of,
    statuses,
    stored,
)
from calls.sample import IDS, USER, chat
from calls.turns import row_of
from calls.valves import expert
from owui_administration.filter import Filter
from owui_manifold.call.valves import UserValves
from owui_manifold.pipe import Pipe
from simulator import Simulator
from stand_in.host import StandInHost, host_request
from upstream.server import Upstream, free_port, replying

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
Entries = Callable[..., None]
NATIVE: Json = {
    "__user__": USER,
    "__metadata__": IDS,
    "__request__": host_request(),
}
PLAIN: Json = {**NATIVE, "__metadata__": {}}
ADMIN: Json = {**NATIVE, "__user__": {**USER, "role": "admin"}}
LOST = "The earlier reasoning of this chat belongs to another server or account."
NEXT = "answer: asking the next one."


@pytest_asyncio.fixture
async def other() -> AsyncIterator[Simulator]:
    """A second server, of another organization."""
    async with Simulator() as simulator:
        simulator.api_key = "sk-simulator-2"
        yield simulator


def at(sim: Simulator | Upstream, *groups: str, **more: Any) -> Json:
    """An entry for a server."""
    key = sim.api_key if isinstance(sim, Simulator) else "sk-upstream-1"
    return {"groups": [*groups], "base_url": sim.base_url, "api_key": key, **more}


@pytest.fixture
def entries(host: StandInHost) -> Entries:
    """Let an administrator set these in the filter."""
    filter_id = "openai_responses_administration"
    host.filters.active = {filter_id: Filter()}

    def set_entries(*given: Json) -> None:
        host.filters.valves = {filter_id: {"ENDPOINTS_JSON": json.dumps(given)}}

    return set_entries


def kinds(sim: Simulator) -> list[str]:
    """The types of the items in the last request."""
    return [item["type"] for item in sim.requests[-1].body["input"]]


def answering(message_id: str) -> Json:
    """What the host passes for another message of the chat."""
    return {**NATIVE, "__metadata__": {**IDS, "message_id": message_id}}


async def test_each_group_has_its_server(
    pipe: Pipe,
    sim: Simulator,
    other: Simulator,
    host: StandInHost,
    entries: Entries,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Answers and tasks; keys are in no log and no chat; no one else gets there."""
    host.groups.members = {"staff": {"user-1"}, "pupils": {"user-2"}}
    pipe.valves = pipe.valves.model_copy(update={"API_KEY": "sk-wrong"})
    entries(at(sim, "staff"), at(other, "id of pupils"))
    pupil = {**NATIVE, "__user__": {**USER, "id": "user-2"}}

    shown = await chunks_of(pipe, chat("I am staff"), **NATIVE)
    await result_of(pipe, chat("A title"), **NATIVE, __task__="title_generation")
    shown += await chunks_of(pipe, chat("I am a pupil"), **pupil)
    nobody = {**NATIVE, "__user__": {**USER, "id": "user-3"}}
    refused = await chunks_of(pipe, chat("I am nobody"), **nobody)

    assert [r.status for r in sim.requests] == [200, 200, 401]
    assert [r.status for r in other.requests] == [200]
    assert "pupil" in json.dumps(other.requests[0].body)
    assert not errors(shown)
    assert errors(refused)
    text = json.dumps([shown, refused]) + "".join(capsys.readouterr())
    assert "sk-simulator" not in text


async def test_key_of_an_entry_is_in_no_log(
    pipe: Pipe, entries: Entries, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even if the server repeats it: in the log, the chat and its shown log."""
    key = "canary-3f9b1c7e5a2d8046"

    async def repeat(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": f"No {key}."}}, status=400)

    async with Upstream(repeat) as upstream:
        entries({"base_url": upstream.base_url, "api_key": key})
        own = UserValves(SHOW_LOG_ON_ERROR=True)
        person = {**USER, "role": "admin", "valves": own}
        shown = await chunks_of(pipe, chat("Hi"), **NATIVE | {"__user__": person})

    assert errors(shown)
    assert "Log of this answer" in json.dumps(shown)
    assert key not in json.dumps(shown) + caplog.text


async def test_a_chat_stays_where_its_reasoning_can_be_read(
    pipe: Pipe, sim: Simulator, other: Simulator, entries: Entries
) -> None:
    """As long as the entry is for its user; then it goes on without, and says so."""
    entries(at(other))
    first = await chunks_of(pipe, chat("Hi"), **NATIVE)
    entries(at(sim), at(other))
    body = chat("Hi", stored(first), "And now?")

    stays = await chunks_of(pipe, body, **answering("m-2"))
    assert statuses(stays) == []
    assert not sim.requests
    assert "reasoning" in kinds(other)

    entries(at(sim))
    moves = await chunks_of(pipe, body, **answering("m-3"))
    assert statuses(moves) == [LOST]
    assert not errors(moves)
    assert len(other.requests) == 2
    assert "reasoning" not in kinds(sim)


async def test_a_chat_that_moved_stays_where_it_went(
    pipe: Pipe, sim: Simulator, other: Simulator, entries: Entries
) -> None:
    """Its newest reasoning counts, not its first."""
    entries(at(other))
    first = await chunks_of(pipe, chat("Hi"), **NATIVE)
    entries(at(sim))
    asked = ["Hi", stored(first), "And now?"]
    second = await chunks_of(pipe, chat(*asked), **answering("m-2"))
    entries(at(other), at(sim))
    asked += [stored(second), "And then?"]

    third = await chunks_of(pipe, chat(*asked), **answering("m-3"))

    assert statuses(third) == []
    assert (len(other.requests), len(sim.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("carrier", "timeouts"),
    [("output", ""), ("output", "nonsense"), ("markers", ""), ("markers", "nonsense")],
)
async def test_what_a_failed_account_was_sent_is_not_kept_as_its_answer(
    carrier: str,
    timeouts: str,
    pipe: Pipe,
    sim: Simulator,
    host: StandInHost,
    entries: Entries,
) -> None:
    """A record without a text begins no answer: the next account is asked.

    Nor does a notice, such as one about valves. The last one's failure is the answer.
    """
    update = {"HISTORY_CARRIER": carrier, "TOOL_TIMEOUTS": timeouts}
    pipe.valves = pipe.valves.model_copy(update=update)
    body = chat("Hi", model="my_pipe.gpt-6.1-sol")
    body["messages"].insert(0, {"role": "system", "content": "Be brief."})
    row_of(host, "Hi")
    ids = {**IDS, "user_message_id": "q0", "message_id": "a0"}
    async with Upstream(replying("{}", status=500)) as down:
        for others in ((at(sim),), ()):
            entries(at(down), *others)
            shown = await chunks_of(pipe, body, **{**ADMIN, "__metadata__": ids})

            assert bool(errors(shown)) is not bool(others)
            assert ("This is turn 1." in grown(shown)) is bool(others)
            lines = statuses(shown)
            assert any("TOOL_TIMEOUTS" in line for line in lines) is bool(timeouts)
            done = [c for c in shown if c.get("type") == "response.output_item.done"]
            kept = [c for c in done if c["item"]["type"].endswith(":kept")]
            assert len(kept) == (carrier == "output")


@pytest.mark.parametrize(
    ("status", "code", "asked"), [(400, "model_not_found", 2), (500, None, 1)]
)
async def test_next_account_answers_after_a_failure(
    status: int,
    code: str | None,
    asked: int,
    pipe: Pipe,
    sim: Simulator,
    entries: Entries,
) -> None:
    """A server that failed is the last one for a minute; one without the model not.

    tests/owui_administration/test_endpoints.py has all failures.
    """
    keys = list[str | None]()

    async def refuse(request: web.Request) -> web.Response:
        keys.append(request.headers.get("Authorization"))
        error = {"message": "No.", "code": code}
        return web.json_response({"error": error}, status=status)

    async with Upstream(refuse) as down:
        entries(at(down), at(sim))
        shown = await chunks_of(pipe, chat("Hi"), **NATIVE)
        again = await chunks_of(pipe, chat("Hi"), **PLAIN)

    assert [NEXT in line for line in statuses(shown)] == [True]
    assert not errors(shown + again)
    assert keys == ["Bearer sk-upstream-1"] * asked
    assert len(sim.requests) == 2
    assert len([c for c in shown if "usage" in c]) == 1


def as_user(name: str, message_id: str) -> dict[str, Any]:
    """What the host gives for an answer to this user."""
    return {**answering(message_id), "__user__": {**USER, "id": name}}


async def test_failure_that_one_user_met_moves_no_other(
    pipe: Pipe, sim: Simulator, entries: Entries
) -> None:
    """One bad moment is no one else's; three users' trouble is the server's."""
    keys = list[str | None]()

    async def fail(request: web.Request) -> web.Response:
        keys.append(request.headers.get("Authorization"))
        return web.json_response({"error": {"message": "No."}}, status=500)

    async with Upstream(fail) as down:
        entries(at(down), at(sim))
        asked: list[int] = []
        for number, name in enumerate(("ada", "ada", "bob", "cyd", "eve")):
            shown = await chunks_of(pipe, chat("Hi"), **as_user(name, f"m-{number}"))
            assert not errors(shown)
            asked.append(len(keys))

    assert asked == [1, 1, 2, 3, 3]


async def test_lines_about_retries_begin_no_answer(
    pipe: Pipe, sim: Simulator, entries: Entries
) -> None:
    """The next account is asked after the retries, whose lines people have seen."""
    retried = {"EXPERT_JSON": expert(max_retries=1)}
    pipe.valves = pipe.valves.model_copy(update=retried)

    async def fail(_: web.Request) -> web.Response:
        return web.json_response({}, status=503, headers={"Retry-After-Ms": "1"})

    async with Upstream(fail) as down:
        entries(at(down), at(sim))
        shown = await chunks_of(pipe, chat("Hi"), **NATIVE)
        assert len(down.requests) == 2

    assert not errors(shown)
    assert "Trying again" in statuses(shown)[0]
    assert any(NEXT in line for line in statuses(shown))


async def test_entries_that_cannot_be_reached(
    pipe: Pipe, entries: Entries, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the cause of each; the last one names the setting that is wrong."""
    first, last = (f"http://127.0.0.1:{free_port()}/v1" for _ in range(2))
    entries(*({"base_url": address, "api_key": "sk-1"} for address in (first, last)))

    shown = await chunks_of(pipe, chat("Hi"), **ADMIN)

    [error] = errors(shown)
    assert "127.0.0.1 cannot be reached: it refused the connection." in error
    assert "check ENDPOINTS_JSON in the valves of the filter." in error
    assert "BASE_URL" not in error
    assert caplog.text.count("cannot be reached: it refused the connection") == 2


@pytest.mark.parametrize("is_first", [True, False])
async def test_chat_with_reasoning_is_told_what_it_loses(
    is_first: bool, pipe: Pipe, sim: Simulator, other: Simulator, entries: Entries
) -> None:
    """Its server is gone: another one answers, without the reasoning."""
    entries(at(other), at(sim))
    first = await chunks_of(pipe, chat("Hi"), **NATIVE)
    if not is_first:
        entries(at(sim), at(other))
    await other.stop()

    shown = await chunks_of(
        pipe, chat("Hi", stored(first), "And now?"), **answering("m-2")
    )

    assert not errors(shown)
    lines = statuses(shown)
    assert NEXT in lines[-2]
    assert LOST in lines[-1]
    assert "reasoning" not in kinds(sim)


async def test_started_or_refused_answer_is_not_retried_elsewhere(
    pipe: Pipe, sim: Simulator, other: Simulator, entries: Entries
) -> None:
    """A text that broke off stays as it is, and a refusal of the request is the end."""
    entries(at(other), at(sim))

    for text in ("sim:refuse", "sim:misaligned-first", "sim:cyber-403"):
        shown = await chunks_of(pipe, chat(text), **NATIVE)
        assert errors(shown), text
    assert errors(await chunks_of(pipe, chat("sim:failed"), **NATIVE))
    assert "broke before" in advice(await chunks_of(pipe, chat("sim:cut"), **NATIVE))

    assert not sim.requests


@pytest.mark.parametrize("scenario", ["misaligned", "cyber-failed"])
async def test_answer_stopped_in_the_stream_is_not_continued_elsewhere(
    scenario: str, pipe: Pipe, sim: Simulator, other: Simulator, entries: Entries
) -> None:
    """Also where nothing was shown yet."""
    entries(at(other), at(sim))
    shown = await chunks_of(pipe, chat(f"sim:{scenario}"), **NATIVE)
    assert len(errors(shown)) == 1
    assert not sim.requests


@pytest.mark.parametrize(
    ("scenario", "asked"), [("too-large-first", (2, 1)), ("xai-key", (1, 2))]
)
async def test_account_that_refused_one_request_is_not_down(
    scenario: str,
    asked: tuple[int, int],
    pipe: Pipe,
    sim: Simulator,
    other: Simulator,
    entries: Entries,
) -> None:
    """Another account may have a higher limit; a wrong key is wrong for all."""
    entries(at(other), at(sim))
    other.default_scenario = scenario
    assert not errors(await chunks_of(pipe, chat("Hi"), **NATIVE))
    other.default_scenario = "chat"
    assert not errors(await chunks_of(pipe, chat("Hi"), **PLAIN))
    assert (len(other.requests), len(sim.requests)) == asked


async def test_own_key_goes_to_the_address_of_the_valves(
    pipe: Pipe, sim: Simulator, other: Simulator, entries: Entries
) -> None:
    """It is sent to no other server, not by a check either."""
    pipe.valves = pipe.valves.model_copy(update={"USER_API_KEYS": "allowed"})
    entries(at(other))
    own = UserValves(API_KEY="sk-canary-3f9b1c7e5a2d8046")
    given = {**NATIVE, "__user__": {**USER, "valves": own, "role": "admin"}}

    assert not errors(await chunks_of(pipe, chat("Hi"), **given))
    assert not errors(await chunks_of(pipe, chat("/check"), **given))

    assert not other.requests
    assert len(sim.requests) > 2


async def test_unreadable_entries_let_nobody_through(
    pipe: Pipe, sim: Simulator, entries: Entries
) -> None:
    """Chats, tasks and checks: a chat fails with a message, a check has it."""
    entries({"a": 1})

    shown = await chunks_of(pipe, chat("Hi"), **NATIVE)
    checked = await chunks_of(pipe, chat("/check"), **ADMIN)
    await result_of(pipe, chat("Hi"), **NATIVE, __task__="title_generation")

    mistake = "Entry 1 of ENDPOINTS_JSON: the key `a` is unknown (known keys: groups, "
    assert mistake in errors(shown)[0]
    assert f"❌ **Problem: Valves.** {mistake}" in grown(checked)
    assert not sim.requests


async def test_token_goes_to_its_own_entry_only(
    pipe: Pipe, sim: Simulator, entries: Entries, host: StandInHost
) -> None:
    """The entry after one with a token of Entra ID is sent its key."""
    administration = host.filters.active["openai_responses_administration"]
    administration._tokens._known["scope"] = ("canary-token", 2**40)
    keys = list[str | None]()

    async def refuse(request: web.Request) -> web.Response:
        keys.append(request.headers.get("Authorization"))
        return web.json_response({"error": {"message": "No."}}, status=401)

    async with Upstream(refuse) as down:
        entries(
            {"base_url": down.base_url, "auth": "entra_id", "entra_scope": "scope"},
            at(sim),
        )
        shown = await chunks_of(pipe, chat("Hi"), **NATIVE)

    assert not errors(shown)
    assert keys == ["Bearer canary-token"]
    assert [r.status for r in sim.requests] == [200]


async def test_check_names_the_server_of_the_administrator(
    pipe: Pipe, other: Simulator, entries: Entries
) -> None:
    """It tries the entry that an administrator's own answers come from."""
    entries(at(other))

    report = stored(await chunks_of(pipe, chat("/check"), **ADMIN))

    assert "tested with GPT-5.6 Sol at 127.0.0.1" in report
    assert "✅ **A small request**" in report
    assert other.requests
