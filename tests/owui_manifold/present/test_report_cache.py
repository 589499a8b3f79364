"""OpenAI says why its prompt cache missed, if an administrator wants to know."""

from typing import Any

import pytest

from calls.outcomes import chunks_of, statuses
from calls.sample import IDS, USER, call_of, chat, valves_for
from calls.turns import row_of
from calls.valves import expert
from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone, Trace
from openai_responses.loop.spending import Budget, Spending
from owui_manifold.call.valves import Valves
from owui_manifold.pipe import Pipe
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.present.report import report_end
from simulator import Simulator
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
MODEL = "f.gpt-6.1-sol"
LONG = "A long rule. " * 600
"""A cache keeps nothing short."""
ON: Json = {
    "EXPERT_JSON": expert(prompt_cache_diagnostics=True),
    "COMPATIBILITY": "openai",
}


def set_usage(host: StandInHost, usage: object) -> None:
    """Let the chat hold two questions; the first answer has a usage."""
    row_of(host, "Hi", "And?")
    host.chats.rows["chat-1"].chat["history"]["messages"]["a0"]["usage"] = usage


async def ask(
    sim: Simulator, *texts: str, more: Json | None = None, **valves: Any
) -> tuple[Json, Json]:
    """Ask the next question; return what was sent and the usage shown."""
    pipe = Pipe()
    pipe.valves = valves_for(sim, **valves)
    number = len(texts) // 2
    ids = {"message_id": f"a{number}", "user_message_id": f"q{number}"}
    body = chat(*texts, **{"model": MODEL, **(more or {})})
    body["messages"].insert(0, {"role": "system", "content": LONG})
    chunks = await chunks_of(pipe, body, __user__=USER, __metadata__={**IDS, **ids})
    assert statuses(chunks) == []
    [usage] = [chunk["usage"] for chunk in chunks if "usage" in chunk]
    return sim.requests[-1].body, usage


SECOND = ("Hi", "Hello.", "And?")


async def test_an_answer_is_compared_with_the_one_before(
    sim: Simulator, host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Its id is in the usage that the host stores; the log has the reason."""
    caplog.set_level("INFO")
    set_usage(host, {})
    first, usage = await ask(sim, "Hi", **ON)
    set_usage(host, usage)
    ttl = {"ttl": "30m"}
    chosen: Json = {"verbosity": "low", "prompt_cache_options": ttl}
    opened = expert(
        prompt_cache_diagnostics=True, caller_may_set="prompt_cache_options"
    )
    valves = {**ON, "EXPERT_JSON": opened}
    again, _ = await ask(sim, *SECOND, more=chosen, **valves)

    assert "prompt_cache_options" not in first
    assert usage["response_id"].startswith("resp_")
    assert again["prompt_cache_options"] == {
        **ttl,
        "comparison_response_id": usage["response_id"],
    }
    [line] = [m for m in caplog.messages if "prompt cache: " in m]
    reason = "type cache_miss, reason verbosity_changed, cache_missed_tokens "
    assert reason in line
    assert int(line.partition(reason)[2]) > 1024


async def test_only_the_beginning_of_a_diagnosis_is_logged(host: StandInHost) -> None:
    """A server may write anything there."""
    valves = Valves.model_validate({"API_KEY": "sk-1", **ON})
    prepared = await build_chat_request(call_of(chat("Hi"), valves))
    diagnosis = {"type": "t" * 40, "reason": "r" * 41, "more": "x"}
    ended = RunDone(COMPLETED, trace=Trace("req_1", cache=diagnosis))
    report_end(prepared, ended, Spending(Budget()))

    line = f"prompt cache: type {'t' * 40}, reason {'r' * 40}, cache_missed_tokens None"
    assert prepared.call.log.text().splitlines()[-1].endswith(line)


@pytest.mark.parametrize(
    "changed",
    [
        {"EXPERT_JSON": expert(prompt_cache_diagnostics=False)},
        {"COMPATIBILITY": "auto"},
        {"model": "f.gpt-5.4"},
        {"usage": {"response_id": "chatcmpl-1"}},
        {"usage": {"response_id": "resp_" + "1" * 300}},
        {"usage": {"response_id": 7}},
        {"usage": "nothing"},
    ],
)
async def test_nothing_is_compared(
    sim: Simulator, host: StandInHost, changed: Json
) -> None:
    """Unless it is wanted, the model and the server can do it, and the id is one."""
    set_usage(host, changed.pop("usage", {"response_id": "resp_1"}))
    more = {"model": changed.pop("model", MODEL)}
    sent, shown = await ask(sim, *SECOND, more=more, **{**ON, **changed})
    assert "prompt_cache_options" not in sent
    assert ("response_id" in shown) == ("EXPERT_JSON" not in changed)
