"""The tools of the sandbox: descriptions for the model, calls, results.

The tools are offered only if a working sandbox was found.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

from sandbox.backend import SandboxBackend, SandboxLimits, SandboxUnavailable
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandbox.containers import ContainerBackend
from sandbox.processes import ChildProcess, start_process
from sandbox.runs import (
    PrivatePaths,
    RunStopped,
    Sandbox,
    SandboxReply,
    SandboxReplyMissing,
)
from sandbox.workspaces import (
    SandboxClosed,
    SandboxFile,
    Workspace,
    WorkspaceKey,
    Workspaces,
    printable_name,
    remove_folder,
)


class OfferedFile(NamedTuple):
    """A file that the user attached to the chat.

    `read` returns its content, or the message that says why there is none.
    """

    id: str
    name: str
    read: Callable[[], Awaitable[bytes | str]]


_MOST_OFFERED = 50
"""Attached files that a workspace receives."""
_MAX_NAME_BYTES = 240
"""A folder takes 255 in a name, and two files of one name get a number."""


class _SandboxCallFailed(Exception):
    """A call has no result; the text says why, for the model."""


_RUN_DESCRIPTION = (
    "Runs Python code in a sandbox without network. Each run is a fresh process: only "
    "files in the workspace, which is the current folder, outlive it. What the user "
    "attached is there, by name. Its modules can be imported{0}. Returns JSON with "
    "what was printed (stdout, stderr), the value of the last expression (result), and "
    "the files that were written, which the user is shown. The workspace is the folder "
    "/work. It lives as long as the chat is used and is shared by all tools whose names "
    "begin with python_ or sandbox_."
)
_CODE = {"code": {"type": "string", "description": "The Python code."}}
_PATH = {
    "path": {
        "type": "string",
        "description": "A path in the workspace, like plots/a.png.",
    }
}
_CONTENT = {
    "content": {"type": "string", "description": "The whole new text of the file."}
}
_TOOLS = {
    "python_execute": (_RUN_DESCRIPTION, _CODE),
    "sandbox_fs_list": ("Lists a folder of the workspace.", _PATH),
    "sandbox_fs_read": (
        "Reads a text file of the workspace; any other file is shown to the user.",
        _PATH,
    ),
    "sandbox_fs_write": (
        "Writes a text file in the workspace, with the folders above it.",
        {**_PATH, **_CONTENT},
    ),
    "sandbox_fs_mkdir": (
        "Makes a folder in the workspace, with those above it.",
        _PATH,
    ),
    "sandbox_fs_remove": (
        "Removes a file of the workspace, or a folder with all that it holds.",
        _PATH,
    ),
}
_NEEDED_TEXTS: Mapping[str, Mapping[str, Any]] = {
    **{name: properties for name, (_, properties) in _TOOLS.items()},
    # What can be called although `specs` does not offer it: its caller describes it.
    "shell_execute": {"command": {}},
    "sandbox_fs_edit": {**_PATH, "old": {}, "new": {}},
}
"""The arguments of each tool, which are all texts."""
_RUN_OPERATIONS = {"python_execute": "run", "shell_execute": "shell"}


_STOP_MESSAGES = {
    "seconds": "The code was stopped: it did not end within {0.seconds:g} s.",
    "output": "The code was stopped: it printed more than {0.output} bytes.",
}


class SandboxResult(NamedTuple):
    """The answer of a tool: a text for the model, files for the host to store."""

    text: str
    failed: bool = False
    files: tuple[SandboxFile, ...] = ()


def _build_sandbox_result(
    reply: SandboxReply, files: tuple[SandboxFile, ...], limits: SandboxLimits
) -> SandboxResult:
    """Return the tool's answer for a reply; raises _SandboxCallFailed."""
    answer = reply.answer
    notes = " ".join(_list_notes(answer, limits))
    match answer:
        case {"refused": str(reason)}:
            raise _SandboxCallFailed(reason)
        case {"damaged": "full"}:
            raise _SandboxCallFailed(
                "The files of this chat no longer fit into the workspace, because an "
                "administrator has lowered its limits. It is empty now. Call again."
            )
        case {"damaged": _}:
            raise _SandboxCallFailed(
                "An earlier run damaged the workspace, which is empty now. Call again."
            )
        case {"stdout": _, "stderr": _, "result": _, "status": int(status)}:
            failed = bool(status or answer.get("stopped"))
            text = _describe_run(reply, notes, limits, failed=failed)
            return SandboxResult(text, failed, files)
        case {"listed": list(listed)}:
            return SandboxResult(f"{_dump_json(listed)} {notes}".strip())
        case {"text": str(text)}:
            return SandboxResult(f"{text}\n\n{notes}" if notes else text)
        case {"given": _, "size": size}:
            text = "It is not text, and files of a cache are not given to the user."
            if files:
                text = f"It is not text; the user gets the file of {size} bytes."
            return SandboxResult(text, files=files)
        case {"done": str(done)}:
            failed = "unkept" in answer
            return SandboxResult(notes if failed else done, failed)
    raise _SandboxCallFailed("The sandbox returned an invalid answer.")


