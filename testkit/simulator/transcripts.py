"""Write the streams of all scenarios to files: ``python -m simulator.transcripts DIR``.

One file for each response: ``NAME.sse``, or ``NAME.1.sse`` ``NAME.2.sse`` where tools
are called; ``resumed/NAME.sse`` is the rest of a stream that broke. Every run writes
the same bytes. The tests write them when they begin.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from simulator.accounts import ACCOUNTS, KEY, PROFILES
from simulator.answers import PlannedAnswer, RequestOrigin, Responder
from simulator.fields import without_fields
from simulator.scenarios.catalog import ALL_SCENARIOS
from simulator.scenarios.faults import LEAK_SCENARIOS
from simulator.sealing import MAX_ID_CHARACTERS
from simulator.wire.events import encode_end, encode_event

NOON = 1_795_262_400.0
_NOT_STORED = """
long slow big-line task agent-steps agent-data agent-storm agent-crew tool-forever
long-arguments mcp-approval-forever flex-unavailable
"""
NOT_STORED = {
    *_NOT_STORED.split(),
    # They quote the headers of a request, and a transcript has none.
    *(scenario.name for scenario in LEAK_SCENARIOS),
}
"""Scenarios without a transcript."""
TRANSPORT_VARIANTS = {
    "chat-crlf-comments": "chat,crlf,comments",
    "chat-cr": "chat,cr",
    "chat-multiline": "chat,multiline",
    "chat-nameless-done": "chat,nameless,done",
    "parallel-unknown-keepalive": "parallel,unknown,keepalive=3",
}
BACKGROUND_SPECS = {"background": "chat", "background-drop": "chat,drop=60"}
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
HOSTED_TOOLS: dict[str, list[dict[str, Any]]] = {
    "web": [{"type": "web_search"}],
    "search": [{"type": "web_search"}],
    "file": [{"type": "file_search", "vector_store_ids": ["vs_harbour"]}],
    "draw": [{"type": "image_generation", "partial_images": 2}],
    "count": [CODE],
    "plot": [CODE],
}
"""By the name of a scenario, or by its first word."""
OUTPUT_TYPES = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}


def _noon() -> float:
    return NOON


def build_transcripts() -> Iterator[tuple[str, bytes]]:
    """Yield each file's name with its bytes."""
    for scenario in ALL_SCENARIOS:
        if scenario.name not in NOT_STORED:
            yield from _build_files(scenario.name, play_scenario(scenario.name))
    for name, spec in TRANSPORT_VARIANTS.items():
        yield from _build_files(name, play_scenario(spec))
    for name, spec in BACKGROUND_SPECS.items():
        answers = list(play_scenario(spec, BACKGROUND_BODY))
        yield from _build_files(name, answers)
        # The rest of the stream continues where ``drop`` interrupted it.
        options = answers[0].options
        start = options.number("drop")
        if start is not None:
            rest = [encode_event(event, options) for event in answers[0].events[start:]]
            yield f"resumed/{name}.sse", b"".join(rest)
    yield "cache-miss.sse", encode_answer(play_changed_effort())


def _build_files(
    name: str, answers: Iterable[PlannedAnswer]
) -> Iterator[tuple[str, bytes]]:
    """Yield a file for each answer that is a stream; they are numbered if there are more."""
    streams = [encode_answer(answer) for answer in answers if answer.http is None]
    if len(streams) == 1:
        yield f"{name}.sse", streams[0]
        return
    for number, stream in enumerate(streams, 1):
        yield f"{name}.{number}.sse", stream


def play_changed_effort() -> PlannedAnswer:
    """Return the second answer of a chat whose effort the request changes.

    The model drops the reasoning of the first turn, and the cache cannot be used.
    """
    responder = Responder(clock=_noon)
    origin = _origin("chat")
    rules = {"role": "developer", "content": "A long rule. " * 600}
    items: list[dict[str, Any]] = [rules, {"role": "user", "content": "Hello"}]
    body = {**BODY, "model": "gpt-6.2-sol", "include": BODY["include"][:1]}
    first = responder.answer({**body, "input": items}, origin).final or {}
    items += [*map(strip_item, first["output"]), {"role": "user", "content": "And?"}]
    changed = {
        "reasoning": {"effort": "high", "summary": "auto"},
        "prompt_cache_options": {"comparison_response_id": first["id"]},
    }
    return responder.answer({**body, **changed, "input": items}, origin)


def _origin(spec: str) -> RequestOrigin:
    """Return the strictest origin, which asks for a scenario."""
    return RequestOrigin(ACCOUNTS[KEY], PROFILES["strictest"], spec, "chat")


def play_scenario(spec: str, request: dict[str, Any] = BODY) -> Iterator[PlannedAnswer]:
    """Yield the answers of a whole run, its calls answered with fixed outputs."""
    responder = Responder(clock=_noon)
    hosted = HOSTED_TOOLS.get(spec) or HOSTED_TOOLS.get(spec.split("-", 1)[0], [])
    tools = [*hosted, *request["tools"]]
    include = list(request["include"])
    if hosted and include:
        include.append("code_interpreter_call.outputs")
    items: list[dict[str, Any]] = [{"role": "user", "content": "Wie geht's, 世界?"}]
    while True:
        body = {**request, "tools": tools, "include": include, "input": items}
        answer = responder.answer(body, _origin(spec))
        yield answer
        output = (answer.final or {}).get("output", [])
        client_items = build_client_items(output)
        if not client_items or b"response.completed" not in encode_answer(answer):
            return
        for item in output:
            if item["type"] != "image_generation_call":
                items.append(strip_item(item))
        items += client_items


def build_client_items(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a client's items: a yes to each approval request, an output for each call."""
    calls = [item for item in output if item["type"] in OUTPUT_TYPES]
    approvals = [
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
            "type": OUTPUT_TYPES[call["type"]],
            "call_id": call["call_id"][:MAX_ID_CHARACTERS],
            "output": f"18 °C, call {number} of {len(calls)}",
        }
        for number, call in enumerate(calls, 1)
    ]
    return approvals + outputs


def strip_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as a client sends it back; searches keep their ids."""
    if item["type"] == "web_search_call":
        return {**item, "action": without_fields(item["action"], "sources")}
    if item["type"].startswith("mcp"):
        return without_fields(item, "status")
    sent = without_fields(item, "id", "status")
    if item["type"] in OUTPUT_TYPES:
        # The name and the id are made such that a request may hold them.
        sent["name"] = item["name"].replace(".", "_")
        sent["call_id"] = item["call_id"][:MAX_ID_CHARACTERS]
    return sent


def encode_answer(answer: PlannedAnswer) -> bytes:
    """Return the bytes of an answer, up to the point where a fault interrupts it."""
    options = answer.options
    limits = [options.number(fault) for fault in ("cut", "stall", "drop")]
    end = min((limit for limit in limits if limit is not None), default=None)
    written = [encode_event(event, options) for event in answer.events[:end]]
    if options.has("drop"):
        interrupted = encode_event(answer.events[len(written)], options)
        written.append(interrupted[: len(interrupted) // 2])
    if end is None:
        written.append(encode_end(options))
    return b"".join(written)


def write_transcripts(folder: Path) -> int:
    """Write all files; return how many."""
    files = dict(build_transcripts())
    for name, stream in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stream)
    return len(files)


if __name__ == "__main__":
    print(f"{write_transcripts(Path(sys.argv[1]))} transcripts in {sys.argv[1]}")
