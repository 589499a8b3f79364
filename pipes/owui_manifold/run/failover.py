"""Where a call is answered, if the filter of the administration has endpoints for it.

If one fails before its answer begins, the next one is asked. A chat stays where its
reasoning can be read.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from openai_responses.items import is_encrypted
from openai_responses.loop.events import RunDone, Status
from openai_responses.requests.replay import Origin
from openai_responses.transport.connections import Connections
from owui_chat.events import AnswerEvent, StoredRecord
from owui_manifold.call.context import CheckedCall
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import PreparedRequest
from owui_manifold.run.answer import answer_events
from shells.administration import EndpointQueue


async def answer_with_failover(
    prepared: PreparedRequest,
    endpoints: EndpointQueue,
    check: Callable[[], Awaitable[CheckedCall]],
    connections: Connections,
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the answer of the first endpoint that begins one; raises InvalidRequest.

    `prepared` is for the first of the `endpoints`; `check` returns the call at the one
    that is chosen then. A record waits for the next event: that of a failure is not stored.
    """
    begun = False
    home = _last_origin(prepared)
    if home and endpoints.return_to(home.endpoint, home.account):
        prepared = await build_chat_request(await check())
    while True:
        if home:
            loss = endpoints.lost_reasoning_notice(home.endpoint, home.account)
            if loss:
                yield Status(loss)
        held = list[AnswerEvent]()
        async with aclosing(answer_events(prepared, connections)) as events:
            async for event in events:
                if isinstance(event, RunDone) and not begun:
                    ending = event.ending
                    status = event.trace.status or 0
                    notice = endpoints.mark_failed(ending.kind, ending.code, status)
                    if notice:
                        break
                held.append(event)
                if not isinstance(event, StoredRecord):
                    begun = begun or not isinstance(event, Status)
                    for held_event in held:
                        yield held_event
                    held.clear()
            else:
                return
        yield Status(notice)
        prepared = await build_chat_request(await check())


def _last_origin(prepared: PreparedRequest) -> Origin | None:
    """Return who wrote the last reasoning of a chat."""
    records = prepared.records.values()
    made = [record for record in records if any(map(is_encrypted, record.payload))]
    if not made:
        return None
    return max(made, key=lambda record: record.ulid).origin
