"""Very large answers, and hostile texts of megabytes: what it takes to show them."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from bench.chats import MODEL, ORIGIN
from bench.large_chats import SIGN, call_item, message_item, thought_item
from gpt5_agent.agent.thoughts import ThoughtFilter
from gpt5_agent.shell.views import HostRenderer
from openai_responses.endings import COMPLETED
from openai_responses.items import Item
from openai_responses.loop.events import ResponseDone, RunDone, RunEvent, ToolOutput
from openai_responses.loop.tools import ToolResult, Toolset, run_calls
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.citations import Citations
from owui_chat.events import AnswerEvent, StoredRecord
from owui_chat.files import link_files
from owui_chat.input.history import build_input
from owui_chat.messages import AssistantText
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.recorder import Carrier, NewRecord, Recorder, RecordScope
from owui_chat.storage.records import write_records

Json = dict[str, Any]
Work = Callable[[], object]


def _call(number: int) -> Item:
    return call_item(f"call_{number}")


def _ended(output: Iterable[Item]) -> RunDone:
    return RunDone(COMPLETED, output=tuple(output))


def _item_events(items: Iterable[Item], first: int = 0) -> list[RunEvent]:
    return [
        event
        for index, item in enumerate(items, first)
        for event in (ItemAdded(index, item), ItemDone(index, item))
    ]


def _called(count: int) -> list[RunEvent]:
    """Return the events of one response with all calls, and their outputs."""
    calls = list(map(_call, range(count)))
    outputs = [
        {"type": "function_call_output", "call_id": f"call_{n}", "output": "Rain."}
        for n in range(count)
    ]
    told = [ToolOutput(count + n, item) for n, item in enumerate(outputs)]
    done = ResponseDone("completed")
    return [*_item_events(calls), done, *told, _ended([*calls, *outputs])]


def shown_calls(count: int) -> Work:
    """Calls of one response, as the page is shown them."""
    events = _called(count)

    def work() -> None:
        view = NativeRenderer(float, HostedItems)
        for event in events:
            for _ in view.render(event):
                pass

    return work


def _recorder(carrier: Carrier) -> Recorder:
    scope = RecordScope(MODEL, "a", ORIGIN, keeps_reasoning=True, carrier=carrier)
    numbers = iter(range(10**9))
    return Recorder(scope, lambda: (f"{next(numbers):026d}", 0))


def _shown_and_recorded(events: Iterable[RunEvent]) -> None:
    view, recorder, citations = (
        NativeRenderer(float, HostedItems),
        _recorder("output"),
        Citations(),
    )
    for event in events:
        for cited in citations.feed(event):
            for recorded in recorder.feed(cited):
                for _ in view.render(_stored(recorded)):
                    pass


def _stored(event: Any) -> AnswerEvent:
    if not isinstance(event, NewRecord):
        return event  # type: ignore[no-any-return]
    record = event.record
    value = write_records({record.ulid: record}, SIGN)
    return StoredRecord(record.ulid, value, event.output_index)


def recorded_calls(count: int) -> Work:
    """The same, with what is stored of them."""
    events = _called(count)
    return lambda: _shown_and_recorded(events)


def late_items(count: int) -> Work:
    """Parallel calls that end in the reverse order."""
    calls = [(index, _call(index)) for index in range(count)]
    added = [ItemAdded(index, call) for index, call in calls]
    done = [ItemDone(index, call) for index, call in reversed(calls)]
    events: list[RunEvent] = [*added, *done, _ended(call for _, call in calls)]
    return lambda: _shown_and_recorded(events)


def recorded_messages(count: int) -> Work:
    """Messages with reasoning between them, each with a record of its own."""
    return _answer_with(count, "")


def recorded_commentary(count: int) -> Work:
    """The same with commentary, which has a card of its own."""
    return _answer_with(count, "commentary")


def _answer_with(count: int, phase: str) -> Work:
    events: list[RunEvent] = []
    items: list[Item] = []
    for number in range(count):
        thought = thought_item(number)
        message = message_item(number, f"Step {number}.", [], phase)
        index = len(items)
        events += _item_events([thought], index)
        begun = {**message, "content": []}
        delta = TextDelta(index + 1, "text", 0, f"Step {number}.")
        events += [ItemAdded(index + 1, begun), delta, ItemDone(index + 1, message)]
        items += [thought, message]
    events.append(_ended(items))
    return lambda: _shown_and_recorded(events)


def long_commentary(count: int) -> Work:
    """Commentary that comes in many pieces."""
    text = "word " * count
    message = message_item(0, text, [], "commentary")
    deltas = [TextDelta(0, "text", 0, "word ") for _ in range(count)]
    begun = ItemAdded(0, {**message, "content": []})
    events: list[RunEvent] = [begun, *deltas, ItemDone(0, message), _ended([message])]
    return lambda: _shown_and_recorded(events)


def plain_answer(count: int) -> Work:
    """Messages and commentary in turn, for a client of plain HTTP, in one piece."""
    phases = ("commentary", "final_answer")
    items = [message_item(n, f"Step {n}.", [], phases[n % 2]) for n in range(count)]
    ended = _ended(items)
    return lambda: completion(ended, "chatcmpl-1", 0, MODEL)


def _cited(count: int) -> Item:
    """Return a message with links and annotations."""
    link = "([a.example](https://a.example/{}?utm_source=openai)) "
    pieces = [link.format(number) for number in range(count)]
    places = [sum(map(len, pieces[:1])) * number for number in range(count)]
    annotations = [
        {
            "type": "url_citation",
            "url": f"https://a.example/{number}?utm_source=openai",
            "title": f"Page {number}",
            "start_index": place,
            "end_index": place + 10,
        }
        for number, place in enumerate(places)
    ]
    return message_item(0, "".join(pieces), annotations)


def cited_sources(count: int) -> Work:
    """An answer with many sources, as the page is shown it."""
    message = _cited(count)
    begun = ItemAdded(0, {**message, "content": []})
    events: list[RunEvent] = [begun, ItemDone(0, message), _ended([message])]
    return lambda: _shown_and_recorded(events)


def plain_sources(count: int) -> Work:
    """The same for a client of plain HTTP."""
    message = _cited(count)
    events: list[RunEvent] = [
        ItemAdded(0, {**message, "content": []}),
        ItemDone(0, message),
    ]

    def work() -> None:
        view = ChunkRenderer("chatcmpl-1", 0, MODEL)
        for event in events:
            for _ in view.render(event):
                pass

    return work


class _Tools:
    """Tools that answer at once."""

    def parameters(self, _name: str) -> Json:
        """Return a schema that everything fits."""
        return {"type": "object", "properties": {}}

    def resolve_call(self, name: str, arguments: Json) -> tuple[str, Json]:
        """Return the call unchanged."""
        return name, arguments

    def is_interactive(self, _name: str) -> bool:
        """Say that no tool waits for a person."""
        return False

    async def call(self, _name: str, _arguments: Json) -> ToolResult:
        """Answer."""
        return ToolResult("Rain.")


def run_many_calls(count: int) -> Work:
    """Calls of one response, run here."""
    calls = list(map(_call, range(count)))

    async def run_all() -> None:
        async for _ in run_calls(calls, Toolset(_Tools())):
            pass

    return lambda: asyncio.run(run_all())


def calls_of_the_agent(count: int) -> Work:
    """Calls and texts of one round of the pipeline's agent."""
    items = [
        one
        for n in range(count)
        for one in (message_item(n, f"Step {n}.", []), _call(n))
    ]
    events = [*_item_events(items), ResponseDone("completed")]

    def work() -> None:
        thoughts, view = ThoughtFilter(emits=True), HostRenderer(True, ORIGIN, SIGN)
        thoughts.begin_round(may_call=True)
        for event in events:
            for shown in thoughts.show(event):
                for _ in view.show(shown):
                    pass

    return work


