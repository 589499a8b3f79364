"""What may end a run from outside of it: limits, and an account that is gone.

The administration's filter gets to know of each run: its events and its usage.
"""

import asyncio
from collections.abc import Mapping, Sequence, Set
from contextlib import aclosing, suppress

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, container_ids, is_call, is_image_call, maker_of
from openai_responses.json_input import as_list, value_at
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import (
    ResponseDone,
    RunDone,
    RunEvent,
    RunEvents,
    Status,
    ToolOutput,
)
from openai_responses.loop.run import run
from openai_responses.loop.spending import Budget, EarlierSpending, Spending
from openai_responses.models.usage import Usage
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
    PartialImage,
    TextDelta,
)
from owui_host.users import user_model
from owui_manifold.call.context import Call
from owui_manifold.prepare.request import Prepared
from owui_manifold.run.agent import run_agent
from owui_manifold.run.purchases import itemize
from shells.administration import NO_PURCHASES, CallAccount, EventWords, ResponseCounts


def check_limits(prepared: Prepared) -> None:
    """Raise InvalidRequest if a limit forbids the request.

    Limits count the pro mode and research as models of their own.
    """
    call = prepared.call
    if call.account is None:
        return
    request = prepared.request
    model = request.model
    if (request.reasoning or {}).get("mode") == "pro":
        model = f"{model}-pro"
    if call.model.research and not call.caller.task:
        model = f"{model}-research"
    has_price = prepared.cost_of([Usage()]) is not None
    refusal = call.account.limits.refusal(model, has_price)
    if refusal:
        raise InvalidRequest(refusal, remedy="rule")


def begin_spending(prepared: Prepared) -> Spending:
    """Return what an answer has taken that begins now or goes on, with its budget."""
    spending = Spending(budget_of(prepared.call))
    spending.add_earlier(earlier_spending(prepared))
    return spending


def budget_of(call: Call) -> Budget:
    """Return the limits of an answer."""
    most_calls = call.valves.MAX_TOOL_CALLS
    if call.agent:
        return call.agent.parameters.budget(most_calls)
    # One round more in which the model hears of the limit.
    return Budget(call.valves.MAX_FUNCTION_CALL_LOOPS + 1, most_calls)


def earlier_spending(prepared: Prepared) -> EarlierSpending:
    """Return what an answer has taken before the host made calls of it and goes on.

    A user approved them; the limits are those of the whole answer.
    """
    row = prepared.row
    if row is None or not prepared.call.host.metadata.get("tool_approval_resume"):
        return EarlierSpending()
    rounds = calls = 0
    before = ""
    for item in as_list(value_at(row.chat.messages, row.message_id, "output")):
        kind = str(value_at(item, "type"))
        if kind == "function_call":
            calls += 1
            if before != kind:  # the first of those that one response made
                rounds += 1
        if kind in ("function_call", "function_call_output"):
            before = kind
    return EarlierSpending(rounds, calls)


def counted_run(
    prepared: Prepared,
    limits: Limits,
    connections: Connections,
    spending: Spending,
) -> RunEvents:
    """Return the events of a run; with an account it is counted and observed."""
    call = prepared.call
    request = prepared.request
    account = call.account
    counts = _RunCounts(prepared, account) if account else None
    if counts:
        limits = counts.told_by(limits)
    if call.agent:
        events = run_agent(prepared, call.agent, limits, connections, spending)
    else:
        toolset = prepared.toolset
        events = run(request, call.endpoint, connections, limits, toolset, spending)
    if account and counts:
        events = counts.watch(events)
        host = call.endpoint.host
        return account.observe_run(events, request.model, host, event_words)
    return events


