"""The files of a chat that code gets: they are in its container at the first call.

They are chosen here, with the rights of the current user; `run/uploads.py` uploads them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from openai_responses.errors import InvalidRequest
from openai_responses.requests.containers import MAX_CONTAINER_FILES
from owui_chat.file_names import shorten_name
from owui_chat.input.attachments import GONE_FILE, asked_files, question_index
from owui_chat.messages import Attachment, ChatPart, user_messages
from owui_host.files import StoredFile
from owui_host.users import HostUser
from owui_manifold.prepare.files import attached_file

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


async def choose_python_files(
    parts: Sequence[ChatPart], user: HostUser | None
) -> tuple[list[PythonFile], str]:
    """Return the files of a chat for its code, and the notice about those left out.

    They are in the order of the chat, each once. Raises InvalidRequest for one at the
    message that is asked which `user` may not read; one at an earlier message is left
    out.
    """
    files: dict[str, PythonFile] = {}
    reasons: dict[str, str] = {}
    asked = {attachment.file_id for attachment in asked_files(parts)}
    attached: dict[str, Attachment] = {}
    for message in user_messages(parts).values():
        for attachment in message.attachments:
            attached.setdefault(attachment.file_id, attachment)
    for file_id, attachment in attached.items():
        stored = await attached_file(attachment, user)
        if stored is None:
            # An image the host itself puts into the message, or says that it is gone.
            if file_id in asked and not attachment.is_image:
                raise InvalidRequest(GONE_FILE.format(attachment.name))
            continue
        chosen = list(files.values())
        total = stored.size + sum(file.stored.size for file in chosen)
        name = attachment.name or stored.name
        if stored.size > MAX_FILE_BYTES:
            reasons[name] = _LARGER_FILE
        elif len(chosen) >= MAX_CONTAINER_FILES:
            reasons[name] = _MORE_FILES
        elif total > MAX_TOTAL_BYTES:
            reasons[name] = _LARGER_TOTAL
        else:
            unique = _unique_name(name, [file.name for file in chosen])
            files[file_id] = PythonFile(file_id, stored, unique)
    notice = ""
    if reasons:
        listed = [f"{name} ({reason})" for name, reason in reasons.items()]
        notice = f"Not copied to Python: {', '.join(listed)}."
    return list(files.values()), notice


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
            # The API puts an id in front of some names (`container.file.path` in its
            # reference).
            text = (
                "[Files in the folder /mnt/data of the python tool: "
                f"{', '.join(named)}. An id may stand in front of a name there.]"
            )
            note = {"type": "input_text", "text": text}
            result[index] = message.with_content([note, *message.content])
    return result


def _unique_name(path: str, taken: Sequence[str]) -> str:
    """Return the name of a file, with a number if another one has it."""
    path = path.replace("\\", "/")
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
