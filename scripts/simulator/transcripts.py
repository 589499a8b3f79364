"""Write the wire bytes of scenarios into files: ``python -m simulator.transcripts DIR``.

One file for each response: ``NAME.sse``, or ``NAME.1.sse`` ``NAME.2.sse`` where tools
are called; ``resumed/NAME.sse`` is the rest of a stream that broke. The bytes are the
same at every run.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator.accounts import ACCOUNTS, KEY, PROFILES
from simulator.answers import PlannedAnswer, RequestOrigin, Responder
from simulator.scenarios.catalog import ALL_SCENARIOS
from simulator.scenarios.faults import LEAK_SCENARIOS
from simulator.sealing import MAX_ID_CHARACTERS
from simulator.wire.events import encode_end, encode_event

NOON = 1_795_262_400.0
NOT_STORED = frozenset(
    {
        "long",
        "slow",
        "big-line",
        "task",
        "agent-steps",
        "agent-data",
        "agent-storm",
        "agent-crew",
        "tool-forever",
        "mcp-approval-forever",
        "flex-unavailable",
    }
).union(
    scenario.name for scenario in LEAK_SCENARIOS  # no headers come with a transcript
)
TRANSPORT_VARIANTS = {
    "chat-crlf-comments": "chat,crlf,comments",
    "chat-cr": "chat,cr",
    "chat-multiline": "chat,multiline",
    "chat-nameless-done": "chat,nameless,done",
    "parallel-unknown-keepalive": "parallel,unknown,keepalive=3",
}
BACKGROUND = {"background": "chat", "background-drop": "chat,drop=60"}
BODY: dict[str, Any] = {
    "model": "gpt-5.6-sol",
    "store": False,
    "stream": True,
    "reasoning": {"summary": "auto"},
    "include": ["reasoning.encrypted_content", "web_search_call.action.sources"],
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
            "strict": True,
        },
        {"type": "custom", "name": "apply_note"},
    ],
}
BACKGROUND_BODY = {**BODY, "store": True, "background": True}
CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
OFFERED: dict[str, list[dict[str, Any]]] = {
    "web": [{"type": "web_search"}],
    "search": [{"type": "web_search"}],
    "file": [{"type": "file_search", "vector_store_ids": ["vs_harbour"]}],
    "draw": [{"type": "image_generation", "partial_images": 2}],
    "count": [CODE],
    "plot": [CODE],
}
OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}


def _noon() -> float:
    """Return the time of all transcripts."""
    return NOON


def build_transcripts() -> Iterator[tuple[str, bytes]]:
    """Yield each file's name with its bytes."""
    specs = {
        scenario.name: scenario.name
        for scenario in ALL_SCENARIOS
        if scenario.name not in NOT_STORED
    }
    for name, spec in {**specs, **TRANSPORT_VARIANTS, **BACKGROUND}.items():
        body = BACKGROUND_BODY if name in BACKGROUND else BODY
        texts = [
            encode_answer(answer)
            for answer in play_scenario(spec, body)
            if answer.http is None
        ]
        if name in BACKGROUND:
            rest = encode_rest(next(play_scenario(spec, body)))
            if rest:
                yield f"resumed/{name}.sse", rest
        for number, text in enumerate(texts, 1):
            yield f"{name}.{number}.sse" if len(texts) > 1 else f"{name}.sse", text
    yield "cache-miss.sse", encode_answer(play_changed_effort())


def play_changed_effort() -> PlannedAnswer:
    """Answer a chat whose effort changed at request level, compared with the turn before.

    The model drops the reasoning behind the change, and its cache missed.
    """
    responder = Responder(clock=_noon)
    asker = RequestOrigin(ACCOUNTS[KEY], PROFILES["strictest"], "chat", "chat")
    rules = {"role": "developer", "content": "A long rule. " * 600}
    items: list[dict[str, Any]] = [rules, {"role": "user", "content": "Hello"}]
    body = {**BODY, "model": "gpt-6.2-sol", "include": BODY["include"][:1]}
    first = responder.answer({**body, "input": items}, asker).final or {}
    items += [*map(strip_item, first["output"]), {"role": "user", "content": "And?"}]
    changed = {
        "reasoning": {"effort": "high", "summary": "auto"},
        "prompt_cache_options": {"comparison_response_id": first["id"]},
    }
    return responder.answer({**body, **changed, "input": items}, asker)


