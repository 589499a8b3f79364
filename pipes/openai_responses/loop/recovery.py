"""What to do after a refusal: wait and send again, or repair the request.

Requests are sent again as OpenAI's Python client does it
(docs/reference/responses-api.md, "Retries"), except after an exhausted quota, which
retrying cannot restore.

Nobody knows all that a server may refuse, so what to change is found from what the
refusal names: an item or a tool by its place, in `param` or in the words (gateways
repeat the API's error inside of their own), a parameter, an id, a tool by its name. Only
few refusals name nothing and are known by their words
(docs/reference/responses-api.md, "Refusals of input items" and "Errors"). If that does
not suffice, the plain words of the chat are sent, once.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from openai_responses.endings import NO_CREDIT_CODES, PICTURE_CODES, SENTENCES
from openai_responses.errors import ApiError, Failure
from openai_responses.items import (
    ADDED_TOOLS,
    Item,
    content_parts,
    has_plain_reasoning,
    is_encrypted,
    is_hosted,
    is_paired,
    item_type,
)
from openai_responses.loop.events import Status
from openai_responses.models.resolve import REASONING_EFFORTS
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.repairs import (
    APPENDED,
    Repair,
    all_tools,
    declared_tools,
    has_media,
    json_digest,
    parameter_at,
    plain_item,
    repair_items,
    tool_name,
)

_RETRIED_STATUS = frozenset({408, 409, 429})
_RETRIED_CODES = frozenset(
    {"rate_limit_exceeded", "server_error", "server_is_overloaded", "slow_down"}
)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0


class RetryPolicy(NamedTuple):
    """How often to retry, and the longest wait in seconds."""

    max_retries: int = 2
    max_wait: float = 60.0


def retry_wait(
    policy: RetryPolicy, attempt: int, failure: Failure, jitter: float
) -> float | None:
    """Return the seconds before the next attempt; None if there is none.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    if attempt >= policy.max_retries or not _is_retried(failure):
        return None
    backoff = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (1 - 0.25 * jitter)
    wait = backoff if failure.retry_after is None else failure.retry_after
    return wait if wait <= policy.max_wait else None


def _is_retried(failure: Failure) -> bool:
    words = {failure.error.code, failure.error.type}
    suffixes = ("_spend_limit_exceeded", "_usage_limit_exceeded")
    if words & NO_CREDIT_CODES or (failure.error.code or "").endswith(suffixes):
        return False
    if failure.should_retry is not None:
        return failure.should_retry
    if failure.status in (None, 200):
        is_nameless = words == {None} and not failure.error.place
        return is_nameless or bool(words & _RETRIED_CODES)
    return failure.status in _RETRIED_STATUS or failure.status >= 500


