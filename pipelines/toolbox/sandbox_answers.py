"""What a model is told of a run in the sandbox."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbox.replies import SandboxReply
from toolbox.sandbox_limits import SandboxLimits
from toolbox.workspaces import SandboxFile

_STOP_SENTENCES = {
    "seconds": "The code was stopped: it did not end within {0.seconds:g} s.",
    "output": "The code was stopped: it printed more than {0.output} bytes.",
}


@dataclass(frozen=True, slots=True)
class SandboxAnswer:
    """The answer of a tool: a text for the model, files for the host to store."""

    text: str
    failed: bool = False
    files: tuple[SandboxFile, ...] = ()


def failed_in_sandbox(sentence: str) -> SandboxAnswer:
    """Return the answer of a call that came to nothing."""
    return SandboxAnswer(f"Error: {sentence}", failed=True)


def sandbox_answer(
    reply: SandboxReply, files: tuple[SandboxFile, ...], limits: SandboxLimits
) -> SandboxAnswer:
    """Return what to tell of an answer that came out of the sandbox."""
    answer = reply.answer
    notes = " ".join(_notes(answer, limits))
    match answer:
        case {"refused": str(reason)}:
            return failed_in_sandbox(reason)
        case {"damaged": _}:
            return failed_in_sandbox(
                "An earlier run damaged the workspace, which is empty now. Call again."
            )
        case {"stdout": _, "stderr": _, "result": _, "status": int(status)}:
            failed = bool(status or answer.get("stopped"))
            return SandboxAnswer(_told_of_run(reply, notes), failed, files)
        case {"listed": list(listed)}:
            return SandboxAnswer(f"{_json_text(listed)} {notes}".strip())
        case {"text": str(text)}:
            return SandboxAnswer(f"{text}\n\n{notes}" if notes else text)
        case {"given": _, "size": size}:
            told = f"It is no text; the user is shown the file of {size} bytes."
            return SandboxAnswer(told, files=files)
        case {"done": str(done)}:
            failed = "unkept" in answer
            return SandboxAnswer(notes if failed else done, failed)
    return failed_in_sandbox("The sandbox gave an answer that makes no sense.")


def _told_of_run(reply: SandboxReply, notes: str) -> str:
    answer = reply.answer
    told = {
        "stdout": answer["stdout"],
        "stderr": answer["stderr"],
        "result": _result_value(answer["result"]),
        "files": [part.name for part in reply.changed],
    }
    return _json_text({**told, "note": notes} if notes else told)


def _result_value(result: object) -> object:
    """Return the value of the last expression, or the text that stands for it."""
    try:
        wire = json.loads(str(result)) if result else {}
    except (ValueError, RecursionError):
        return None
    return wire.get("json", wire.get("repr")) if isinstance(wire, dict) else None


def _notes(answer: Mapping[str, Any], limits: SandboxLimits) -> Iterator[str]:
    """Yield a sentence for each thing that is not as one would expect."""
    if stopped := answer.get("stopped"):
        yield _STOP_SENTENCES.get(str(stopped), "The code was stopped.").format(limits)
    status = answer.get("status")
    if isinstance(status, int) and status < 0:
        yield f"The code was ended by signal {-status}."
    if "unkept" in answer:
        yield (
            f"Nothing was kept of the workspace, because {answer['unkept']}: it is as "
            "it was before."
        )
    if dropped := answer.get("dropped"):
        yield f"Neither files nor folders, and not kept: {_json_text(dropped)}."
    if answer.get("whole") is False:
        yield f"[The file goes on: it has {answer.get('size')} bytes.]"
    if more := answer.get("more") or answer.get("unlisted"):
        yield f"{more} more are not listed."


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