class CallerPresence:
    """Ends a run with its round once the account of whoever asked is gone.

    Tools would go on acting for a user who was deleted or switched off. The host has
    looked just before the run, so it is asked again after a second.
    """

    def __init__(self, user_id: str) -> None:
        self._user_id = user_id
        self._now = asyncio.get_running_loop().time
        self._looked_at = self._now()
        self._has_called = False
        self._is_gone = False

    def is_due(self, event: RunEvent) -> bool:
        """Say whether to look now: at the end of a response that calls tools."""
        if isinstance(event, ItemAdded) and is_call(event.item):
            self._has_called = True
        if not (self._has_called and isinstance(event, ResponseDone)):
            return False
        return self._now() - self._looked_at >= _LOOK_SECONDS

    async def look(self) -> None:
        """Look for the account; a database that is away says nothing about it."""
        self._has_called = False
        self._looked_at = self._now()
        if not self._user_id:
            return
        with suppress(Exception):
            user = await user_model(self._user_id)
            self._is_gone = user is None or user.role == _NOT_ADMITTED

    def spent(self, _usages: Sequence[Usage], _output: Sequence[Item]) -> str:
        """Return why the run ends, or nothing."""
        return _NO_ACCOUNT if self._is_gone else ""


_LOOK_SECONDS = 1.0
_NOT_ADMITTED = "pending"
"""The host's role of an account that an administrator has switched off."""
_NO_ACCOUNT = "This answer ended, because its user account is gone, or may not sign in."


def event_words(event: RunEvent) -> EventWords:
    """Return what the filter gets to know of an event."""
    match event:
        case TextDelta(kind="text" | "refusal"):
            return EventWords("text")
        case Status() if event.tried:
            return EventWords("recovery")
        case Status():
            return EventWords("retry")
        case RunDone(ending, trace=trace):
            return EventWords("end", ending.kind, ending.code, trace.model)
    return EventWords()


_BYTES_PER_TOKEN = 4
"""About so many, in English. Of other scripts a letter has more bytes, and tokens."""
_UNREAD_FIELDS = frozenset({"encrypted_content", "file_data", "image_url"})
"""Fields of pictures and files, and of reasoning, of which no one knows the tokens."""
_TEXT_FILES = ("data:text/", "data:application/json")


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _count_bytes(sent: object, unread: Set[str] = _UNREAD_FIELDS) -> int:
    """Return about how much text the model reads in a JSON value, names left out."""
    count = 0
    left = [sent]
    while left:
        part = left.pop()
        if isinstance(part, str):
            count += _byte_length(part)
        elif isinstance(part, Mapping):
            for name, inner in part.items():
                if name not in unread or not isinstance(inner, str):
                    left.append(inner)
                elif inner.startswith(_TEXT_FILES):
                    count += len(inner) * 3 // 4  # of base64
        elif isinstance(part, Sequence):
            left += part
    return count