_MOST_REPAIRS = 3
_OTHER_CAUSES = frozenset({*range(300, 400), 401, 402, 403, 407, 408, 413, 429})
"""Statuses that are not about what the request says."""
_LASTING_CODES = (
    _RETRIED_CODES | SENTENCES["failed"].keys() | SENTENCES["refused"].keys()
) - {*PICTURE_CODES, "invalid_encrypted_content", "404"}
"""Codes whose cause no change of the request removes."""
_UNREAD = "invalid_encrypted_content"
_UNREADABLE = re.compile(
    r"provided without its required"
    r"|Items are not persisted when"
    r"|encrypted content .{0,400} could not be verified"
    r"|reasoning input items can only be provided",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN = re.compile(
    r"unknown[ _](parameter|field|argument|key)|unrecogni[sz]ed|unexpected (field|key)"
    r"|extra_?(forbidden| inputs are not permitted| fields not permitted)"
    r"|additional properties",
    re.IGNORECASE,
)
_INNER_TOOL = re.compile(r"\.tools\[(\d{1,6})\]")
_NO_NAMESPACE = re.compile(r"namespace for function_call '([\w.-]{1,64})'")
_NAMED_ID = re.compile(r"\b(?:rs|msg|fc|ctc|call|ci|ws|fs|ig|mcp\w?|cmp)_[\w-]{4,128}")
_QUOTED = re.compile(r"[\"'`]([\w.-]{1,64})[\"'`]")
_NOT_REPAIRED = ("model", "input", "background", "instructions", "tools", "text.format")
"""Paths whose loss would change what the person asked for."""

_REPAIRED = {
    "reasoning": "The server could not read earlier reasoning of this chat: answering "
    "without it.",
    "reasoning_text": "The server does not take its reasoning back: answering without.",
    "kind": "Earlier runs of code are no longer there: answering without them.",
    "plain": "The server refused this chat as it was: only its texts and tool results "
    "were sent.",
}
_NO_PICTURE = "A picture or file could not be sent to the model and was left out."


class _Refusal(NamedTuple):
    """What was sent, and what the server said about it."""

    payload: Mapping[str, Any]
    rows: list[tuple[str, Item]]
    """The name of each item as it was, and the item as it was sent."""
    error: ApiError
    done: Sequence[Repair]

    @property
    def last(self) -> str:
        """The name of the last item."""
        return self.rows[-1][0] if self.rows else ""

    @property
    def tools(self) -> Iterator[Item]:
        """The tools that were sent, also those of items and in namespaces."""
        return all_tools(declared_tools(self.payload))

    @property
    def is_unknown(self) -> bool:
        """Whether the server does not know what it names."""
        code, words = self.error.code or "", self.error.message
        return code == "unknown_parameter" or bool(_UNKNOWN.search(words))


def find_repair(
    request: ResponsesRequest, failure: Failure, done: int = 0
) -> Status | None:
    """Return the repair of `request` after a refusal, with the sentence that tells it.

    `done` is how many the request has got since it was built. A 404 that names nothing is
    about the address.
    """
    error, repairs = failure.error, request.repairs
    if failure.status in _OTHER_CAUSES or {error.code, error.type} & _LASTING_CODES:
        return None
    rows = repair_items(request.items(), repairs)
    refusal = _Refusal(request.payload(), rows, error, repairs)
    if done < _MOST_REPAIRS and (found := _best(refusal, _repairs(refusal))):
        return found
    is_lost = failure.status == 404 and not error.place
    if failure.status is None or is_lost or _is_retried(failure):
        return None
    plain = Repair("plain", refusal.last)
    changed = repair_items(request.items(), [*repairs, plain])
    sent = [[item for _, item in some] for some in (changed, rows)]
    return _told(plain) if changed and sent[0] != sent[1] else None


def last_repair(request: ResponsesRequest, failure: Failure) -> Status | None:
    """Return what to try when retries did not help.

    Searches for tools are known to end in a `server_error` again and again
    (docs/reference/responses-api.md, "Function tools").
    """
    if failure.error.code != "server_error" and (failure.status or 0) < 500:
        return None
    refusal = _Refusal(request.payload(), [], failure.error, request.repairs)
    found = _best(refusal, map(_tool, _searches(refusal)))
    return found._replace(is_lasting=False) if found else None


def _best(refusal: _Refusal, repairs: Iterable[Status]) -> Status | None:
    """Return the first that was not done, nor gives back what one took away."""
    given_up = {(one.target, one.value) for one in refusal.done if one.value}
    for found in repairs:
        repair = found.repair or Repair("", "")
        if repair not in refusal.done and (repair.target, repair.new) not in given_up:
            return found
    return None


def _told(repair: Repair) -> Status:
    return Status(_REPAIRED[repair.action], repair)


def _repairs(refusal: _Refusal) -> Iterator[Status]:
    """Yield what may help, the best first."""
    first = [_plain_reasoning] if "reasoning" in refusal.error.text.lower() else []
    for find in (*first, *_FINDERS):
        yield from find(refusal)


def _plain_reasoning(refusal: _Refusal) -> Iterator[Status]:
    if any(has_plain_reasoning(sent) for _, sent in refusal.rows):
        yield _told(Repair("reasoning_text", ""))


def _by_words(refusal: _Refusal) -> Iterator[Status]:
    """Yield the repair for refusals whose place is not what has to be changed."""
    words, kinds = refusal.error.message, {item_type(sent) for _, sent in refusal.rows}
    if refusal.error.code == _UNREAD:
        yield from _unread_reasoning(refusal)
    if "code_interpreter_call" in kinds and "container" in words.lower():
        yield _told(Repair("kind", f"code_interpreter_call@{refusal.last}"))
    if call := _NO_NAMESPACE.search(words):
        sentence = f"Earlier calls of {call[1]} were sent as plain text."
        kind = f"function_call:{call[1]}@{refusal.last}"
        yield Status(sentence, Repair("kind", kind))
    refused = words.partition("upported values")[0]
    yield from (_lower(kind) for kind in APPENDED & kinds if kind in refused)
    if "not found in 'tools'" in words:
        yield _lower(ADDED_TOOLS)
    if "must be verified to stream" in words.lower() and refusal.payload.get("stream"):
        yield _parameter(refusal, "stream")


def _lower(kind: str) -> Status:
    return Status(_refused_sentence(kind), Repair("lower", kind), is_named=True)


def _refused_sentence(refused: str) -> str:
    return f"The model's server does not take {refused}: answering without it."


def _unread_reasoning(refusal: _Refusal) -> Iterator[Status]:
    is_told = refusal.error.code == _UNREAD or _UNREADABLE.search(refusal.error.message)
    if is_told and any(is_encrypted(sent) for _, sent in refusal.rows):
        yield _told(Repair("reasoning", refusal.last))


def _newest_media(refusal: _Refusal) -> Iterator[Status]:
    if refusal.error.code in PICTURE_CODES:
        places = [n for n, (_, one) in enumerate(refusal.rows) if has_media(one)]
        for newest in places[-1:]:
            yield from _item(refusal, newest)


def _find_place(
    payload: Mapping[str, Any], error: ApiError
) -> tuple[str, int, str, Item] | None:
    """Return the list, the number, the path and the item that a refusal names."""
    found = error.place
    rows = payload.get(found[1]) or () if found else ()
    if found is None or int(found[2]) >= len(rows):
        return None
    return found[1], int(found[2]), found[3], rows[int(found[2])]


def named_place(request: ResponsesRequest, error: ApiError) -> str:
    """Return the name or type of the item or tool whose place a refusal names.

    Most runs have no error, and a payload may be large.
    """
    found = error.place and _find_place(request.payload(), error)
    if not found:
        return ""
    where, number, _, named = found
    return f"{where}[{number}] ({tool_name({'type': item_type(named), **named})}):"


def _by_place(refusal: _Refusal) -> Iterator[Status]:
    found = _find_place(refusal.payload, refusal.error)
    if found is None:
        return
    where, number, path, named = found
    keys = re.findall(r"[a-z_]+", path)
    is_named = bool(refusal.error.param)
    if inner := _INNER_TOOL.match(path):
        tools = content_parts(named.get("tools"))[int(inner[1]) :]
        yield from (_tool(tool)._replace(is_named=is_named) for tool in tools[:1])
    elif item_type(named) == "namespace":
        yield from map(_tool, _searches(refusal))
    if refusal.is_unknown and keys:
        target = f"{where}:{'.'.join([item_type(named), *keys])}"
        yield Status(
            _refused_sentence(keys[-1]), Repair("field", target), is_named=is_named
        )
    elif where == "tools":
        yield _tool(named)._replace(is_named=is_named)
    else:
        yield from _item(refusal, number)


def _by_id(refusal: _Refusal) -> Iterator[Status]:
    """Yield the repair of the items that have an id which the server names."""
    named = set(_NAMED_ID.findall(refusal.error.message))
    for number, (_, item) in enumerate(refusal.rows):
        if named and named & {item.get("id"), item.get("call_id")}:
            yield from _item(refusal, number)


def _item(refusal: _Refusal, number: int) -> Iterator[Status]:
    """Yield the repairs of one item; what people wrote always stays."""
    target, sent = refusal.rows[number]
    if (kind := item_type(sent)) in APPENDED:
        yield _lower(kind)
        return
    if has_plain_reasoning(sent):
        yield _told(Repair("reasoning_text", ""))
        return
    noun = kind.replace("_", " ")
    as_text = f"One earlier {noun} was sent as plain text."
    if has_media(sent):
        yield Status(_NO_PICTURE, Repair("text", target))
    elif kind == "message" and plain_item(sent) != sent:
        yield Status(as_text, Repair("text", target))
    if is_hosted(sent) and any(one.action == "item" for one in refusal.done):
        words = f"Earlier items of the kind {noun} were left out."
        yield Status(words, Repair("kind", f"{kind}@{refusal.last}"))
    if is_paired(sent):
        yield Status(as_text, Repair("item", target))
    elif sent.get("role", "assistant") == "assistant":
        words = f"One earlier {noun} could not be sent again and was left out."
        yield Status(words, Repair("item", target))


def _by_parameter(refusal: _Refusal) -> Iterator[Status]:
    if refusal.error.param in _parameter_paths(refusal):
        yield _parameter(refusal, refusal.error.param)


def _parameter_paths(refusal: _Refusal) -> list[str]:
    """Return the parameters that can be left out, inner ones first.

    Without `store` the API would store the answer.
    """
    payload = refusal.payload
    inner = [
        f"{key}.{k}" for key in ("reasoning", "text") for k in payload.get(key, ())
    ]
    kept = {*_NOT_REPAIRED, "text" if "text.format" in inner else ""}
    kept.add("" if refusal.is_unknown else "store")
    return [path for path in (*inner, *payload) if path not in kept]


def _by_parameter_name(refusal: _Refusal) -> Iterator[Status]:
    """Yield the repair of a parameter whose name the words hold, quoted or with a `_`."""
    words = refusal.error.message
    quoted = {*_QUOTED.findall(words)}
    found = quoted | {*re.findall(r"\b[a-z]+(?:[._][a-z]+)+\b", words)}
    for path in _parameter_paths(refusal):
        if path in found or path.rpartition(".")[2] in quoted:
            yield _parameter(refusal, path)


def _parameter(refusal: _Refusal, path: str) -> Status:
    """Return the repair of a parameter: an effort gets the nearest that is named."""
    now = parameter_at(refusal.payload, path.split("."))
    value = "" if refusal.is_unknown else json.dumps(now)
    new, sentence = "", _refused_sentence(path)
    if path == "reasoning.effort" and (nearest := _nearest_effort(now, refusal.error)):
        new = json.dumps(nearest)
        sentence = f"The model does not have this effort: answering with {nearest}."
    elif path == "stream":
        sentence = "The model may not stream here: the answer comes in one piece."
    repair = Repair("parameter", path, value, new)
    return Status(sentence, repair, is_named=refusal.error.param == path)


def _nearest_effort(asked: object, error: ApiError) -> str | None:
    quoted = {*_QUOTED.findall(error.message)} - {asked}
    named = [effort for effort in REASONING_EFFORTS if effort in quoted]
    if asked not in REASONING_EFFORTS or not named:
        return None
    place = REASONING_EFFORTS.index
    return min(named, key=lambda effort: abs(place(effort) - place(asked)))


def _by_tool_name(refusal: _Refusal) -> Iterator[Status]:
    """Yield the repair of a tool that the server names by its name, label or type.

    A server that cannot be reached may be there again soon. The type of the error names
    the tool of whose options one does not do.
    """
    error = refusal.error
    words = {*_QUOTED.findall(error.message)}
    if error.code == "invalid_value":
        words.add(str(error.type).removesuffix("_user_error"))
    for tool in refusal.tools:
        if tool_name(tool) in words:
            is_down = "retrieving tool list" in error.message
            yield _tool(tool)._replace(is_lasting=not is_down)


def _searches(refusal: _Refusal) -> Iterator[Item]:
    return (t for t in refusal.tools if t.get("type") == "tool_search")


def _tool(tool: Item) -> Status:
    sentence = _refused_sentence(f"the tool {tool_name(tool)}")
    return Status(sentence, Repair("tool", json_digest(tool)))


_FINDERS = (
    *(_by_words, _by_place, _newest_media, _by_id, _unread_reasoning),
    *(_by_parameter, _by_tool_name, _by_parameter_name, _plain_reasoning),
)
"""What may help, the best first."""
