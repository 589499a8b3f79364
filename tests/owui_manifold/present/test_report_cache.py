"""OpenAI says why its prompt cache missed, if an administrator wants to know."""

from typing import Any

import pytest

from calls.outcomes import chunks_of, statuses
from calls.sample import USER, call_of, chat, valves_for
from calls.valves import expert
from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone, Trace
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


def ids(answer: str) -> Json:
    """What the host says of an answer of the chat."""
    question = f"q{answer[1:]}"
    return {
        "chat_id": "chat-1",
        "message_id": answer,
        "session_id": "s-1",
        "user_message_id": question,
    }


def row_of(host: StandInHost, usage: object) -> None:
    """Let the chat hold two questions; the first answer has a usage."""
    messages: Json = {
        "q0": {"role": "user", "content": "Hi", "parentId": None},
        "a0": {"role": "assistant", "parentId": "q0", "usage": usage},
        "q1": {"role": "user", "content": "And?", "parentId": "a0"},
        "a1": {"role": "assistant", "parentId": "q1"},
    }
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, "history": {"messages": messages}}


async def ask(
    sim: Simulator, answer: str, more: Json | None = None, **valves: Any
) -> tuple[Json, Json]:
    """Ask the first or second question; return what was sent and the usage shown."""
    turns = [
        ("system", LONG),
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "And?"),
    ]
    wanted = turns if answer == "a1" else turns[:2]
    messages = [{"role": role, "content": text} for role, text in wanted]
    pipe = Pipe()
    pipe.valves = valves_for(sim, **valves)
    body = {"model": MODEL, "messages": messages, "stream": True, **(more or {})}
    chunks = await chunks_of(pipe, body, __user__=USER, __metadata__=ids(answer))
    assert statuses(chunks) == []
    [usage] = [chunk["usage"] for chunk in chunks if "usage" in chunk]
    return sim.requests[-1].body, usage


async def test_an_answer_is_compared_with_the_one_before(
    sim: Simulator, host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Its id is in the usage that the host stores; the log has the reason."""
    caplog.set_level("INFO")
    row_of(host, {})
    first, usage = await ask(sim, "a0", **ON)
    row_of(host, usage)
    ttl = {"ttl": "30m"}
    chosen: Json = {"verbosity": "low", "prompt_cache_options": ttl}
    opened = expert(
        prompt_cache_diagnostics=True, caller_may_set="prompt_cache_options"
    )
    again, _ = await ask(sim, "a1", chosen, **{**ON, "EXPERT_JSON": opened})

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
    report_end(prepared, RunDone(COMPLETED, trace=Trace("req_1", cache=diagnosis)))

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
    usage = {"response_id": "resp_1"}
    row_of(host, changed.pop("usage", usage))
    more = {"model": changed.pop("model")} if "model" in changed else None
    sent, shown = await ask(sim, "a1", more, **{**ON, **changed})
    assert "prompt_cache_options" not in sent
    assert ("response_id" in shown) == ("EXPERT_JSON" not in changed)
