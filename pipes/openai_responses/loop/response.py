r"""The state machine of one response.

Events in, run events out, no side effects. An item is *unknown* until an event opens
it, then *open*, and *ended* from its `output_item.done` on:

    event \ state    unknown            open              ended
    delta            opens, shown (1)   shown             shown (2)
    whole text       opens, shown (1)   the rest shown    the rest shown (2)
    added            opened             ignored           ignored
    done             opened and ended   ended             the rest shown (2)
    final snapshot   opened and ended   ended             the rest shown (2)
    citation, sketch ignored            shown             ignored

(1) Text opens a message, reasoning a reasoning item. Arguments and code are kept until
the item is known: only the item has the name of a call (docs/reference/responses-api.md,
"Stream events").
(2) The item then ends a second time, with the longer text. Some gateways end a message
after its first character, and go on (diegosouzapw/OmniRoute 13693).

Nothing that came is taken away. A text that has ended is authoritative where it says
something else than its deltas: the part that was not shown yet is shown, and the final
item is the wire's own dict. An end that is shorter than what came, or that has no text
at all, keeps the longer text, in the final item too. Items that only deltas brought end
with the response, unless it failed. Events after the end of the response are ignored,
unless it had no items, or calls that only the server can make: a gateway may ask its
model once more, in the same stream.

An item is found by its ids: `item_id` of a part, `id` and `call_id` of an item. Where
they are unknown, it is the last item that came with the same `output_index`, if the
event can be about it: the type is the same, and it is open or the event has no id. A
delta that names neither belongs to the newest open item that it can grow. An item of the
final snapshot is found by its ids, else it is the first of its type that no other item of
the snapshot is. A gateway that loses its server in the middle of an answer may ask once
more, in the same stream: a second `response.created` names another response. Messages of
the first one stay as far as they came, nothing is left of its thoughts and calls, and
none of its items is meant by what follows. Items are numbered as they come: other
servers leave `output_index` out, reuse it, or change it (docs/servers.md). A call
without a `call_id` opens when it ends, with an id of ours. Some servers number the calls
of each response anew; such a call leaves here under an id that no earlier response has.

Servers that are agents call tools of their own, and say in the same response what these
returned (NousResearch/hermes-agent 9777). Such an output leaves here as those of our
own tools do, if its call is known; nobody answers the call again. LiteLLM shows its
model the tools of a remote server as functions, says what they returned as `mcp_call`,
and goes on in another response of the same stream (BerriAI/litellm 40118).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from itertools import chain, islice
from typing import Literal

from openai_responses.causes import REJECTED
from openai_responses.endings import (
    COMPLETED,
    Ending,
    api_word,
    ending_of_failure,
    ending_of_incomplete,
    failure_word,
)
from openai_responses.errors import (
    CONTENT_FILTER,
    AnswerTooLarge,
    ApiError,
    read_api_error,
)
from openai_responses.items import (
    Item,
    TextPlace,
    content_parts,
    distinct_id,
    has_encrypted_reasoning,
    is_call,
    is_call_output,
    is_hosted,
    is_image_call,
    is_paired,
    is_reasoning,
    item_texts,
    item_type,
    json_digest,
    kind_of,
    message_text,
    open_calls,
    text_message,
    with_texts,
)
from openai_responses.json_input import (
    JsonObject,
    as_mapping,
    as_text,
    parse_json_object,
)
from openai_responses.loop.events import (
    GIVEN_UP,
    ResponseDone,
    RunEvent,
    ToolOutput,
    Trace,
)
from openai_responses.loop.growing_parts import GrowingParts
from openai_responses.loop.item_forms import (
    in_api_form,
    with_plain_arguments,
    without_images,
)
from openai_responses.loop.repeated_messages import RepeatedMessages
from openai_responses.models.usage import Usage, read_usage
from openai_responses.requests.replay import remote_failed, remote_pair
from openai_responses.requests.tools import ToolNames
from openai_responses.transport.stream import (
    NO_INDEX,
    AnnotationAdded,
    EndMark,
    FinalResponse,
    ItemAdded,
    ItemDone,
    ItemEvent,
    LooseWords,
    PartDone,
    PartialImage,
    ResponseOpened,
    StreamError,
    StreamEvent,
    TextDelta,
    TextDone,
)
from openai_responses.ulid import new_ulid

_ITEMS_OF_CALL = 3
"""A thought, the call and its output. How many calls are made has limits of its own."""
MAX_ITEMS = 4096
"""Of an answer, with those of its earlier responses, but for earlier calls. The host looks
through all items of a message for each event of one: 8,000 cost 6 s of CPU, 100,000 a
quarter of an hour."""


class ResponseState:
    """One response, from its first event to its last.

    A *position* is that of an item in `_items`; its index in the run is `_first` more.
    """

    def __init__(
        self,
        first_index: int = 0,
        taken_call_ids: Collection[str] = (),
        tool_names: Collection[str] | None = None,
    ) -> None:
        """Number items from `first_index` on.

        `taken_call_ids` are those of the calls of earlier responses, `tool_names` those
        of the tools that the request declares; None if they are not known.
        """
        self.ending: Ending | None = None
        self._ends: list[Usage | None] = []
        """What each response of the stream has used that came to an end."""
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.byte_count = 0
        self.trace = Trace()
        self._first = first_index
        earlier = first_index - _ITEMS_OF_CALL * len(taken_call_ids)
        self._most_items = MAX_ITEMS - max(0, earlier)
        self._known_call_ids = set(taken_call_ids)
        """Those of all calls so far, earlier responses included."""
        self.has_end_mark = False
        """Whether the server has said that its stream ends here."""
        self._loose_words = ApiError()
        """The last message that came outside of all events, after the last item."""
        self._may_go_on = False
        """Whether another one may follow although it was complete: it had no items, or
        calls of tools that only the server knows."""
        self._foreign_calls = defaultdict[str, list[int]](list)
        """The positions of such calls, by what they asked for."""
        self._tool_names = None if tool_names is None else ToolNames(tuple(tool_names))
        """Those of the tools that our side runs."""
        self._repeated_messages = RepeatedMessages()
        self._own_call_ids: dict[str, str] = {}
        """The ids that calls leave with, by those of the wire."""
        self._response_id = ""
        """That of the response which the server has begun."""
        self._begin = 0
        """The position of its first item: those before it are of one that it gave up."""
        self._items: list[Item] = []
        """The items as they were announced."""
        self._types = set[str]()
        """Their types."""
        self._ids: dict[str, int] = {}
        """Positions by the ids of the wire."""
        self._latest: dict[int, int] = {}
        """The position of the last item that came with an `output_index`."""
        self._citations = defaultdict[int, list[Item]](list)
        """What events said of the texts of open items."""
        self._early: dict[str | int, list[TextDelta]] = {}
        """Deltas whose item is not known yet, by its id, or by its `output_index` if the
        delta has none."""
        self._open: dict[int, GrowingParts] = {}
        """The texts of the items that grow, by position."""
        self._growing = _NO_TEXT
        """The text that the last delta belongs to, and the position of its item."""
        self._ended: dict[int, Item] = {}
        """The final items, by position."""
        self._ended_texts: dict[int, tuple[str, int]] = {}
        """What they say: most ends of an item that come again are not longer, and need no
        comparison. And how often they have ended."""

    @property
    def items(self) -> list[tuple[int, Item]]:
        """The finished items with their indexes, in the order of the API."""
        positions = sorted(self._ended)
        return [
            (self._first + position, self._ended[position]) for position in positions
        ]

    @property
    def output(self) -> list[Item]:
        """The finished items, in the order of the API."""
        return [item for _, item in self.items]

    @property
    def next_index(self) -> int:
        """The index after those of all its items."""
        return self._first + len(self._items)

    @property
    def call_ids(self) -> Set[str]:
        """The ids of all calls so far, with those of earlier responses."""
        return self._known_call_ids

    @property
    def has_answered(self) -> bool:
        """Whether it has brought anything but thoughts and calls of our tools, or so many
        of these that another attempt would be too much for the page."""
        if len(self._items) > _MOST_GIVEN_UP:
            return True
        return not all(is_call(item) or is_reasoning(item) for item in self._items)

    @property
    def usages(self) -> list[Usage]:
        """Those of all responses of the stream."""
        return [*filter(None, self._ends)]

    @property
    def usage(self) -> Usage | None:
        """That of the last response."""
        return self._ends[-1] if self._ends else None

    @property
    def is_over(self) -> bool:
        """Whether nothing more of the response is read."""
        return self.ending is not None and not self._may_go_on

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event and return the run events that it causes."""
        self.event_count += 1
        take = self._take_reason if self.is_over else self._take
        events = take(event)
        if self._may_go_on and events and isinstance(event, ItemEvent):
            self.ending = None  # the server goes on, and ends it once more
        if type(event) is TextDelta and not self._repeated_messages.held:
            return events  # most events need no second look
        return self._repeated_messages.show(events)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case TextDelta():
                return self._grow(event) if event.text else []
            case AnnotationAdded() | PartialImage():
                # They fit an item of any type.
                position = self._find(
                    event.output_index, [event.item_id], lambda _item: True
                )
                if position in self._open:
                    if isinstance(event, AnnotationAdded):
                        self._citations[position].append(event.annotation)
                    index = self._first + position
                    return [event._replace(output_index=index, item_id="")]
            case ItemAdded(index, item):
                item = in_api_form(item)
                if _lacks_call_id(item) or self._is_of_server(item):
                    return []
                if is_call_output(item):  # it is shown when it is there
                    return []
                # It may be what another call returned.
                if item_type(item) == "mcp_call" and self._foreign_calls:
                    return []
                if self._find_item(index, item) is None:
                    return self._start(index, item, _ids(item))
            case ItemDone(index, item):
                item = in_api_form(item)
                if not self._is_of_server(item):
                    item, *images = without_images(self._as_output(item))
                    position = self._find_item(index, item)
                    if position is None:
                        position = self._find_renamed_call(index, item)
                    events = self._end(position, index, item)
                    for image in images:
                        position = self._find_item(_NOWHERE, image)
                        events += self._end(position, _NOWHERE, image)
                    return events
            case ResponseOpened(response_id):
                earlier_id = self._response_id
                self._response_id = response_id
                goes_on = self._may_go_on
                self._may_go_on = False
                self.ending = None
                if goes_on or earlier_id not in ("", response_id):
                    return self.give_up(keeps_thoughts=goes_on)
            case FinalResponse():
                return self._finish(event)
            case StreamError():
                self._fail("error", event.error)
            case EndMark():
                self.has_end_mark = True
                self._may_go_on = False
            case LooseWords():
                self._loose_words = event.error
        return []

    def close(self) -> list[RunEvent]:
        """Take the end of a stream that did not break; return the run events.

        Without an end of the response it was cut, unless the server has said why, or has
        set its mark after an answer that had ended (decolua/9router 1648), or another end
        before. With the mark, the end of a text is that of its item: the server has said
        that nothing more of it comes. A call needs no mark (OpenRouter, moeru-ai/airi
        2593): if more was to come, the model says so when it reads the output.
        """
        if self.ending is not None:
            return []
        if self._loose_words.message:
            self._fail("error", self._loose_words)
            return []
        position = len(self._items) - 1
        is_told = all(grown.has_ended for grown in self._open.values())
        if position < self._begin or self._early or not is_told:
            return []
        if self._open and not self.has_end_mark:
            return []
        last = self._ended.get(position) or self._items[position]
        had_end = self.has_end_mark or self._may_go_on
        is_answer = _is_answer(last) or is_image_call(last)
        is_end = is_answer if had_end else is_call(last)
        if not is_end or last.get("status") == "incomplete":
            return []
        self.ending = COMPLETED
        events = self._end_open("completed", has_snapshot=True)
        return self._repeated_messages.show([*events, ResponseDone()])

    def _take_reason(self, event: StreamEvent) -> list[RunEvent]:
        """Take the second of the two events with which a stream is refused.

        OpenAI sends `error`, then `response.failed` (recorded); Azure's filter sends them
        the other way round, and only the second one has the reason.
        """
        kind = self.ending.kind if self.ending else ""
        match event:
            case StreamError() if kind == "failed":
                self._fail("failed", event.error)
            case FinalResponse(status="failed") if kind == "error":
                return self._finish(event)
        return []

    def _fail(self, kind: Literal["failed", "error"], error: ApiError) -> None:
        """End with `error`, or with what an earlier event named as the reason."""
        first = self.refusal or ApiError()
        if first != ApiError():
            notice = first.notice if any(first.notice) else error.notice
            error = first._replace(notice=notice)
        self.refusal = error
        self.trace = self.trace._replace(error=error)
        # An answer that has words was not refused: so LiteLLM calls what breaks the streams
        # of Bedrock and Ollama (1.110.2).
        if failure_word(error) == REJECTED and not error.status and self._has_words:
            error = error._replace(code="server_error", type=None)
        self.ending = ending_of_failure(kind, error)
        self._may_go_on = False

    @property
    def _has_words(self) -> bool:
        """Whether a message has begun to say something."""
        grown = {at: parts.has_text for at, parts in self._open.items()}
        return any(
            item_type(item) == "message"
            and (grown.get(position) or message_text(self._ended.get(position, {})))
            for position, item in enumerate(self._items)
        )

    def give_up(self, *, keeps_thoughts: bool = False) -> list[RunEvent]:
        """End the items of a response in whose place another one begins.

        A message stays as far as it came. Nothing is left of thoughts and calls: the
        other response was begun without them, and the newest models drop reasoning whose
        beginning changed. But a server that made calls itself has gone on with them.
        """
        events: list[RunEvent] = []
        items = self._items[self._begin :]
        waiting = {id(call) for call in open_calls(items)}
        for position, item in enumerate(items, self._begin):
            is_thought = is_reasoning(item) and not keeps_thoughts
            if is_thought or id(item) in waiting:
                self._open.pop(position, None)
                self._ended.pop(position, None)
                events.append(ItemDone(self._first + position, GIVEN_UP))
        events += self._end_open("incomplete", has_snapshot=True)
        self._begin = len(self._items)
        self._growing = _NO_TEXT
        self._types.clear()
        self._ids.clear()
        self._latest.clear()
        self._early.clear()
        self._open.clear()
        self._own_call_ids.clear()
        self._foreign_calls.clear()
        return events

    def _is_of_server(self, item: Item) -> bool:
        """Say whether the server has run a call itself: the request has no such tool.

        xAI reports its searches as custom calls, `x_keyword_search` for one, and goes on
        to the answer. With an output for each, it would answer once more.
        """
        return item_type(item) == "custom_tool_call" and self._is_foreign(item)

    def _is_foreign(self, call: Item) -> bool:
        """Say whether the request has no tool of this name."""
        if self._tool_names is None:
            return False
        own_name = self._tool_names.own_name(as_text(call.get("name")))
        return own_name not in self._tool_names.known

    def _as_output(self, item: Item) -> Item:
        """Return a remote call as the output of the function call that it stands for."""
        if item_type(item) != "mcp_call":
            return item
        positions = self._foreign_calls.get(_asked(item))
        if not positions:
            return item
        # The last one counts once more: the snapshot repeats what came.
        position = positions.pop(0) if len(positions) > 1 else positions[0]
        _, output = remote_pair(item)
        return in_api_form(
            {
                **output,
                "call_id": self._items[position]["call_id"],
                "status": "failed" if remote_failed(item) else "completed",
            }
        )

    def _find(
        self, index: int, ids: Sequence[str], fits: Callable[[Item], bool]
    ) -> int | None:
        """Return the position of the item that an event is about, if it is known.

        The module says how: by its ids, else by the `output_index`.
        """
        for item_id in ids:
            position = self._ids.get(item_id)
            if position is not None and fits(self._items[position]):
                return position
        position = self._latest.get(index)
        if position is None or not fits(self._items[position]):
            return None
        has_id = any(ids)
        if has_id and position not in self._open:
            return None
        return position

    def _find_item(self, index: int, item: Item) -> int | None:
        """Return the position of an item, if it is known.

        Two calls of one `call_id` stay two; the snapshot only repeats what came.
        """
        kind = item_type(item)
        call_id = as_text(item.get("call_id"))

        def fits(known: Item) -> bool:
            """Say whether it has the same type, and no other `call_id`."""
            if item_type(known) != kind:
                return False
            known_call_id = as_text(known.get("call_id"))
            return call_id == known_call_id or not call_id or not known_call_id

        position = self._find(index, _ids(item), fits)
        if position not in self._ended or index == _NOWHERE:
            return position
        ended = self._ended[position]
        is_same = item.get("id") in (None, ended.get("id"))
        # MLflow has one id for all of a response: another text elsewhere is another one.
        is_elsewhere = index == NO_INDEX or index not in self._latest
        if kind == "message" and is_elsewhere and position not in self._open:
            was, _ = self._ended_texts[position]
            was = was.strip()
            now = _whole_text(item).strip()
            is_same = is_same and (was.startswith(now) or now.startswith(was))
        return position if is_same else None

    def _find_renamed_call(self, index: int, item: Item) -> int | None:
        """Return the position of an open call that ends under another `call_id`.

        vLLM draws a new one for the end of a call of gpt-oss, and leaves out its `id`
        (`emit_function_call_done_events`): the call would be made twice.
        """
        own_id = as_text(item.get("id"))
        position = self._ids.get(own_id) if own_id else self._latest.get(index)
        is_known = as_text(item.get("call_id")) in self._ids
        if position not in self._open or is_known or not is_call(item):
            return None
        known = self._items[position]
        is_same = all(known.get(key) == item.get(key) for key in ("type", "name"))
        grown = self._open[position].text_of(_ARGUMENTS)
        goes_on = dict(item_texts(item))[_ARGUMENTS].startswith(grown)
        return position if is_same and goes_on else None

    def _start(self, index: int, item: Item, ids: Sequence[str]) -> list[RunEvent]:
        """Open an item, and show what came for it before it was known.

        Raises AnswerTooLarge for one more than an answer may have.
        """
        position = len(self._items)
        if position >= self._most_items:
            raise AnswerTooLarge
        self._growing = _NO_TEXT
        self._items.append(item)
        self._types.add(item_type(item))
        self._open[position] = GrowingParts()
        for item_id in ids:
            self._ids[item_id] = position
        self._latest[index] = position
        events: list[RunEvent] = []
        if not is_call_output(item):
            shown = self._with_own_call_id(item)
            events.append(ItemAdded(self._first + position, shown))
        names: list[str | int] = [*ids, index]
        for name in names:
            for early in self._early.pop(name, ()):
                if _can_grow(item, early.kind):
                    events += self._grow(early)
        return events

    def _grow(self, event: TextDelta) -> list[RunEvent]:
        """Show a delta; the next one of the same part needs no search for its item."""
        index = event.output_index
        kind = event.kind
        item_id = event.item_id
        last_text, position = self._growing
        events: list[RunEvent] = []
        if last_text != (index, kind, item_id):
            position = self._find(index, [item_id], lambda item: _can_grow(item, kind))
        if position is None and not item_id:
            # The newest open item that it can grow. The delta has no index, or the item
            # has none (RESMP-DEV/ccr-rust 25).
            without_index = self._latest.get(NO_INDEX)
            for newest in islice(reversed(self._open), _NEWEST):
                is_meant = index == NO_INDEX or newest == without_index
                if is_meant and _can_grow(self._items[newest], kind):
                    position = newest
                    break
        if isinstance(event, PartDone):
            # Servers number parts, and name them, in other ways than their texts: what an
            # end brings is shown only where nothing has come before it.
            if position is None:
                has_come = item_type(_OPENED_BY[kind]) in self._types
            else:
                has_come = position in self._ended or self._open[position].has_text
            if has_come:
                return []
        if position is None:
            if kind not in _OPENED_BY:
                self._early.setdefault(item_id or index, []).append(event)
                return []
            position = len(self._items)
            # The id may be that of an item of another type, whose own texts still come.
            is_taken = item_id in self._ids
            own_id = "" if is_taken else item_id
            item = {**_OPENED_BY[kind], "id": own_id or f"item_{position}"}
            events = self._start(index, item, [] if is_taken else [item_id])
        if position not in self._open:
            ended = item_texts(self._ended[position])
            self._open[position] = GrowingParts(ended)
        self._growing = ((index, kind, item_id), position)
        grown = self._open[position]
        take = grown.end_part if isinstance(event, TextDone) else grown.grow
        index = self._first + position
        for (shown_kind, part), text in take((kind, event.part), event.text):
            events.append(TextDelta(index, shown_kind, part, text))
        return events

    def _end(self, position: int | None, index: int, item: Item) -> list[RunEvent]:
        """Take the final form of an item, and show what its deltas left out."""
        if is_call(item) and position is not None:
            item = self._with_own_arguments(position, item)
        if position in self._ended:
            # Each is shown and stored whole, with all that waits for it. After some, only
            # more text is shown: the item has it at the end of the response.
            _, ends = self._ended_texts[position]
            if ends > _MOST_LATER_ENDS + (index == _NOWHERE):
                return self._grow_on(position, item)
            return self._end_again(position, item)
        if is_call_output(item) and item.get("call_id") not in self._own_call_ids:
            return []  # of a call that is not shown, or of none
        if is_call(item) and position is not None:
            known = self._items[position]
            name = item.get("name") or known.get("name")
            # The page has shown the call under the id that came first; without one
            # it would not be known.
            item = {**item, "name": name, "call_id": known["call_id"]}
        if _lacks_call_id(item):
            item = {**item, "call_id": f"call_{new_ulid()}"}
        events: list[RunEvent] = []
        if position is None:
            position = len(self._items)
            events = self._start(index, item, _ids(item))
        for item_id in _ids(item):
            self._ids[item_id] = position
        rests, whole = self._open.pop(position).end_item(_telling_texts(item))
        stated = dict(item_texts(item))
        if whole.get(_ARGUMENTS) == "":
            # No arguments came: those of a function are `{}`, but a call that was cut off
            # has none yet.
            arguments = stated[_ARGUMENTS]
            is_function = item_type(item) == "function_call"
            if is_function and item.get("status") != "incomplete":
                arguments = arguments.strip() or "{}"
            if arguments:
                whole[_ARGUMENTS] = arguments
                rests.append((_ARGUMENTS, arguments))
        longer = {at: text for at, text in whole.items() if text != stated.get(at)}
        if longer:
            item = with_texts(item, longer)
        events += self._tell_end(position, rests, self._with_own_call_id(item))
        ended = self._ended[position]
        if item_type(ended) == "function_call" and self._is_foreign(ended):
            self._foreign_calls[_asked(ended)].append(position)
        return events

    def _with_own_arguments(self, position: int, call: Item) -> Item:
        """Return a call without the arguments of other calls, which are open.

        LiteLLM announces each of the parallel calls of Ollama, ends the last one alone, and
        with the arguments of all in their order (1.110.2).
        """
        rest = as_text(call.get("arguments"))
        if parse_json_object(rest) is not None or len(self._open) > _MOST_PARALLEL:
            return call
        for other, grown in self._open.items():
            if other == position or not is_call(self._items[other]):
                continue
            own_length = grown.begins(rest)
            if own_length is None:
                return call
            rest = rest[own_length:]
        if parse_json_object(rest) is None:
            return call
        if position in self._open:  # more came of it, too, which would count as longer
            self._open[position] = GrowingParts([(_ARGUMENTS, rest)])
        return {**call, "arguments": rest}

    def _grow_on(self, position: int, item: Item) -> list[RunEvent]:
        """Show what a later event has more of an item that has ended often."""
        was, _ = self._ended_texts[position]
        if _text_length(item) <= len(was):
            return []
        ended = item_texts(self._ended[position])
        grown = self._open.setdefault(position, GrowingParts(ended))
        rests = [
            rest for each in _telling_texts(item) for rest in grown.end_part(*each)
        ]
        index = self._first + position
        return [TextDelta(index, kind, part, text) for (kind, part), text in rests]

    def _end_again(self, position: int, item: Item | None) -> list[RunEvent]:
        """Take what a later event has more of an item that has ended.

        Without such an event the item ends with the deltas that came since.
        """
        was, _ = self._ended_texts[position]
        ended = self._ended[position]
        newer: Item = {}
        # LiteLLM has what Claude signs of a thought in the snapshot alone (1.110.2).
        is_sealed = item is not None and has_encrypted_reasoning(item)
        if item and is_sealed and not has_encrypted_reasoning(ended):
            newer["encrypted_content"] = item["encrypted_content"]
        if item is not None and not newer and _text_length(item) <= len(was):
            return []
        item = item and with_plain_arguments(item)  # as it has ended
        known = dict(_telling_texts(ended))
        grown = self._open.pop(position, None) or GrowingParts(known.items())
        rests, whole = grown.end_item(_telling_texts(item) if item else [])
        # LiteLLM ends a thought with a summary, and repeats it as another kind of text.
        kinds = {kind for (kind, _), text in known.items() if text}
        longer: dict[TextPlace, str] = {}
        for place, text in whole.items():
            before = known.get(place, "")
            is_more = text != before and text.startswith(before)
            if is_more and (not kinds or place[0] in kinds):
                longer[place] = text
        if not longer and not newer:
            return []
        if item is not None:  # its fields that hold the longer texts
            grown_kinds = {"text" if kind == "refusal" else kind for kind, _ in longer}
            for kind, field in kind_of(item).parts:
                if kind in grown_kinds and field in item:
                    newer[field] = item[field]
        longest = {**dict(item_texts(ended)), **longer}
        rests = [rest for rest in rests if rest[0] in longer]
        whole_item = with_texts({**ended, **newer}, longest)
        return self._tell_end(position, rests, whole_item)

    def _tell_end(
        self, position: int, rests: Iterable[tuple[TextPlace, str]], item: Item
    ) -> list[RunEvent]:
        """Return what the wire's own deltas did not bring of an item, then its end."""
        self._growing = _NO_TEXT
        item = with_plain_arguments(item)
        citations = self._citations.pop(position, [])
        parts = content_parts(item.get("content")) if citations else []
        has_own = any(part.get("annotations") for part in parts)
        if parts and not has_own and item_type(item) == "message":
            # Some servers tell citations in events alone.
            cited = {**parts[-1], "annotations": citations}
            item = {**item, "content": [*parts[:-1], cited]}
        self._loose_words = ApiError()  # the answer went on after them
        self._ended[position] = item
        _, ends = self._ended_texts.get(position, ("", 0))
        self._ended_texts[position] = (_whole_text(item), ends + 1)
        index = self._first + position
        if is_call_output(item):
            return [ToolOutput(index, item, item.get("status") == "failed")]
        events: list[RunEvent] = [
            TextDelta(index, kind, part, text) for (kind, part), text in rests
        ]
        return [*events, ItemDone(index, item)]

    def _with_own_call_id(self, item: Item) -> Item:
        """Return a call under an id that no earlier response has.

        Bedrock begins with `call_0` in each response (recorded by pydantic-ai), and an
        output would answer the first call of that name. The id is a function of the ids
        before it; once stored, it is sent again as it is. A call that comes twice in
        this response has one id.
        """
        call_id = as_text(item.get("call_id"))
        if not is_paired(item) or not call_id:
            return item
        own_id = self._own_call_ids.get(call_id)
        if own_id is None:
            own_id = distinct_id(call_id, self._known_call_ids)
            self._known_call_ids.add(own_id)
            self._own_call_ids[call_id] = own_id
        return item if own_id == call_id else {**item, "call_id": own_id}

    def _finish(self, event: FinalResponse) -> list[RunEvent]:
        """End the response as its final snapshot says, with all that this has more."""
        response = event.response
        if not response and not self._items and event.status != "failed":
            return []  # an end that says nothing of a response that has brought nothing
        used = read_usage(
            response.get("usage"),
            response.get("service_tier"),
            response.get("tool_usage"),
        )
        self._ends.append(used)
        removed = Counter[str]()  # what the API left out of the input, by its reasons
        for row in content_parts(response.get("input_transformations")):
            if row.get("action") == "removed":
                removed[api_word(str(row.get("reason"))) or "unknown"] += 1
        self.trace = self.trace._replace(
            model=str(response.get("model") or ""),
            removed=removed,
            response_id=as_text(response.get("id")),
            cache=as_mapping(response.get("prompt_cache_diagnostics")),
        )
        if event.status == "failed":
            # Azure has the reason in `status_details` (can1357/oh-my-pi 907).
            details = as_mapping(response.get("status_details"))
            error = response.get("error") or details.get("error")
            if not error:
                # A filter of Azure's may tell no more than that it stopped it.
                reason = as_mapping(response.get("incomplete_details")).get("reason")
                filters = content_parts(response.get("content_filters"))
                is_blocked = any(row.get("blocked") is True for row in filters)
                if is_blocked or reason == CONTENT_FILTER:
                    error = {"code": CONTENT_FILTER}
            self._fail("failed", read_api_error(error))
        else:
            self.ending = _ending_of(event.status, response)
        try:
            events = self._end_items(event)
        except AnswerTooLarge:
            self.ending = None  # it is not read to its end
            raise
        # Bridges to Chat Completions say "incomplete" for each reason to end but `stop`,
        # and name a reason only where the answer was cut off (deepseek2responses 0.1,
        # codex-router-proxy 0.5). Azure says it of whole answers, too (NousResearch/
        # hermes-agent 27988).
        if self.ending == ending_of_incomplete(None) and self._ended:
            last = self._ended[max(self._ended)]
            is_call_or_end = item_type(last) == "function_call"
            is_call_or_end = is_call_or_end or last.get("phase") == "final_answer"
            if is_call_or_end and last.get("status") == "completed":
                self.ending = COMPLETED
        positions = range(self._begin, len(self._items))
        own = [self._ended[place] for place in positions if place in self._ended]
        is_foreign = any(map(self._is_foreign, open_calls(own)))
        has_answer = bool(positions) and not is_foreign
        # Each end looks through all items.
        may_end_again = len(self._ends) < _MOST_RESPONSES
        is_complete = self.ending == COMPLETED
        self._may_go_on = is_complete and not has_answer and may_end_again
        return [*events, ResponseDone()]

    def _end_items(self, event: FinalResponse) -> list[RunEvent]:
        """End the items of the response as its final snapshot says."""
        events: list[RunEvent] = []
        items = map(in_api_form, content_parts(event.response.get("output")))
        own = [item for item in items if not self._is_of_server(item)]
        output = [
            each for item in own for each in without_images(self._as_output(item))
        ]
        # Gateways that answer without items have the text as OpenAI's packages join it.
        text = as_text(event.response.get("output_text"))
        if text and not any(map(_is_answer, chain(self._items, output))):
            output.append(text_message("assistant", text))
        counts = Counter(map(item_type, output))
        new = [item for item in output if not self._is_joined(item, counts)]
        for position, item in self._match(new):
            # SGLang's router has an empty message there, in the place of calls. Alone,
            # it is the answer.
            is_nothing = item_type(item) == "message" and not message_text(item)
            if position is not None or not is_nothing or not self._items:
                events += self._end(position, _NOWHERE, item)
        if event.status != "failed":
            events += self._end_open(event.status, has_snapshot=bool(output))
        return events

    def _end_open(self, status: str, *, has_snapshot: bool) -> list[RunEvent]:
        """End the items that neither an event nor the final snapshot has ended.

        A call without arguments counts only where there is no snapshot to name it.
        """
        events: list[RunEvent] = []
        for position, grown in sorted(self._open.items()):
            if position in self._ended:
                events += self._end_again(position, None)
                continue
            item = self._items[position]
            is_told = grown.has_text or any(text for _, text in _telling_texts(item))
            has_come = is_told
            if is_call(item):
                has_come = bool(item.get("name")) and (is_told or not has_snapshot)
            if has_come and not is_hosted(item):
                final = {**item, "status": _STATUS_OF_ITEMS.get(status, "completed")}
                # rosetta-llm ends no call, and names no reason (0.2.2): a call that is whole
                # was not cut off.
                arguments = grown.text_of(_ARGUMENTS)
                is_whole = is_call(item) and parse_json_object(arguments) is not None
                if is_whole and self.ending == ending_of_incomplete(None):
                    final["status"] = "completed"
                # Codex's own server has announced calls, and sent nothing more of them
                # (NousResearch/hermes-agent 110975): what they were to do is not known.
                if not is_told and item.get("status") == "in_progress":
                    final["status"] = "incomplete"
                # OpenAI announces another content than it ends with (34 recordings of
                # 34): what the model can read has not come, only what users can.
                if final.pop("encrypted_content", None):
                    final["status"] = "incomplete"
                events += self._end(position, _NOWHERE, final)
        return events

    def _is_joined(self, item: Item, counts: Counter[str]) -> bool:
        """Say whether one item has the texts of several that came, and nothing else.

        LiteLLM streams a text, a thought, and a text, and has one message in the end.
        """
        kind = item_type(item)
        is_alone = counts[kind] == 1
        is_text = kind in _TEXT_TYPES and not item.get("encrypted_content")
        if not is_alone or not is_text:
            return False
        came: list[str] = []
        for position in range(self._begin, len(self._items)):
            if item_type(self._items[position]) == kind:
                ended = item_texts(self._ended.get(position, {}))
                grown = self._open.get(position) or GrowingParts(ended)
                came.append(grown.whole)
        whole = "".join(text for _, text in item_texts(item))
        return sum(map(bool, came)) > 1 and whole == "".join(came)

    def _match(self, items: Sequence[Item]) -> Iterator[tuple[int | None, Item]]:
        """Yield the positions of the items of the final snapshot, if they are known."""
        positions = [self._find_item(_NOWHERE, item) for item in items]
        taken = set(positions)
        unmatched: dict[str, deque[int]] = defaultdict(deque)
        for known_position in range(self._begin, len(self._items)):
            if known_position not in taken:
                known_type = item_type(self._items[known_position])
                unmatched[known_type].append(known_position)
        for position, item in zip(positions, items, strict=True):
            same_type = unmatched[item_type(item)]
            if position is None and same_type:
                yield same_type.popleft(), item
            else:
                yield position, item