# ---------------------------------------------------------------- hostile texts


def _history_of(text: str) -> Work:
    return lambda: build_input([AssistantText(text)], {}, None)


def half_markers(characters: int) -> Work:
    """A text of beginnings of markers."""
    pieces = (
        "[openai_responses:v2:items:",
        "[](openai_responses:v1:aa:",
        "\n [P:",
        "]: #",
    )
    return _history_of(_repeat("".join(pieces), characters))


def details_blocks(characters: int) -> Work:
    """A text of blocks that begin and do not end, before one that ends."""
    return _history_of(
        _repeat('<details type="status" ><details type="', characters) + "</details>"
    )


def foreign_lines(characters: int) -> Work:
    """Lines of another pipe that become such only one after the other."""
    text = _repeat("\u3000[0123456789ABCDEFGHIJ]: #\n", characters)
    return lambda: strip_markers(f"[0123456789ABCDEFGHIJ]: #\n{text}")


def half_links(characters: int) -> Work:
    """A text of beginnings of links."""
    text = _repeat("[a](https://b(c [d]([https://e?utm_source=openai ", characters)
    message = message_item(0, text, [])
    size = 100_000
    deltas = [
        TextDelta(0, "text", 0, text[place : place + size])
        for place in range(0, len(text), size)
    ]
    begun = ItemAdded(0, {**message, "content": []})
    events: list[RunEvent] = [begun, *deltas, ItemDone(0, message), _ended([message])]
    return lambda: _shown_and_recorded(events)


def one_long_link(characters: int) -> Work:
    """A link that goes on and on, in small pieces."""
    text = "[a](https://" + "b" * characters
    deltas = [
        TextDelta(0, "text", 0, text[place : place + 10])
        for place in range(0, len(text), 10)
    ]
    message = message_item(0, text, [])
    begun = ItemAdded(0, {**message, "content": []})
    events: list[RunEvent] = [begun, *deltas, ItemDone(0, message), _ended([message])]
    return lambda: _shown_and_recorded(events)


def container_addresses(characters: int) -> Work:
    """A text of addresses in a container that do not end."""
    text = _repeat("sandbox:/", characters) + "." * characters
    return lambda: link_files(text, {})


def long_arguments(characters: int) -> Work:
    """One call whose arguments are very long."""
    text = json.dumps({"text": "x" * characters})
    call = {**_call(0), "arguments": text}
    deltas = [
        TextDelta(0, "arguments", 0, text[place : place + 100])
        for place in range(0, len(text), 100)
    ]
    events: list[RunEvent] = [
        ItemAdded(0, _call(0)),
        *deltas,
        ItemDone(0, call),
        _ended([call]),
    ]
    return lambda: _shown_and_recorded(events)


def _repeat(piece: str, characters: int) -> str:
    return piece * (characters // len(piece))
