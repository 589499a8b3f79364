"""Several endpoints: where a call goes, where a chat stays, and what follows a failure."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

import calls.desk
from calls.outcomes import advice, errors, grown, statuses, stored
from calls.sample import IDS, USER, chat
from calls.turns import row_of
from calls.valves import expert
from openai_responses.transport.entra import _EntraToken
from owui_administration.filter import Filter
from owui_manifold.call.valves import UserValves
from simulator import Simulator
from stand_in.host import host_request
from upstream.server import Upstream, free_port, replying

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
FILTER_ID = "openai_responses_administration"
NATIVE: Json = {"__user__": USER, "__metadata__": IDS, "__request__": host_request()}
PLAIN: Json = {"__metadata__": {}}
ADMIN: Json = {"__user__": {**USER, "role": "admin"}}
LOST = "The earlier reasoning of this chat belongs to another server or account."
NEXT = "answer: asking the next one."


@pytest_asyncio.fixture
async def other() -> AsyncIterator[Simulator]:
    async with Simulator() as simulator:
        simulator.api_key = "sk-simulator-2"
        yield simulator


def at(sim: Simulator | Upstream, *groups: str, **more: Any) -> Json:
    key = sim.api_key if isinstance(sim, Simulator) else "sk-upstream-1"
    return {"groups": [*groups], "base_url": sim.base_url, "api_key": key, **more}


class Desk(calls.desk.Desk):
    """A pipe with the filter, whose administrator has entries for two servers.

    The `other` is one of another organization.
    """

    usual = NATIVE

    def __init__(self, desk: calls.desk.Desk, other: Simulator) -> None:
        super().__init__(desk.pipe, desk.sim, desk.host)
        self.other = other
        self.filter = self.host.filters.active[FILTER_ID] = Filter()

    def set_entries(self, *given: Json) -> None:
        """Set the entries as an administrator does."""
        self.host.filters.valves = {FILTER_ID: {"ENDPOINTS_JSON": json.dumps(given)}}

    async def ask_for_title(self) -> None:
        await self.result(chat("A title"), __task__="title_generation")


@pytest.fixture
def desk(desk: calls.desk.Desk, other: Simulator) -> Desk:
    return Desk(desk, other)


class Refusing:
    """A server that refuses all requests, and keeps the keys that it was sent."""

    def __init__(self, status: int, message: str = "No.", code: str = "") -> None:
        self.keys: list[str | None] = []
        self._status = status
        self._error = {"message": message, "code": code or None}

    async def answer(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("Authorization"))
        return web.json_response({"error": self._error}, status=self._status)


def answering(message_id: str) -> Json:
    return {"__metadata__": {**IDS, "message_id": message_id}}


def kinds(sim: Simulator) -> list[str]:
    return [item["type"] for item in sim.requests[-1].body["input"]]


async def test_each_group_has_its_server(
    capsys: pytest.CaptureFixture[str], desk: Desk
) -> None:
    """Answers and tasks; keys are in no log and no chat; no one else gets there."""
    desk.host.groups.members = {"staff": {"user-1"}, "pupils": {"user-2"}}
    desk.set_valves(API_KEY="sk-wrong")
    desk.set_entries(at(desk.sim, "staff"), at(desk.other, "id of pupils"))

    shown = await desk.ask("I am staff")
    await desk.ask_for_title()
    shown += await desk.ask("I am a pupil", __user__={**USER, "id": "user-2"})
    refused = await desk.ask("I am nobody", __user__={**USER, "id": "user-3"})

    assert [r.status for r in desk.sim.requests] == [200, 200, 401]
    assert [r.status for r in desk.other.requests] == [200]
    assert "pupil" in json.dumps(desk.other.requests[0].body)
    assert not errors(shown)
    assert errors(refused)
    text = json.dumps([shown, refused]) + "".join(capsys.readouterr())
    assert "sk-simulator" not in text


@pytest.mark.parametrize("query", ["", "?code=canary-3f9b1c7e5a2d8046"])
async def test_key_of_an_entry_is_in_no_log(
    query: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even if the server repeats it: in the log, the chat and its shown log."""
    key = "canary-3f9b1c7e5a2d8046"
    async with Upstream(Refusing(400, f"No {key}.").answer) as upstream:
        address = upstream.base_url + query
        desk.set_entries({"base_url": address, "api_key": "sk-1" if query else key})
        own = UserValves(SHOW_LOG_ON_ERROR=True)
        shown = await desk.ask("Hi", __user__={**USER, "role": "admin", "valves": own})

    assert errors(shown)
    assert "Log of this answer" in json.dumps(shown)
    ours = [r.getMessage() for r in caplog.records if r.name != "aiohttp.access"]
    assert key not in json.dumps(shown) + "".join(ours)


