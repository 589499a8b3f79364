"""The forms of an answer: native events, chunks for plain clients, one whole result."""

from typing import Any

from manifold.http_failures import failed_answer, failure_headers
from manifold.views import client_view, page_result, whole_completion
from openai_responses.clock import monotonic_seconds
from openai_responses.loop.events import RunDone
from owui_chat.older_calls import in_older_form
from owui_chat.render.client_errors import ending_status
from owui_chat.render.completions import ChunkRenderer, has_failed
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_manifold.call.context import Caller
from owui_manifold.host.http_answers import failure_response


def stream_view(caller: Caller) -> NativeRenderer | ChunkRenderer:
    """Return what renders a stream for its reader: Open WebUI or a plain client."""
    if caller.has_page:
        # A channel shows no status lines.
        return page_view(has_status_lines=not caller.is_in_channel)
    return client_view(caller)


def page_view(*, has_status_lines: bool = True) -> NativeRenderer:
    """Return what renders an answer for Open WebUI."""
    return NativeRenderer(
        monotonic_seconds, HostedItems, has_status_lines=has_status_lines
    )


def whole_result(caller: Caller, ended: RunDone, view: NativeRenderer) -> Any:
    """Return the whole answer at once; Open WebUI also gets the output items.

    A program gets the status of a failure, and what there is of an answer with it.
    """
    if caller.is_open_webui:
        has_advice = bool(view.advice)
        return page_result(ended, caller.host_model, view, has_advice=has_advice)
    result = whole_completion(
        ended, caller.host_model, view.report, has_format=caller.wants_format
    )
    if caller.reads_older_calls:
        result = in_older_form(result)
    if not has_failed(ended.ending):
        return result
    return failed_answer(
        failure_response(), result, ending_status(ended), failure_headers(ended)
    )