class _RunCounts:
    """Counts the responses of a run.

    The API reports no usage of a response that is stopped or fails, so it is estimated:
    its input from the response before it, which the same run sent again with the outputs
    of tools, or from the texts; its output from the texts. Hidden reasoning is not known.
    """

    def __init__(self, prepared: Prepared, account: CallAccount) -> None:
        self._prepared = prepared
        self._account = account
        self._counted = 0
        """Responses whose usage was counted."""
        self._last = Usage()
        """That of the last of them."""
        self._containers = set[str]()
        """The ids of the containers of code that were counted."""
        self._bytes: int | None = 0
        """The text received of the current response, 1 once it makes anything else; None
        between two responses."""
        self._tool_bytes = 0
        """Those that tools returned to the current response."""
        self._hosted: dict[int, Item] = {}
        """What OpenAI's tools make, or have made, in the current response."""

    def told_by(self, limits: Limits) -> Limits:
        """Return the limits of the run, which tell of its responses here, too."""

        def spent(usages: Sequence[Usage], output: Sequence[Item]) -> str:
            return self.add(usages, output) or limits.count_response(usages, output)

        def wait(is_waiting: bool) -> None:
            # The input of a response is billed while it is waited for. What came of it is
            # counted before anything else takes the time.
            self._bytes = (self._bytes or 0) if is_waiting else None
            limits.set_waiting(is_waiting)

        return limits._replace(count_response=spent, set_waiting=wait)

    def add(self, usages: Sequence[Usage], output: Sequence[Item] = ()) -> str:
        """Count the responses that are new; return why the run ends, or nothing.

        One that failed, or whose server reports no usage, counts if any text came, or
        if one of OpenAI's tools began. A count of zero is none that is reported.
        """
        new = list(usages[self._counted :])
        self._counted = len(usages)
        if self._bytes:
            estimate = self._estimate(self._bytes)
            if new:
                last = new.pop()
                estimate = last._replace(
                    input=last.input or estimate.input,
                    output=last.output or estimate.output,
                )
            else:
                output = list(self._hosted.values())
            new.append(estimate)
        return self._count(new, output)

    def _count(self, new: Sequence[Usage], output: Sequence[Item]) -> str:
        """Count responses with their output; return why the run ends, or nothing."""
        prepared = self._prepared
        if prepared.cost_of(new) is None:
            # Of a tier that has no price, the standard one counts: a limit in money must
            # not take it for nothing.
            new = [usage._replace(tier="default") for usage in new]
        if new:
            self._last = new[-1]
        self._bytes = None
        self._tool_bytes = 0
        self._hosted = {}
        # A container is paid for once, however often code runs in it.
        unpaid: list[Item] = []
        for item in output:
            if item.get("container_id") not in self._containers:
                unpaid.append(item)
        self._containers.update(container_ids(unpaid))
        cost = prepared.cost_of(new, unpaid)
        dollars = cost.dollars if cost else None
        bought = NO_PURCHASES
        if self._account.limits.is_counting:
            bought = itemize(prepared, new, unpaid, dollars)
        counts = ResponseCounts(
            requests=len(new),
            input=sum(usage.input for usage in new),
            cached=sum(usage.cached for usage in new),
            output=sum(usage.output for usage in new),
            bought=bought,
        )
        return self._account.count_responses(prepared.request.model, counts, dollars)

    async def watch(self, events: RunEvents) -> RunEvents:
        """Yield the events; count a response that is stopped before its end."""
        try:
            async with aclosing(events):
                async for event in events:
                    self._note(event)
                    yield event
        finally:
            if self._bytes is not None:
                # What OpenAI's tools did until then is billed all the same.
                used = list(self._hosted.values())
                self._count([self._estimate(self._bytes)], used)

    def _note(self, event: RunEvent) -> None:
        """Note what an event brings of the current response."""
        match event:
            case TextDelta():
                self._bytes = (self._bytes or 0) + _byte_length(event.text)
            case ItemAdded() if maker_of(event.item).type:
                self._bytes = self._bytes or 1
                # A search, and a container, cost from their beginning; a picture once
                # something of it is there.
                if not is_image_call(event.item):
                    self._hosted[event.output_index] = event.item
            case PartialImage():
                drawing: Item = {"type": "image_generation_call"}
                for tool in self._prepared.request.tools or ():
                    if tool.get("type") == "image_generation":
                        drawing = {**tool, **drawing}  # its quality and size
                self._hosted.setdefault(event.output_index, drawing)
            case ItemDone() if maker_of(event.item).type:
                self._bytes = self._bytes or 1
                self._hosted[event.output_index] = event.item
            case ItemAdded() if not is_call(event.item):
                # It begins to think, maybe unseen. A call may be shown after its response.
                self._bytes = self._bytes or 1
            case ToolOutput():
                self._tool_bytes += _count_bytes(event.item.get("output"))

    def _estimate(self, received: int) -> Usage:
        """Return the usage of a response of which so many bytes of text came."""
        request = self._prepared.request
        sent = _count_bytes([request.instructions, request.input])
        # Of a tool all texts are read: a schema may have fields of any name.
        sent += _count_bytes(request.tools, unread=frozenset())
        last = self._last
        again = last.input + last.output + self._tool_bytes // _BYTES_PER_TOKEN
        return Usage(
            input=max(sent // _BYTES_PER_TOKEN, again),
            cached=last.cached,
            output=received // _BYTES_PER_TOKEN,
        )
