"""How much a run in the sandbox may take."""

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one run; sizes are in bytes.

    `memory` is what all processes of a run hold together, `processes` counts threads
    as well. The workspace and the folder for temporary files have `disk` each, a
    single file at most `file`; a workspace keeps `files` files and folders. `output`
    holds for what is printed, for the result and for a file that is read. `returned`
    files of a run are handed out. `packages` is the room for installed dependencies.

    A chat's workspace is forgotten when it was not used for `idle_seconds`, or when
    `chats` others were used since.
    """

    seconds: float = 30.0
    memory: int = 512 * MEBIBYTE
    processes: int = 32
    disk: int = 64 * MEBIBYTE
    file: int = 32 * MEBIBYTE
    files: int = 1_000
    output: int = 50_000
    returned: int = 10
    packages: int = 512 * MEBIBYTE
    at_once: int = 4
    idle_seconds: float = 3600.0
    chats: int = 50