async def test_a_chat_stays_where_its_reasoning_can_be_read(desk: Desk) -> None:
    """As long as the entry is for its user; then it goes on without, and says so."""
    desk.set_entries(at(desk.other))
    first = await desk.ask("Hi")
    desk.set_entries(at(desk.sim), at(desk.other))
    asked = ("Hi", stored(first), "And now?")

    stays = await desk.ask(*asked, **answering("m-2"))
    assert statuses(stays) == []
    assert not desk.sim.requests
    assert "reasoning" in kinds(desk.other)

    desk.set_entries(at(desk.sim))
    moves = await desk.ask(*asked, **answering("m-3"))
    assert statuses(moves) == [LOST]
    assert not errors(moves)
    assert len(desk.other.requests) == 2
    assert "reasoning" not in kinds(desk.sim)


async def test_a_chat_that_moved_stays_where_it_went(desk: Desk) -> None:
    """Its newest reasoning counts, not its first."""
    desk.set_entries(at(desk.other))
    first = await desk.ask("Hi")
    desk.set_entries(at(desk.sim))
    asked = ["Hi", stored(first), "And now?"]
    second = await desk.ask(*asked, **answering("m-2"))
    row = desk.host.chats.rows["chat-1"]
    row.chat = dict(reversed(row.chat.items()))  # a database may keep no order
    desk.set_entries(at(desk.other), at(desk.sim))
    asked += [stored(second), "And then?"]

    third = await desk.ask(*asked, **answering("m-3"))

    assert statuses(third) == []
    assert (len(desk.other.requests), len(desk.sim.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("carrier", "timeouts"),
    [("output", ""), ("output", "nonsense"), ("markers", ""), ("markers", "nonsense")],
)
async def test_what_a_failed_account_was_sent_is_not_kept_as_its_answer(
    carrier: str, timeouts: str, desk: Desk
) -> None:
    """A record without a text begins no answer: the next account is asked.

    Nor does a notice, such as one about valves. The last one's failure is the answer.
    """
    desk.set_valves(HISTORY_CARRIER=carrier, TOOL_TIMEOUTS=timeouts)
    body = chat("Hi", model="my_pipe.gpt-6.1-sol")
    body["messages"].insert(0, {"role": "system", "content": "Be brief."})
    row_of(desk.host, "Hi")
    ids = {**IDS, "user_message_id": "q0", "message_id": "a0"}
    async with Upstream(replying("{}", status=500)) as down:
        for others in ((at(desk.sim),), ()):
            desk.set_entries(at(down), *others)
            shown = await desk.chunks(body, **{**ADMIN, "__metadata__": ids})

            assert bool(errors(shown)) is not bool(others)
            assert ("This is turn 1." in grown(shown)) is bool(others)
            lines = statuses(shown)
            assert any("TOOL_TIMEOUTS" in line for line in lines) is bool(timeouts)
            done = [c for c in shown if c.get("type") == "response.output_item.done"]
            kept = [c for c in done if c["item"]["type"].endswith(":kept")]
            assert len(kept) == (carrier == "output")


@pytest.mark.parametrize(
    ("status", "code", "asked"), [(400, "model_not_found", 2), (500, "", 1)]
)
async def test_next_account_answers_after_a_failure(
    status: int, code: str, asked: int, desk: Desk
) -> None:
    """A server that failed is the last one for a minute; one without the model not.

    tests/owui_administration/test_endpoints.py has all failures.
    """
    refusing = Refusing(status, code=code)
    async with Upstream(refusing.answer) as down:
        desk.set_entries(at(down), at(desk.sim))
        shown = await desk.ask("Hi")
        again = await desk.ask("Hi", **PLAIN)

    assert [NEXT in line for line in statuses(shown)] == [True]
    assert not errors(shown + again)
    assert refusing.keys == ["Bearer sk-upstream-1"] * asked
    assert len(desk.sim.requests) == 2
    assert len([c for c in shown if "usage" in c]) == 1


async def test_lines_about_retries_begin_no_answer(desk: Desk) -> None:
    """The next account is asked after the retries, whose lines people have seen."""
    desk.set_valves(EXPERT_JSON=expert(max_retries=1))
    soon = replying("{}", status=503, headers={"Retry-After-Ms": "1"})

    async with Upstream(soon) as down:
        desk.set_entries(at(down), at(desk.sim))
        shown = await desk.ask("Hi")
        assert len(down.requests) == 2

    assert not errors(shown)
    assert "Trying again" in statuses(shown)[0]
    assert any(NEXT in line for line in statuses(shown))


async def test_entries_that_cannot_be_reached(
    caplog: pytest.LogCaptureFixture, desk: Desk
) -> None:
    """The log has the cause of each; the last one names the setting that is wrong."""
    first, last = (f"http://127.0.0.1:{free_port()}/v1" for _ in range(2))
    desk.set_entries(
        *({"base_url": address, "api_key": "sk-1"} for address in (first, last))
    )

    shown = await desk.ask("Hi", **ADMIN)

    [error] = errors(shown)
    assert "127.0.0.1 cannot be reached: it refused the connection." in error
    assert "check ENDPOINTS_JSON in the valves of the filter." in error
    assert "BASE_URL" not in error
    assert caplog.text.count("cannot be reached: it refused the connection") == 2


@pytest.mark.parametrize("is_first", [True, False])
async def test_chat_with_reasoning_is_told_what_it_loses(
    is_first: bool, desk: Desk
) -> None:
    """Its server is gone: another one answers, without the reasoning."""
    desk.set_entries(at(desk.other), at(desk.sim))
    first = await desk.ask("Hi")
    if not is_first:
        desk.set_entries(at(desk.sim), at(desk.other))
    await desk.other.stop()

    shown = await desk.ask("Hi", stored(first), "And now?", **answering("m-2"))

    assert not errors(shown)
    lines = statuses(shown)
    assert NEXT in lines[-2]
    assert LOST in lines[-1]
    assert "reasoning" not in kinds(desk.sim)


@pytest.mark.parametrize(
    "scenario",
    ["refuse", "misaligned-first", "misaligned", "cyber-403", "cyber-failed", "failed"],
)
async def test_started_or_refused_answer_is_not_retried_elsewhere(
    scenario: str, desk: Desk
) -> None:
    """A text that broke off stays as it is, and a refusal of the request is the end."""
    desk.set_entries(at(desk.other), at(desk.sim))

    assert len(errors(await desk.ask(f"sim:{scenario}"))) == 1
    assert "broke before" in advice(await desk.ask("sim:cut"))

    assert not desk.sim.requests


async def test_own_key_goes_to_the_address_of_the_valves(desk: Desk) -> None:
    """It is sent to no other server, not by a check either."""
    desk.set_valves(USER_API_KEYS="allowed")
    desk.set_entries(at(desk.other))
    own = UserValves(API_KEY="sk-canary-3f9b1c7e5a2d8046")
    given = {"__user__": {**USER, "valves": own, "role": "admin"}}

    assert not errors(await desk.ask("Hi", **given))
    checked = await desk.ask("/check", **given)
    assert not errors(checked)
    assert "because USER_LIMITS_JSON is empty" in grown(checked)

    assert not desk.other.requests
    assert len(desk.sim.requests) > 2


async def test_unreadable_entries_let_nobody_through(desk: Desk) -> None:
    """Chats, tasks and checks: a chat fails with a message, a check has it."""
    desk.set_entries({"a": 1})

    shown = await desk.ask("Hi")
    checked = await desk.ask("/check", **ADMIN)
    await desk.ask_for_title()

    mistake = "Entry 1 of ENDPOINTS_JSON: the key `a` is unknown"
    assert f"{mistake.replace('`', '')}, so nothing is sent" in errors(shown)[0]
    assert f"❌ **Problem: Valves.** {mistake} (known keys: groups, " in grown(checked)
    assert not desk.sim.requests


async def test_token_goes_to_its_own_entry_only(desk: Desk) -> None:
    """The entry after one with a token of Entra ID is sent its key."""
    token = _EntraToken("canary-token", 2**40, 2**40)
    desk.filter._tokens._known["scope"] = token
    refusing = Refusing(401)
    async with Upstream(refusing.answer) as down:
        with_token = {"auth": "entra_id", "entra_scope": "scope"}
        desk.set_entries({"base_url": down.base_url, **with_token}, at(desk.sim))
        shown = await desk.ask("Hi")

    assert not errors(shown)
    assert refusing.keys == ["Bearer canary-token"]
    assert [r.status for r in desk.sim.requests] == [200]


async def test_check_names_the_server_of_the_administrator(desk: Desk) -> None:
    """It tries the entry that an administrator's own answers come from."""
    desk.set_entries(at(desk.other))

    report = stored(await desk.ask("/check", **ADMIN))

    assert "tested with GPT-5.6 Sol at 127.0.0.1" in report
    assert "✅ **A small request**" in report
    assert desk.other.requests


async def test_line_that_an_answer_begins_with_is_shown_once(desk: Desk) -> None:
    """Though the first server has failed after it."""
    async with Upstream(Refusing(503).answer) as upstream:
        desk.set_entries(at(upstream), at(desk.sim))
        desk.set_valves(EXPERT_JSON=expert(max_retries=0))
        shown = await desk.chunks(chat("Hi", model="f.gpt-5-auto"))

    assert errors(shown) == []
    lines = [line for line in statuses(shown) if " answers: " in line]
    assert len(lines) == 1