def play_scenario(spec: str, request: dict[str, Any] = BODY) -> Iterator[PlannedAnswer]:
    """Yield the answers of a whole run, its calls answered with fixed outputs."""
    responder = Responder(clock=_noon)
    asker = RequestOrigin(ACCOUNTS[KEY], PROFILES["strictest"], spec, "chat")
    hosted = OFFERED.get(spec) or OFFERED.get(spec.split("-", 1)[0], [])
    tools = [*hosted, *request["tools"]]
    include = list(request["include"])
    if hosted:
        include.append("code_interpreter_call.outputs")
    items: list[dict[str, Any]] = [{"role": "user", "content": "Wie geht's, 世界?"}]
    while True:
        body = {**request, "tools": tools, "include": include, "input": items}
        answer = responder.answer(body, asker)
        yield answer
        output = (answer.final or {}).get("output", [])
        answers = build_client_answers(output)
        if not answers or b"response.completed" not in encode_answer(answer):
            return
        kept = (item for item in output if item["type"] != "image_generation_call")
        items = [*items, *(strip_item(item) for item in kept), *answers]


def build_client_answers(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a client answers: a yes to each question, an output for each call."""
    calls = [item for item in output if item["type"] in OUTPUTS]
    consents = [
        {
            "type": "mcp_approval_response",
            "approval_request_id": item["id"],
            "approve": True,
        }
        for item in output
        if item["type"] == "mcp_approval_request"
    ]
    outputs = [
        {
            "type": OUTPUTS[call["type"]],
            "call_id": call["call_id"][:MAX_ID_CHARACTERS],
            "output": f"18 °C, call {number} of {len(calls)}",
        }
        for number, call in enumerate(calls, 1)
    ]
    return consents + outputs


def strip_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is sent back; the types of hosted items want their ids."""
    if item["type"] == "web_search_call":
        action = {k: v for k, v in item["action"].items() if k != "sources"}
        return {**item, "action": action}
    if item["type"] in ("file_search_call", "code_interpreter_call"):
        return item
    dropped = ("status",) if item["type"].startswith("mcp") else ("id", "status")
    return fit_call(
        {name: value for name, value in item.items() if name not in dropped}
    )


def fit_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call with a name and an id that a request may hold."""
    if item["type"] not in OUTPUTS:
        return item
    name = item["name"].replace(".", "_")
    call_id = item["call_id"]
    return {**item, "name": name, "call_id": call_id[:MAX_ID_CHARACTERS]}


def encode_answer(answer: PlannedAnswer) -> bytes:
    """Return the bytes of an answer as far as its fault lets them come."""
    options = answer.options
    limits = [options.number(fault) for fault in ("cut", "stall", "drop")]
    end = min((limit for limit in limits if limit is not None), default=None)
    lines = [encode_event(event, options) for event in answer.events[:end]]
    if options.has("drop"):
        half = encode_event(answer.events[len(lines)], options)
        lines.append(half[: len(half) // 2])
    return b"".join(lines) + (encode_end(options) if end is None else b"")


def encode_rest(answer: PlannedAnswer) -> bytes:
    """Return the bytes of the stream that is resumed where another one broke."""
    start = answer.options.number("drop")
    missing = () if start is None else answer.events[start:]
    return b"".join(encode_event(event, answer.options) for event in missing)


def main(directory: Path) -> None:
    """Write the files that changed, remove those that no scenario makes.

    Those of other servers, in `others`, are written by hand.
    """
    directory.mkdir(parents=True, exist_ok=True)
    current = dict(build_transcripts())
    for path in directory.rglob("*.sse"):
        name = path.relative_to(directory).as_posix()
        if name not in current and not name.startswith("others/"):
            path.unlink()
    for name, text in current.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(text)
    print(f"{len(current)} transcripts in {directory}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