_NO_TEXT: tuple[object, int | None] = (None, None)
"""The next delta has to search for its item."""
_NOWHERE = -2
"""An `output_index` that no event has."""
_MOST_RESPONSES = 100
"""Of one stream whose server makes calls itself."""
_MOST_GIVEN_UP = 128
"""Items that leave the page for those of the next attempt."""
_MOST_LATER_ENDS = 16
"""Of an item, and one more by the final snapshot. Gateways end some items twice."""
_MOST_PARALLEL = 64
"""Open items, if one of them may end with the texts of all."""
_NEWEST = 8
"""Open items that an event without a name may be about."""

_EMPTY_MESSAGE: Item = {"type": "message", "role": "assistant", "content": []}
_OPENED_BY = {
    "text": _EMPTY_MESSAGE,
    "refusal": _EMPTY_MESSAGE,
    "summary": {"type": "reasoning", "summary": []},
    "reasoning": {"type": "reasoning", "summary": []},
}
"""Items that their texts alone open."""
_TEXT_TYPES = {item_type(item) for item in _OPENED_BY.values()}
_STATUS_OF_ITEMS = {"incomplete": "incomplete", "cancelled": "incomplete"}
"""The status of items that a response has not ended, by its own."""


_ARGUMENTS: TextPlace = ("arguments", 0)


