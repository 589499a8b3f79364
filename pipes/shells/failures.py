"""What people and the log are told of an answer that failed, for pipe and agents."""

from openai_responses.errors import ResponsesError
from openai_responses.redaction import describe_exception
from shells.answer_log import AnswerLog
from shells.shell import Shell
from shells.valve_messages import error_message


def report_exception(log: AnswerLog, error: Exception, shell: Shell) -> str:
    """Log why there is no answer; return the message to show, with its error id."""
    if isinstance(error, ResponsesError):
        message = error_message(error, shell)
        log.warn(f"nothing was sent: {message}")
    else:
        message = (
            f"Something in this {shell.noun} went wrong. Try again; if the problem persists, give "
            "an administrator the error id."
        )
        log.line("ERROR", describe_exception(error))
    return with_error_id(log, message)


def with_error_id(log: AnswerLog, message: str) -> str:
    """Return a message with the id by which an administrator finds it in the log."""
    return f"{message} (Error id: {log.run_id})"
