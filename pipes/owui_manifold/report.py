"""What the logs are told of a run."""

from collections.abc import Mapping
from dataclasses import replace

from openai_responses.audit import audit_error, audit_request, audit_success
from openai_responses.endings import api_word
from openai_responses.omissions import left_out
from openai_responses.run_events import Noted, RunEnded
from owui_manifold.accounts import ending_for
from owui_manifold.job import Asked, Job


def report_request(job: Job) -> None:
    """Write that a request is about to be sent; of what it says, nothing."""
    request, asked = job.request, job.asked
    asked.log.line(
        "DEBUG",
        f"request to {job.endpoint.host}: {request.model}, "
        f"{len(request.input)} input items, {len(request.tools or ())} tools, "
        f"{'stream' if request.stream else 'no stream'}, "
        f"{'background, ' if request.background else ''}"
        f"{'kept' if job.store else 'not kept'}, "
        f"{'native events' if asked.caller.host_reads else 'chunks'}",
    )
    if missing := _missing(job):
        told = "left out, not known to the API or not taken by the model: "
        asked.log.line("DEBUG", told + ", ".join(missing))
    if asked.valves.writes_audit_log():
        payload = request.payload()
        asked.log.audit(audit_request(payload, job.endpoint.host, asked.log.run_id))


def report_note(job: Job, note: Noted) -> None:
    """Write what was done to get an answer after all."""
    job.asked.log.line("WARNING", note.sentence)


def report_unstored(job: Job) -> None:
    """Write that later turns will miss something; the answer itself is whole."""
    job.asked.log.line(
        "WARNING",
        "Open WebUI refused to store the items that this chat does not show: later "
        "turns go on without them. Its database may be locked or full.",
    )


def report_end(job: Job, ended: RunEnded) -> RunEnded:
    """Write how a run ended; return it with the id of a failure in its sentence."""
    asked, trace = job.asked, ended.trace
    if asked.valves.writes_audit_log():
        asked.log.audit(_audit_end(job, ended))
    _report_removals(asked, trace.removed)
    if not ended.ending.is_failure:
        used = f", {ended.usage.total} tokens" if ended.usage else ""
        asked.log.line("DEBUG", f"completed{used}, request id {trace.request_id}")
        return ended
    error = trace.error
    words = (api_word(word) for word in (error.code, error.type, error.param))
    code, kind, param = words
    asked.log.line(
        "WARNING",
        f"{ended.ending.kind}: HTTP {trace.status}, code {code}, type {kind}, "
        f"param {param}, request id {trace.request_id}",
    )
    ending = ending_for(asked, ended.ending, trace.status)
    sentence = with_error_id(asked, ending.sentence)
    return replace(ended, ending=replace(ending, sentence=sentence))


def report_refusal(asked: Asked, sentence: str) -> str:
    """Write why nothing was sent; return the sentence with its id."""
    asked.log.line("WARNING", f"nothing was sent: {sentence}")
    return with_error_id(asked, sentence)


def with_error_id(asked: Asked, sentence: str) -> str:
    """Return a sentence with the id under which the log has the lines of the run."""
    return f"{sentence} (Error id: {asked.log.run_id})"


def _missing(job: Job) -> list[str]:
    """Return what the caller or the user chose in vain; a title has nothing of it."""
    own, body = job.asked.user_valves, job.asked.body
    if job.asked.caller.task:
        return []
    words = {"reasoning_effort": own.REASONING_EFFORT, "verbosity": own.VERBOSITY}
    chosen = {name: word for name, word in words.items() if word != "inherit"}
    return left_out({**chosen, **body}, job.request)


def _report_removals(asked: Asked, removed: Mapping[str, int]) -> None:
    """Write what the API took out of the input; past turns may be meant to leave."""
    if removed:
        meant = removed.keys() <= {"turn_boundary"}
        counts = ", ".join(f"{count} {reason}" for reason, count in removed.items())
        told = f"the API left out earlier reasoning of the input: {counts}"
        asked.log.line("DEBUG" if meant else "WARNING", told)


def _audit_end(job: Job, ended: RunEnded) -> str:
    payload, host = job.request.payload(), job.endpoint.host
    trace, run_id = ended.trace, job.asked.log.run_id
    if ended.ending.kind in ("completed", "incomplete"):
        return audit_success(payload, host, run_id, {"model": trace.model})
    return audit_error(payload, host, run_id, trace.error, trace.status)