def _telling_texts(item: Item) -> list[tuple[TextPlace, str]]:
    """Return the texts of an item; arguments that say nothing as no text.

    Gateways write `{}` in a call whose arguments come as deltas.
    """
    texts = dict(item_texts(item))
    if texts.get(_ARGUMENTS, "").strip() in ("", "{}") and _ARGUMENTS in texts:
        texts[_ARGUMENTS] = ""
    return list(texts.items())


def _text_length(item: Item) -> int:
    return sum(len(text) for _, text in _telling_texts(item))


def _whole_text(item: Item) -> str:
    return "".join(text for _, text in _telling_texts(item))


def _can_grow(item: Item, kind: str) -> bool:
    """Say whether deltas of a kind belong to an item of this type."""
    if kind in _OPENED_BY:
        return item_type(item) == item_type(_OPENED_BY[kind])
    text_field = kind_of(item).text
    return text_field is not None and text_field[0] == kind


def _ids(item: Item) -> list[str]:
    """Return the ids that an event can name an item by; a `call_id` names the call."""
    call_id = "" if is_call_output(item) else as_text(item.get("call_id"))
    ids = (as_text(item.get("id")), call_id)
    return [item_id for item_id in ids if item_id]


def _is_answer(item: Item) -> bool:
    """Say whether an item is what a response was asked for: a message or a call."""
    return is_call(item) or item_type(item) == "message"