_LONGER_RESULT = 100
"""Characters by which a result may be longer than an output: a name, and three dots."""


def _describe_run(
    reply: SandboxReply, notes: str, limits: SandboxLimits, *, failed: bool
) -> str:
    """Return what the model reads of a run, as JSON.

    By the `status` Open WebUI's pipes see that a run failed, and draw no green tick.
    """
    answer = reply.answer
    # The program writes the value of the last expression as JSON, or its repr.
    value = None
    result = str(answer["result"] or "null")
    if len(result) > limits.output + _LONGER_RESULT:  # code has taken the program over
        result = "null"
    with suppress(ValueError, RecursionError):
        written = json.loads(result)
        if isinstance(written, dict):
            value = written.get("json", written.get("repr"))
    report: dict[str, Any] = {"status": "failed"} if failed else {}
    report |= {
        "stdout": answer["stdout"],
        "stderr": answer["stderr"],
        "result": value,
        "files": [part.name for part in reply.changed],
    }
    if notes:
        report["note"] = notes
    return _dump_json(report)


def _list_notes(answer: Mapping[str, Any], limits: SandboxLimits) -> Iterator[str]:
    """Yield a message for each unexpected event."""
    stopped = answer.get("stopped")
    if stopped:
        yield _STOP_MESSAGES.get(str(stopped), "The code was stopped.").format(limits)
    status = answer.get("status")
    if isinstance(status, int) and status < 0:
        yield f"The code was ended by signal {-status}."
    if "unkept" in answer:
        yield (
            f"Nothing in the workspace was kept, because {answer['unkept']}: it is as "
            "it was before."
        )
    dropped = answer.get("dropped")
    if dropped:
        yield f"Neither files nor folders, and not kept: {_dump_json(dropped)}."
    if answer.get("whole") is False:
        yield f"[The file continues: it has {answer.get('size')} bytes.]"
    unlisted = answer.get("more")
    if unlisted:
        yield f"{unlisted} more are not listed."
    hidden = answer.get("not_shown")
    if hidden:
        yield f"{hidden} more files are not shown."


def _make_storable(text: str) -> str:
    """Return a text without halves of characters, which no server stores or sends.

    Names of files and values of code may have them.
    """
    return text.encode("utf-8", "replace").decode()


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_PROBE_PAUSE_SECONDS = 300.0
"""Each search takes a second or two, for which a question waits."""
_CONTAINER_IMAGE = "python:3.12-slim"


def list_backends(packages: str) -> Iterator[SandboxBackend]:
    """Yield the backends in the order in which they are tried."""
    for python in find_interpreters():
        yield BubblewrapBackend(python, packages)
    for client in ("docker", "podman"):
        yield ContainerBackend(client, _CONTAINER_IMAGE, packages)


