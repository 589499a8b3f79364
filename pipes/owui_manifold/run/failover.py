"""Answers a call at one of several endpoints, which the administration's filter has.

If one fails before its answer begins, the next one is tried. A chat stays at the endpoint
that can read its encrypted reasoning.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from openai_responses.items import is_encrypted
from openai_responses.loop.events import RunDone, Status
from openai_responses.requests.replay import Origin
from openai_responses.transport.connections import Connections
from owui_chat.events import AnswerEvent, AnswerReport, StoredRecord
from owui_manifold.call.context import Call
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import Prepared
from owui_manifold.run.answer import answer_events
from shells.administration import EndpointQueue


async def answer_with_failover(
    prepared: Prepared,
    endpoints: EndpointQueue,
    check: Callable[[], Awaitable[Call]],
    connections: Connections,
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the answer of the first endpoint that begins one; raises InvalidRequest.

    `prepared` is for the first of the `endpoints`; `check` returns the call for the one
    that the queue has chosen since.
    """
    # Which server and account wrote the last reasoning of the chat.
    origin: Origin | None = None
    for _, record in sorted(prepared.records.items()):  # ULIDs sort by time
        if any(is_encrypted(item) for item in record.payload):
            origin = record.origin
    if origin and endpoints.return_to(origin.endpoint, origin.account):
        prepared = await build_chat_request(await check())
    while True:
        if origin:
            notice = endpoints.lost_reasoning_notice(origin.endpoint, origin.account)
            if notice:
                yield Status(notice)
        # The answer of this endpoint, but not the end of one that failed at once. Its
        # records wait until it begins, so that those of a failure are not stored; a
        # status line is shown at once, and begins no answer.
        failure_notice = ""
        has_begun = False
        held: list[StoredRecord | AnswerReport] = []
        async with aclosing(answer_events(prepared, connections)) as events:
            async for event in events:
                if isinstance(event, RunDone) and not has_begun:
                    ending = event.ending
                    status = event.trace.status or 0  # 0: there was no HTTP answer
                    failure_notice = endpoints.mark_failed(
                        ending.kind, ending.code, status
                    )
                if failure_notice:
                    break
                if isinstance(event, StoredRecord | AnswerReport) and not has_begun:
                    held.append(event)
                    continue
                if not isinstance(event, Status):
                    has_begun = True
                    while held:
                        yield held.pop(0)
                yield event
        if not failure_notice:
            return
        yield Status(failure_notice)
        prepared = await build_chat_request(await check())
        prepared = prepared._replace(beginning="")  # it was shown
