"""Reports how an answer ended, to people and to the log, for pipe and agents."""

import re

from openai_responses.endings import Ending, api_word
from openai_responses.errors import ResponsesError
from openai_responses.loop.events import RunDone, Trace
from openai_responses.redaction import describe_exception, redact_beginning
from shells.answer_log import AnswerLog, LogLevel
from shells.valve_messages import Shell, advised_ending, error_message
from shells.valve_texts import without_known_keys

_NOTHING_SENT = "nothing was sent: {}"


def report_exception(
    log: AnswerLog,
    error: Exception,
    shell: Shell,
    *,
    is_admin: bool,
    is_task: bool = False,
) -> str:
    """Log why there is no answer; return the message to show, with its error id.

    The answer of a chat has warned of what its title is refused for, too.
    """
    if isinstance(error, ResponsesError):
        message = error_message(error, shell)
        level: LogLevel = "INFO" if is_task else "WARNING"
        log.line(level, _NOTHING_SENT.format(message))
    else:
        message = (
            f"Something in this {shell.noun} went wrong. Try again; if the problem "
            "persists, give an administrator the error id."
        )
        log.line("ERROR", describe_exception(error))
    return with_error_id(log, message if is_admin else without_known_keys(message))


def report_run(
    log: AnswerLog,
    ended: RunDone,
    shell: Shell,
    *,
    is_admin: bool,
    model: str = "",
    message: str = "",
) -> RunDone:
    """Log how a run ended; return it, a failure with the message to show.

    `model` was asked. Administrators also see what the server said. `message` replaces
    the ending's own.
    """
    trace = ended.trace
    if trace.removed:
        counts = [f"{count} {reason}" for reason, count in trace.removed.items()]
        level: LogLevel = "WARNING" if has_unasked_removals(trace) else "DEBUG"
        text = f"the API left out earlier reasoning of the input: {', '.join(counts)}"
        log.line(level, text)
    if trace.skipped:
        # Nothing of them is quoted. Proxies send some on purpose, to keep a connection
        # alive.
        counts = [f"{count} {kind}" for kind, count in trace.skipped.items()]
        log.note(
            f"left out events of the stream that cannot be read: {', '.join(counts)}"
        )
    if ended.ending.is_failure:
        ending = _report_failure(
            log, ended, shell, is_admin=is_admin, model=model, message=message
        )
        return ended._replace(ending=ending)
    used = f", {ended.usage.total} tokens" if ended.usage else ""
    log.line("DEBUG", f"completed{used}, request id {trace.request_id}")
    return ended


def has_unasked_removals(trace: Trace) -> bool:
    """Say whether the API left out items of the input that it should have read.

    With the reason `turn_boundary` it only drops the reasoning of past turns, as
    documented.
    """
    return not trace.removed.keys() <= {"turn_boundary"}


def _report_failure(
    log: AnswerLog,
    ended: RunDone,
    shell: Shell,
    *,
    is_admin: bool,
    model: str,
    message: str,
) -> Ending:
    """Log how a run failed; return its ending with the message to show."""
    trace = ended.trace
    error = trace.error
    # The ids by which OpenAI's support finds an answer. After a safety stop the notice
    # names a `review_target`.
    notice = error.notice
    is_id = _REVIEW_ID.fullmatch(notice.review_target)
    facts = {
        "model": model,
        "HTTP": trace.status,
        "code": api_word(error.code or ended.ending.code),
        "type": api_word(error.type),
        "param": api_word(error.param),
        "request id": trace.request_id,
        "response id": trace.response_id,
        "review target": notice.review_target if is_id else "",
        "category": api_word(notice.category),
    }
    known = ", ".join(f"{name} {fact}" for name, fact in facts.items() if fact)
    answer = server_message(log, f"{trace.subject} {error.message}")
    # Without an answer, our own message is all that says why.
    is_unreachable = ended.ending.kind == "unreachable"
    cause = ended.ending.message if is_unreachable or not answer else answer
    ending = advised_ending(ended.ending, shell)
    if ending.kind == "invalid":
        log.warn(_NOTHING_SENT.format(ending.message))
    else:
        log.warn(f"{ending.kind}: {known}. {cause}")
    shown = message or ending.message
    shown = with_error_id(log, shown if is_admin else without_known_keys(shown))
    if is_admin:
        shown = f"{shown} {answer}".strip()
    return ending._replace(message=shown)


_REVIEW_ID = re.compile(r"[\w.:-]{1,200}")
_MAX_SHOWN_TEXT = 500
_MAX_READ_TEXT = 5000


def server_message(log: AnswerLog, text: str) -> str:
    """Return what the server said, redacted and short, for administrators."""
    words = redact_beginning(text, _MAX_READ_TEXT, log.redacted_words)
    shown = words[:_MAX_SHOWN_TEXT]
    return f"The model's server said: {shown}" if shown else ""


def with_error_id(log: AnswerLog, message: str) -> str:
    """Return a message with the id by which an administrator finds it in the log."""
    return f"{message} (Error id: {log.run_id})"
