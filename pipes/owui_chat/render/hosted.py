"""What the page shows of the items that OpenAI's own tools make.

An image is above the text, in the message's list of files. The host stores the
`files` of an event; `chat:message:files` reaches only the open page, so nothing of an
unfinished image is stored (docs/reference/open-webui.md, "Events and stored files").
Of several `files` events the page would show only the last one, although the host
stores all of them.

In its older mode of tools the host takes code at the end of an answer for a request to
run it, and calls the pipe again (the same, "Rounds of tools").

The page has cards for searches on the web and in files, which show the queries. The
pages that were found are in a status line (docs/reference/open-webui.md, "Native
events").

A call of a remote server looks like a call of the host's own tools. The host never runs
it, because it has an output, or because it was not complete.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from openai_responses.items import (
    Item,
    content_parts,
    image_url,
    item_type,
    json_text,
    search_pages,
    search_queries,
)
from openai_responses.json_input import as_list, as_mapping, as_text, value_at
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.requests.replay import remote_failed, remote_pair
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
    ItemEvent,
    PartialImage,
    TextDelta,
)
from owui_chat.cards import certain_length, without_cards
from owui_chat.citations import HoldbackBuffer, strip_tracking
from owui_chat.code import code_host_item, replay_code
from owui_chat.render.chunks import Chunks, host_event, status_chunk
from owui_chat.render.items import OutputItems, output_host_item, shown_fields
from owui_chat.wording import plural


class HostedItems:
    """Shows the items of one run; a type without a card is not shown."""

    def __init__(self, output: OutputItems) -> None:
        self._output = output
        self._open: dict[int, _HostedItem] = {}

    def render(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for an event of an item."""
        index = event.output_index
        if isinstance(event, ItemAdded):
            card = HOSTED_CARDS.get(item_type(event.item))
            if card:
                self._open[index] = card(self._output)
        if index in self._open:
            yield from self._open[index].render(event)
        if isinstance(event, ItemDone):
            self._open.pop(index, None)
            if item_type(event.item) == "mcp_list_tools":
                label = as_text(event.item.get("server_label")) or "An MCP server"
                tools = event.item.get("tools")
                line = f"{label} did not list its tools: the answer continues without them."
                if isinstance(tools, list) and not event.item.get("error"):
                    line = f"{label} offers {plural(len(tools), 'tool')}."
                yield status_chunk(line)

    def break_off(self, event: RunDone) -> Chunks:
        """Yield the chunks for items that the run did not end."""
        for item in self._open.values():
            yield from item.render(event)


class _HostedItem(ABC):
    """Shows one item.

    It gets the item's own events, from ItemAdded to ItemDone, and RunDone if the run
    ended before the item.
    """

    def __init__(self, output: OutputItems) -> None:
        self._output = output
        self._host_index = len(output.items)

    @abstractmethod
    def render(self, event: RunEvent) -> Chunks:
        """Yield the chunks for an event."""


_REFUSED = "The image was not generated: the safety system rejected it."
_FAILED = "The image could not be generated."
_BROKE_OFF = "The answer was interrupted before the image was complete."


class _ImageHostItem(_HostedItem):
    """An image: a status line, sketches, and the file at the end."""

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                yield status_chunk("Generating an image")
            case PartialImage():
                sketch = {"result": event.image, "output_format": event.form}
                image = {"type": "image", "url": image_url(sketch)}
                yield from self._output.show_files([image])
            case ItemDone():
                notes = event.card.get("notes")
                code = value_at(event.item, "error", "code")
                if notes:
                    yield from self._note(f"*{notes[0]}*")
                elif event.item.get("result"):
                    yield status_chunk("Image generated")
                else:
                    is_refused = code == "moderation_blocked"
                    yield from self._note(f"*{_REFUSED if is_refused else _FAILED}*")
                if "address" in event.card:
                    # Of an address outside of the host the page draws only an image in
                    # a text.
                    yield from self._note(f"![Image](<{event.card['address']}>)")
                yield from self._output.add_files(event.card)
            case _:
                yield from self._note(f"*{_BROKE_OFF}*")
                yield from self._output.show_files()

    def _note(self, markdown: str) -> Chunks:
        """Yield a text that the page shows and that no later turn contains."""
        number = len(self._output.items)
        note = {
            "type": "openai_responses:note",
            "id": f"note_{number}",
            "content": [{"type": "output_text", "text": markdown}],
        }
        yield from self._output.add(note)


_BROKEN_CODE = "The answer was interrupted before the code had run."


class _CodeHostItem(_HostedItem):
    """Code that runs at OpenAI, with its files."""

    def __init__(self, output: OutputItems) -> None:
        super().__init__(output)
        self._code: list[str] = []
        self._held = HoldbackBuffer(certain_length)

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = {**event.item, "code": "", "status": "in_progress"}
                yield self._output.begin(code_host_item(begun))
            case TextDelta():
                self._code.append(event.text)
                text = without_cards(self._held.feed(event.text))
                if text:
                    yield self._output.grow(self._host_index, event.kind, text)
            case ItemDone():
                yield self._output.end(self._host_index, code_host_item(event.item))
                yield from self._output.add_files(event.card)
            case _:
                code = replay_code({"code": "".join(self._code)}, _BROKEN_CODE)
                yield self._output.update(
                    self._host_index, status="incomplete", code=code
                )