class SandboxTools:
    """The tools of one server, with one setting of their limits.

    `problems` says why there is no sandbox, or what it lacks, for an administrator.
    """

    def __init__(
        self,
        workspaces: Workspaces,
        limits: SandboxLimits | None = None,
        wheels: str = "",
        log: Callable[[str], object] = lambda _line: None,
        make_backends: Callable[[str], Iterable[SandboxBackend]] = list_backends,
        private: PrivatePaths | None = None,
    ) -> None:
        """`workspaces` outlive these tools.

        `wheels` is the folder of packages that code can import, if there is one. A
        sandbox in which code could see any of the `private` paths is not used.
        """
        self.missing = ""
        """What the server lacks for a sandbox, once that is known."""
        self._workspaces = workspaces
        self._limits = limits or SandboxLimits()
        self._wheels = wheels
        self._log = log
        self._make_backends = make_backends
        self._private = private or {}
        self._packages = ""
        self._packages_folder: Path | None = None
        self._problems: dict[str, str] = {}
        """By what they are about: the wheels, or the sandbox."""
        self._probe_lock = asyncio.Lock()
        self._next_probe = 0.0
        """When a sandbox is looked for, by the event loop's clock."""
        self._sandbox: Sandbox | None = None
        self._compiling: list[ChildProcess] = []
        self._is_closed = False

    async def specs(self) -> list[dict[str, Any]]:
        """Return the tools' descriptions; none without a sandbox.

        The first call looks for a sandbox, and if there is none, a call some minutes
        later; the log says once why.
        """
        if await self._find_sandbox() is None:
            return []
        specs: list[dict[str, Any]] = []
        for name, (about, properties) in _TOOLS.items():
            parameters = {
                "type": "object",
                "properties": dict(properties),
                "required": list(properties),
                "additionalProperties": False,
            }
            description = about.format(self._packages)
            specs.append(
                {"name": name, "description": description, "parameters": parameters}
            )
        return specs

    @property
    def problems(self) -> list[str]:
        """What is wrong with the sandbox and its packages, as far as it is known."""
        return list(self._problems.values())

    @property
    def max_file_bytes(self) -> int:
        """The largest file that a workspace can receive."""
        return self._limits.file

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat still has its workspace."""
        return self._workspaces.has_workspace(key)

    async def call(
        self, key: WorkspaceKey, name: str, arguments: Mapping[str, Any]
    ) -> SandboxResult:
        """Run a tool; cancelling the call ends the run."""

        async def work(sandbox: Sandbox, workspace: Workspace) -> SandboxResult:
            if name not in _NEEDED_TEXTS:
                raise _SandboxCallFailed(f"There is no tool named {name}.")
            request = {needed: arguments.get(needed) for needed in _NEEDED_TEXTS[name]}
            for needed, value in request.items():
                if not isinstance(value, str):
                    raise _SandboxCallFailed(f"{name} needs {needed}, a text.")
            operation = _RUN_OPERATIONS.get(name, name.removeprefix("sandbox_fs_"))
            request["operation"] = operation
            return await self._run(sandbox, request, workspace, key.user)

        return await self._answer(key, work)

    async def receive(
        self, key: WorkspaceKey, files: Sequence[OfferedFile]
    ) -> list[str]:
        """Put files into the workspace, each once.

        Returns what the model has to know: which are missing, or have another name. A
        chat can name any number of files, and each that is new takes a run: only the
        last ones count.
        """
        if not files:
            return []
        if not key.chat:  # this workspace would not be that of the call
            return [
                "Attached files are not in the workspace, because this call belongs to "
                "no chat."
            ]
        notes: list[str] = []
        if len(files) > _MOST_OFFERED:
            notes.append(
                f"Only the last {_MOST_OFFERED} of {len(files)} attached files are in "
                "the workspace."
            )

        async def work(sandbox: Sandbox, workspace: Workspace) -> SandboxResult:
            for file in files[-_MOST_OFFERED:]:
                if file.id in workspace.received:
                    continue
                try:
                    name = await self._receive_file(sandbox, workspace, key.user, file)
                    if name != file.name:
                        notes.append(
                            f"The attached {file.name} is named {name} in the "
                            "workspace."
                        )
                except _SandboxCallFailed as error:
                    notes.append(f"{file.name} is not in the workspace. {error}")
            return SandboxResult("")

        result = await self._answer(key, work)
        if result.failed:
            notes.append(f"Attached files are not in the workspace. {result.text}")
        return [_make_storable(line) for line in notes]

    async def _receive_file(
        self,
        sandbox: Sandbox,
        workspace: Workspace,
        user: str,
        file: OfferedFile,
    ) -> str:
        """Put a file into the workspace; return its name there, which may be another.

        Raises _SandboxCallFailed.
        """
        path = printable_name(file.name)[-80:]
        path = path.encode()[-_MAX_NAME_BYTES:].decode("utf-8", "ignore")
        async with self._workspaces.runs.hold_file(user):
            content = await file.read()
            if isinstance(content, str):
                raise _SandboxCallFailed(content)
            request = {
                "operation": "receive",
                "path": path,
                "size": len(content),
                "id": file.id,
            }
            name, failed, _ = await self._run(
                sandbox, request, workspace, user, content
            )
        if failed:
            raise _SandboxCallFailed(name)
        return name

    async def _answer(
        self,
        key: WorkspaceKey,
        work: Callable[[Sandbox, Workspace], Awaitable[SandboxResult]],
    ) -> SandboxResult:
        """Do some work in a workspace; what stops it is the result, for the model."""
        try:
            sandbox = await self._find_sandbox()
            if sandbox is None:
                raise _SandboxCallFailed("There is no sandbox on this server.")
            place = self._workspaces.runs.take_place(key.user)
            async with place, self._workspaces.acquire(key) as workspace:
                return await work(sandbox, workspace)
        except _SandboxCallFailed as error:
            reason = str(error)
        except SandboxClosed:
            reason = "The sandbox was closed."
        except RunStopped as stopped:
            reason = (
                f"The run was stopped, because {stopped}. The workspace is as it was."
            )
        except (SandboxUnavailable, SandboxReplyMissing, OSError) as error:
            self._log(f"A run in the sandbox gave no answer: {error}")
            reason = "The run ended without an answer."
        return SandboxResult(_make_storable(f"Error: {reason}"), failed=True)

    async def close(self) -> None:
        """End what runs, and remove the packages."""
        self._is_closed = True
        for process in self._compiling:
            process.kill_group()
            await process.wait()
        if self._sandbox is not None:
            await self._sandbox.stop()
        if self._packages_folder is not None:
            remove_folder(self._packages_folder)

    async def _run(
        self,
        sandbox: Sandbox,
        request: dict[str, Any],
        workspace: Workspace,
        user: str,
        content: bytes = b"",
    ) -> SandboxResult:
        """Run a request in its turn, keep the new workspace.

        Raises SandboxClosed, and what `Sandbox.run` does.
        """
        async with self._workspaces.runs.take_turn(user):
            if self._is_closed:
                raise SandboxClosed
            with workspace.open_spool() as spool:
                reply = await sandbox.run(request, workspace.archive, spool, content)
                # The user gets the files that a run wrote, or the one that was read.
                returns_files = not reply.answer.keys().isdisjoint(("stdout", "given"))
                returned = reply.changed if returns_files else ()
                copying = asyncio.create_task(
                    asyncio.to_thread(
                        workspace.export_files, spool, returned, self._limits.disk
                    )
                )
                try:
                    files = await asyncio.shield(copying)
                finally:  # the thread of a cancelled call still reads the spool
                    await asyncio.wait({copying})
                workspace.store_archive(spool, reply)
                if "id" in request and reply.archive is not None:
                    workspace.add_received(request["id"])
                if "damaged" in reply.answer:
                    workspace.clear()
                    workspace.received.clear()
                result = _build_sandbox_result(reply, files, self._limits)
                return result._replace(text=_make_storable(result.text))

    async def _find_sandbox(self) -> Sandbox | None:
        """Return the sandbox, which the first call looks for; None without one.

        A server may be short of processes, or restart its daemon of containers, at the
        moment of that call. So what was not found is looked for again.
        """
        loop = asyncio.get_running_loop()
        async with self._probe_lock:
            is_due = self._sandbox is None and loop.time() >= self._next_probe
            if is_due and not self._is_closed:
                await self._install_packages()
                backends = self._make_backends(str(self._packages_folder or ""))
                of_no_chat = WorkspaceKey("", "")
                async with self._workspaces.acquire(of_no_chat) as workspace:
                    with workspace.open_spool() as spool:
                        self._sandbox = await self._probe_backends(backends, spool)
                self._next_probe = loop.time() + _PROBE_PAUSE_SECONDS
        return self._sandbox

    async def _install_packages(self) -> None:
        """Install the packages, once; the first use has to wait for it."""
        if self._packages_folder is not None or not self._wheels:
            return
        try:
            folder = await self._workspaces.install(Path(self._wheels))
        except (OSError, BadZipFile) as error:
            problem = f"The wheels of SANDBOX_OPTIONS cannot be installed: {error}"
            self._report("wheels", problem)
            return
        self._problems.pop("wheels", None)
        self._packages_folder = folder
        packages = sorted(
            path.name.partition("-")[0] for path in folder.glob("*.dist-info")
        )
        self._packages = f", also the packages {', '.join(packages)[:1000]}"
        for python in find_interpreters():
            command = (str(python), "-I", "-m", "compileall", "-qq", str(folder))
            self._compiling.append(await start_process(*command, env={}))

    async def _probe_backends(
        self, backends: Iterable[SandboxBackend], spool: Path
    ) -> Sandbox | None:
        """Return the first sandbox that confines; log the reasons if there is none."""
        reasons = []
        missing_parts: dict[str, None] = {}
        for backend in backends:
            sandbox = Sandbox(backend, self._limits)
            try:
                await sandbox.check_confinement(spool, self._private)
                self._problems.pop("sandbox", None)
                self.missing = ""
                return sandbox
            except SandboxUnavailable as missing:
                reasons.append(f"{backend.name}: {missing}")
                missing_parts[str(missing)] = None
        self.missing = "; ".join(missing_parts)
        why = "; ".join(reasons)
        self._report("sandbox", f"The tools of the sandbox are not offered: {why}.")
        return None

    def _report(self, about: str, problem: str) -> None:
        """Tell an administrator, above an answer, and once in the log."""
        if self._problems.get(about) != problem:
            self._log(problem)
        self._problems[about] = problem