def _asked(call: Item) -> str:
    """Return what a call asks for, the same for the same arguments."""
    arguments = as_text(call.get("arguments"))
    return json_digest([call.get("name"), parse_json_object(arguments) or arguments])


def _lacks_call_id(item: Item) -> bool:
    """Say whether `item` is a call that gets its `call_id` here, when it has ended."""
    return is_call(item) and not as_text(item.get("call_id"))


def _ending_of(status: str, response: JsonObject) -> Ending:
    """Return how a response ended that did not fail.

    One that is `cancelled` was cancelled by another client: after our own cancellation
    no answer is read.
    """
    details = as_mapping(response.get("incomplete_details"))
    other_details = as_mapping(response.get("status_details"))
    reason = details.get("reason") or other_details.get("reason")
    if status == "incomplete":
        return ending_of_incomplete(as_text(reason))
    # Bridges say that an answer is complete, and keep the word of another API for why it
    # ended (ltmoerdani/opencode-copilot-chat 198).
    word = reason or response.get("finish_reason") or response.get("stop_reason")
    if word in ("length", "max_tokens", "max_output_tokens", CONTENT_FILTER):
        return ending_of_incomplete(word)
    # Servers have further words, of which nobody knows whether they are an end.
    is_over = status in ("cancelled", "expired")
    if is_over or (status != "completed" and not response.get("output")):
        return ending_of_incomplete(status)
    return COMPLETED