class _SearchHostItem(_HostedItem):
    """A search on the web or in files, with a line of the pages that it found."""

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = {**event.item, "status": "in_progress"}
                yield self._output.begin(_search_host_item(begun))
            case ItemDone():
                yield self._output.end(self._host_index, _search_host_item(event.item))
                addresses = map(strip_tracking, search_pages(event.item))
                pages = list(dict.fromkeys(addresses))
                if not pages:
                    return
                # A status line that opens to the pages.
                description = f"Searched {plural(len(pages), 'site')}"
                queries = ", ".join(search_queries(event.item))
                if queries:
                    description += f" for {queries}"
                status = {
                    "action": "web_search",
                    "description": description,
                    "urls": pages,
                    "done": True,
                }
                yield host_event("status", status)
            case RunDone():
                yield self._output.update(self._host_index, status="incomplete")


def _search_host_item(item: Item) -> Item:
    """Return a search without results and sources: the host would store them in vain."""
    shown = shown_fields(item)
    queries = search_queries(item)
    action = item.get("action")
    if isinstance(action, dict):
        done: Item = {
            name: strip_tracking(action[name])
            for name in _FIELDS_OF_ACTION
            if as_text(action.get(name))
        }
        if "queries" in action:
            done["queries"] = queries
        shown["action"] = done
    elif queries:
        shown["queries"] = queries
    return shown


_FIELDS_OF_ACTION = ("type", "query", "url", "pattern")


_UNKNOWN_OUTCOME = (
    "Error: the answer was interrupted. The server may have made this call."
)


class _McpCallHostItem(_HostedItem):
    """A call of a remote server, which has its output at its end."""

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = _mcp_call_host_item(event.item, "in_progress")
                yield self._output.begin({**begun, "arguments": ""})
            case TextDelta():
                yield self._output.grow(self._host_index, event.kind, event.text)
            case ItemDone():
                has_failed = remote_failed(event.item)
                status = "failed" if has_failed else "completed"
                card = _mcp_call_host_item(event.item, status)
                yield self._output.end(self._host_index, card)
                _, output = remote_pair(event.item)
                answer = ToolOutput(event.output_index, output, has_failed)
                yield from self._output.add(output_host_item(answer))
            case RunDone():
                yield from self._output.break_off(self._host_index, _UNKNOWN_OUTCOME)


def _mcp_call_host_item(item: Item, status: str) -> Item:
    """Return a call of a remote server as one of the host's own."""
    call, _ = remote_pair(item)
    return {**call, "id": f"fc_{call['call_id']}", "status": status}


class _ShellHostItem(_HostedItem):
    """Commands in OpenAI's shell, as a call; what they printed is another item.

    Without an output it is broken off at the end of the run, as any other call.
    """

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                yield self._output.begin(_shell_host_item(event.item))
            case ItemDone():
                card = _shell_host_item(event.item)
                yield self._output.end(self._host_index, card)


def _shell_host_item(item: Item) -> Item:
    call_id = _shell_call_id(item)
    commands = as_list(as_mapping(item.get("action")).get("commands"))
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "shell",
        "arguments": json_text({"commands": [*filter(as_text, commands)]}),
        "status": "completed",
    }


def _shell_call_id(item: Item) -> str:
    """Return an id that no call of a function has."""
    return f"shell_{as_text(item.get('call_id'))}"


class _ShellOutputHostItem(_HostedItem):
    """What the commands of an earlier item printed, and how they ended."""

    def render(self, event: RunEvent) -> Chunks:
        if not isinstance(event, ItemDone):
            return
        call_id = _shell_call_id(event.item)
        if not self._output.has_open_call(call_id):
            return
        texts: list[str] = []
        failures: list[str] = []
        for row in content_parts(event.item.get("output")):
            outcome = as_mapping(row.get("outcome"))
            if outcome.get("type") == "timeout":
                failures.append("The commands took too long.")
            elif outcome.get("exit_code"):
                failures.append(f"Exit code: {outcome['exit_code']}")
            texts += [as_text(row.get("stdout")), as_text(row.get("stderr"))]
        text = "\n".join(filter(None, [*texts, *failures]))
        output = {"call_id": call_id, "output": text}
        answer = ToolOutput(event.output_index, output, failed=bool(failures))
        yield from self._output.answer(answer)


HOSTED_CARDS: Mapping[str, type[_HostedItem]] = {
    "web_search_call": _SearchHostItem,
    "file_search_call": _SearchHostItem,
    "mcp_call": _McpCallHostItem,
    "code_interpreter_call": _CodeHostItem,
    "image_generation_call": _ImageHostItem,
    "shell_call": _ShellHostItem,
    "shell_call_output": _ShellOutputHostItem,
}
