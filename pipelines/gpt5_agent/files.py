"""Files that a tool names, read from one folder alone."""

import os
from os.path import commonpath, isabs, isfile, join, realpath

from openai_responses.errors import InvalidRequest

LARGEST_FILE = 5 * 1024 * 1024
_FILES_PREFIX = "/files"


def read_tool_file(path: str, root: str) -> bytes:
    """Return the bytes of a file; raises InvalidRequest for what may not be read.

    A tool names it as `/files/...`, which stands for `root`, or by its path in there.
    Neither `..` nor a link leads out. The size is looked at before and after, because
    a file may grow while it is read.
    """
    if not root.strip():
        raise InvalidRequest("files cannot be read here: FILES_ROOT is not set")
    try:
        with open(_real_path(path, realpath(root.strip())), "rb") as file:
            _check_size(os.fstat(file.fileno()).st_size)
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError):
        raise InvalidRequest("the file cannot be read") from None
    _check_size(len(content))
    return content


def _real_path(path: str, root: str) -> str:
    inside = path.removeprefix(f"{_FILES_PREFIX}/")
    found = realpath(join(root, inside) if inside != path else path)
    outside = not isabs(path) or commonpath((root, found)) != root
    if outside or not isfile(found):
        raise InvalidRequest(f"there is no such file below {_FILES_PREFIX}")
    return found


def _check_size(size: int) -> None:
    if size > LARGEST_FILE:
        raise InvalidRequest("the file is larger than 5 MB")
