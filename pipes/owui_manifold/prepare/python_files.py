"""The files of a chat that code gets: they are in its container at the first call.

They are chosen here, with the rights of the current user; `run/uploads.py` uploads them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from openai_responses.errors import InvalidRequest
from openai_responses.requests.containers import MAX_CONTAINER_FILES
from owui_chat.file_names import shorten_name
from owui_chat.input.attachments import GONE_FILE, question_index
from owui_chat.messages import Attachment, ChatPart, UserMessage, user_messages
from owui_host.files import StoredFile, readable_file
from owui_host.users import HostUser

MAX_FILE_BYTES = 64 * 1024**2
MAX_TOTAL_BYTES = 256 * 1024**2
"""The API takes 512 MB for a file; each is in memory while it is uploaded."""

_LARGER_FILE = f"larger than {MAX_FILE_BYTES // 1024**2} MB"
_LARGER_TOTAL = f"all files together exceed {MAX_TOTAL_BYTES // 1024**2} MB"
_MORE_FILES = f"Python gets at most {MAX_CONTAINER_FILES} files"


class PythonFile(NamedTuple):
    """A file of the chat, and its name in the container."""

    file_id: str
    stored: StoredFile
    name: str


class PythonFiles(NamedTuple):
    """The files that code gets, and the line about those that it does not."""

    files: Sequence[PythonFile] = ()
    notice: str = ""


async def choose_python_files(
    parts: Sequence[ChatPart], user: HostUser | None
) -> PythonFiles:
    """Return the files of a chat for its code, in their order, each once.

    Raises InvalidRequest for one at the message that is asked which `user` may not
    read; one at an earlier message is left out.
    """
    files: dict[str, PythonFile] = {}
    reasons: dict[str, str] = {}
    for attachment, is_asked in _attached_once(parts):
        stored = await readable_file(attachment.file_id, user)
        if stored is None:
            # An image the host itself puts into the message, or says that it is gone.
            if is_asked and not attachment.is_image:
                raise InvalidRequest(GONE_FILE.format(attachment.name))
            continue
        chosen = list(files.values())
        reason = _reason_against(stored, chosen)
        if reason:
            reasons[attachment.name or stored.name] = reason
        else:
            name = _unique_name(attachment, stored, [file.name for file in chosen])
            files[attachment.file_id] = PythonFile(attachment.file_id, stored, name)
    notice = ""
    if reasons:
        listed = [f"{name} ({reason})" for name, reason in reasons.items()]
        notice = f"Not copied to Python: {', '.join(listed)}."
    return PythonFiles(tuple(files.values()), notice)


def _attached_once(parts: Sequence[ChatPart]) -> Iterator[tuple[Attachment, bool]]:
    """Yield each file of a chat once, and whether it is at the message that is asked."""
    question = question_index(parts)
    seen = set[str]()
    for index, message in user_messages(parts).items():
        for attachment in message.attachments:
            if attachment.file_id not in seen:
                seen.add(attachment.file_id)
                yield attachment, index == question


def name_python_files(
    parts: Sequence[ChatPart], files: Sequence[PythonFile], *, at_question_only: bool
) -> list[ChatPart]:
    """Return a chat whose question says which files the code has.

    In a chat with a row, what a question said is stored with it and sent again. Without
    a row, each message says it again: it names the files up to it.
    """
    result = list(parts)
    names = {file.file_id: file.name for file in files}
    question = question_index(parts)
    named: list[str] = []
    for index, message in user_messages(parts).items():
        for attachment in message.attachments:
            name = names.get(attachment.file_id)
            if name and name not in named:
                named.append(name)
        if named and (index == question or not at_question_only):
            result[index] = _with_note(message, named)
    return result


def _with_note(message: UserMessage, names: Sequence[str]) -> UserMessage:
    """Return a message that begins with the names of the files in the container.

    The API puts an id in front of some names (`container.file.path` in its reference).
    """
    text = (
        f"[Files in the folder /mnt/data of the python tool: {', '.join(names)}. An id "
        "may stand in front of a name there.]"
    )
    note = {"type": "input_text", "text": text}
    return message.with_content([note, *message.content])


def _reason_against(stored: StoredFile, chosen: Sequence[PythonFile]) -> str:
    """Return why a file is not copied; empty if it is."""
    if stored.size > MAX_FILE_BYTES:
        return _LARGER_FILE
    if len(chosen) >= MAX_CONTAINER_FILES:
        return _MORE_FILES
    total = stored.size + sum(file.stored.size for file in chosen)
    return _LARGER_TOTAL if total > MAX_TOTAL_BYTES else ""


def _unique_name(
    attachment: Attachment, stored: StoredFile, taken: Sequence[str]
) -> str:
    """Return the name of a file, with a number if another one has it."""
    path = (attachment.name or stored.name).replace("\\", "/")
    words = path.rpartition("/")[2].split()  # a line break could begin an instruction
    name = shorten_name(" ".join(words)) or "file"
    stem = name
    ending = ""
    dot_index = name.rfind(".")
    if dot_index > 0:
        stem = name[:dot_index]
        ending = name[dot_index:]
    number = 2
    unique = name
    while unique in taken:
        unique = f"{stem} ({number}){ending}"
        number += 1
    return unique
