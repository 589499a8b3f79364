"""Source text of the program that runs inside the sandbox.

It is text because it runs in another interpreter that has none of our modules. It reads
one JSON line with the operation, then the stored workspace, then the bytes of a file to
receive. It answers with one JSON line, then the new workspace if it may have changed.
What it answers is not trusted.

A workspace is a JSON line (kind, path, mode, size or link target of each entry, folders
before what is in them), then the bytes of the files. `unpack` restores it and returns
the stamps of its files. `Survey` reads the new one, and `changed` returns path, place in
the archive and size of each file whose stamp is another, except for what programs cache
for themselves (`CACHES`, bytecode): it is kept, but it is no result.

A `ChildJob` is a child process with three pipes: stdout, stderr, and `RESULT`. `wait`
returns the limit that it exceeds, or nothing. `finish` ends all processes but the first
and returns the child's status and outputs. `execute` runs the code like an interactive
shell: the value of a last expression is the result. It imports modules of the workspace
and of the packages that the server has installed.
"""

SANDBOX_PROGRAM = r'''"""What a run does inside the sandbox."""

import _ast
import errno
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from io import BufferedReader, BufferedWriter

WORK = "/work"
PACKAGES = "/packages"
CHUNK_BYTES = 1 << 18
MAX_PATH_BYTES = 1000
FULL = (errno.ENOSPC, errno.EFBIG)
MAX_DROPPED = 20
RESULT = 3
RESERVE_BYTES = 1 << 22
NO_MODULE = (
    "An administrator can add packages to the folder `wheels` of SANDBOX_OPTIONS."
)
NO_SPACE = "Remove files, or let an administrator raise `disk_mb` in SANDBOX_OPTIONS."
CACHES = frozenset(
    [
        ".cache",
        ".config",
        ".ipynb_checkpoints",
        ".local",
        ".matplotlib",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    ]
)
Stamp = tuple[int, int, int]


class Refused(Exception):
    """An operation is not done; the text says why."""


def unpack(source: BufferedReader) -> dict[str, Stamp]:
    stamps = {}
    for kind, path, mode, rest in json.loads(source.readline()):
        full_path = os.path.join(WORK, path)
        if kind == "folder":
            os.mkdir(full_path)
        elif kind == "link":
            os.symlink(rest, full_path)
        else:
            with open(full_path, "wb") as file:
                copy(source, file, rest)
            os.chmod(full_path, mode)
            stamps[path] = stamp(os.lstat(full_path))
    return stamps


def copy(source: BufferedReader, target: BufferedWriter, size: int) -> None:
    for done in range(0, size, CHUNK_BYTES):
        target.write(source.read(min(CHUNK_BYTES, size - done)))


def stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_ctime_ns


def kind_of(status: os.stat_result) -> str:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")


class Survey:
    """The contents of the workspace."""

    def __init__(self, limits: dict) -> None:
        self.limits = limits
        self.manifest: list[tuple] = []
        self.stamps: dict[str, Stamp] = {}
        self.dropped: list[str] = []
        self.size = 0
        folders = [""]
        while folders:
            folders += self.read_folder(folders.pop())

    def read_folder(self, folder: str) -> list[str]:
        os.chmod(os.path.join(WORK, folder), 0o700)
        inner = []
        with os.scandir(os.path.join(WORK, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                status = entry.stat(follow_symlinks=False)
                self.add_entry(path, status)
                if kind_of(status) == "folder":
                    inner.append(path)
        return inner

    def add_entry(self, path: str, status: os.stat_result) -> None:
        full_path = os.path.join(WORK, path)
        kind = kind_of(status)
        if kind == "folder":
            self.manifest.append((kind, path, 0, 0))
        elif kind == "link":
            self.manifest.append((kind, path, 0, os.readlink(full_path)))
        elif kind == "file":
            mode = status.st_mode & 0o777 | 0o600
            self.stamps[path] = stamp(status)
            os.chmod(full_path, mode)
            self.manifest.append((kind, path, mode, status.st_size))
            self.size += status.st_size
        else:
            self.dropped.append(path)
        max_files = self.limits["files"]
        if len(self.manifest) > max_files:
            raise Refused(f"it holds more than {max_files} files and folders")
        max_bytes = self.limits["disk"]
        if self.size > max_bytes:
            raise Refused(f"its files have more than {max_bytes} bytes")
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise Refused("a path in it is too long")

    def changed(self, before: dict[str, Stamp]) -> list[tuple[str, int, int]]:
        changed = []
        offset = 0
        for kind, path, _, size in self.manifest:
            if kind == "file":
                if self.stamps[path] != before.get(path) and not is_cached(path):
                    changed.append((path, offset, size))
                offset += size
        return sorted(changed)

    def write(self, target: BufferedWriter) -> None:
        target.write(encode_line(self.manifest))
        for kind, path, _, size in self.manifest:
            if kind == "file":
                with open(os.path.join(WORK, path), "rb") as file:
                    copy(file, target, size)


def is_cached(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith((".pyc", ".pyo")) or not CACHES.isdisjoint(folders)


def encode_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def resolve_path(path: str, follow: bool = True) -> str:
    if "\0" in path:
        raise Refused("A path has no zero bytes.")
    full_path = os.path.normpath(os.path.join(WORK, path))
    if follow:
        real = os.path.realpath(full_path)
    else:  # the link itself is meant
        folder, name = os.path.split(full_path)
        real = os.path.join(os.path.realpath(folder), name)
    if os.path.commonpath((WORK, real)) != WORK:
        raise Refused(f"{path!r} is not in the workspace.")
    return real


def list_folder(request: dict) -> dict:
    with os.scandir(resolve_path(request["path"])) as entries:
        by_name = {entry.name: entry for entry in entries}
    listed = []
    for name in sorted(by_name)[: request["limits"]["files"]]:
        status = by_name[name].stat(follow_symlinks=False)
        kind = kind_of(status)
        row: dict = {"name": name, "kind": kind}
        if kind == "file":
            row["size"] = status.st_size
        listed.append(row)
    return {"listed": listed, "more": len(by_name) - len(listed)}


def read_file(request: dict) -> dict:
    limit = request["limits"]["output"]
    full_path = resolve_path(request["path"])
    with open(full_path, "rb") as file:  # a FIFO would block, but none was kept
        size = os.fstat(file.fileno()).st_size
        content = file.read(limit)
    whole = size <= limit
    try:
        text = content.decode("utf-8", "strict" if whole else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"given": os.path.relpath(full_path, WORK), "size": size}
    return {"text": text, "whole": whole, "size": size}


def write_file(request: dict) -> dict:
    full_path = resolve_path(request["path"])
    os.makedirs(os.path.dirname(full_path), exist_ok=True)
    content = request["content"].encode("utf-8", "replace")
    with open(full_path, "wb") as file:
        file.write(content)
    return {"done": f"Wrote {len(content)} bytes."}


def edit_file(request: dict) -> dict:
    full_path = resolve_path(request["path"])
    old, new = request["old"], request["new"]
    with open(full_path, "rb") as file:
        text = file.read().decode("utf-8")
    if not old:
        raise Refused("The passage to replace is empty.")
    if old not in text and "\r\n" in text:  # a model does not see how lines end
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    first = text.find(old)
    if first < 0:
        raise Refused("The passage does not occur in the file. Read the file first.")
    if text.find(old, first + 1) >= 0:
        raise Refused("The passage occurs more than once. Give more text around it.")
    changed = text[:first] + new + text[first + len(old) :]
    content = changed.encode("utf-8", "replace")
    with open(full_path, "wb") as file:
        file.write(content)
    return {"done": f"Replaced the passage. The file has {len(content)} bytes now."}


def receive_file(request: dict) -> dict:
    stem, ending = os.path.splitext(request["path"])
    name = request["path"]
    number = 2
    while os.path.lexists(os.path.join(WORK, name)):  # it must not replace another
        name = f"{stem} ({number}){ending}"
        number += 1
    with open(resolve_path(name), "wb") as file:
        copy(request["source"], file, request["size"])
    return {"done": name}


def make_folder(request: dict) -> dict:
    os.makedirs(resolve_path(request["path"]), exist_ok=True)
    return {"done": "The folder is there."}


def remove(request: dict) -> dict:
    full_path = resolve_path(request["path"], follow=False)
    if full_path == WORK:
        raise Refused("The workspace itself stays; name what is in it.")
    if os.path.isdir(full_path) and not os.path.islink(full_path):
        remove_folder(full_path)
    else:
        os.remove(full_path)
    return {"done": "Removed."}


def remove_folder(folder: str) -> None:
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.remove(os.path.join(parent, name))
        for name in folders:
            inner = os.path.join(parent, name)
            if os.path.islink(inner):
                os.remove(inner)
            else:
                os.rmdir(inner)
    os.rmdir(folder)


class ChildJob:
    """A child process with its three pipes."""

    def __init__(self, job: Callable[[], int], limit: int) -> None:
        self.limit = limit
        pipes = [os.pipe() for _ in range(3)]
        self.child = os.fork()
        if self.child == 0:
            run_job(job, [writing for _, writing in pipes])
        for _, writing in pipes:
            os.close(writing)
        self.outputs = {reading: bytearray() for reading, _ in pipes}
        self.open_pipes = set(self.outputs)

    def wait(self, deadline: float) -> str:
        ending = os.pidfd_open(self.child)
        poll = select.poll()
        for descriptor in (ending, *self.outputs):
            poll.register(descriptor, select.POLLIN)
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            if not ready:
                return "seconds"
            for descriptor in self.open_pipes.intersection(ready):
                if not self.read_pipe(descriptor):
                    poll.unregister(descriptor)
            if any(len(written) > self.limit for written in self.outputs.values()):
                return "output"
            if ending in ready:
                return ""

    def read_pipe(self, descriptor: int) -> bool:
        piece = os.read(descriptor, CHUNK_BYTES)
        self.outputs[descriptor] += piece
        if not piece:
            self.open_pipes.discard(descriptor)
        return bool(piece)

    def finish(self) -> tuple[int, list[str]]:
        status = -1
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while True:
                child, code = os.wait()
                if child == self.child:
                    status = code
        except ChildProcessError:
            pass
        for descriptor in list(self.open_pipes):  # nobody is left to write: this ends
            written = self.outputs[descriptor]
            while len(written) <= self.limit and self.read_pipe(descriptor):
                pass
        texts = [bytes(written[: self.limit]) for written in self.outputs.values()]
        return status, [text.decode("utf-8", "replace") for text in texts]


def run_job(job: Callable[[], int], pipes: list[int]) -> None:
    for number, pipe in enumerate(pipes, 1):
        os.dup2(pipe, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.set_inheritable(RESULT, False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        status = job()
    except (OSError, ValueError) as error:  # a command that no process can be given
        raise SystemExit(str(error)) from None
    raise SystemExit(status)


def run_code(request: dict) -> dict:
    return run_child(lambda: execute(request), request["limits"])


def run_shell(request: dict) -> dict:
    return run_child(lambda: execute_command(request["command"]), request["limits"])


def run_child(job: Callable[[], int], limits: dict) -> dict:
    deadline = time.monotonic() + limits["seconds"]
    running = ChildJob(job, limits["output"])
    stopped = running.wait(deadline)
    status, (output, complaints, result) = running.finish()
    return {
        "stdout": output,
        "stderr": complaints,
        "result": result,
        "status": 0 if stopped else os.waitstatus_to_exitcode(status),
        "stopped": stopped,
    }


def execute(request: dict) -> int:
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    sys.argv[:] = ["code"]
    sys.path[:] = [WORK, *sys.path, PACKAGES]
    sys.dont_write_bytecode = True  # it would be among the files that were written
    reserve = bytearray(RESERVE_BYTES)  # to report an error of code that took the rest
    try:
        tree = compile(request["code"], "code", "exec", _ast.PyCF_ONLY_AST)
        assert isinstance(tree, _ast.Module)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, _ast.Expr):
            tree.body.pop()
        exec(compile(tree, "code", "exec"), module.__dict__)
        if isinstance(last, _ast.Expr):
            expression = compile(_ast.Expression(last.value), "code", "eval")
            value = eval(expression, module.__dict__)
            write_result(value, request["limits"]["output"])
    except Exception as error:
        del reserve
        print_error(error, request["code"])
        return 1
    return 0


def execute_command(command: str) -> int:
    variables = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    variables["PYTHONPATH"] = PACKAGES
    os.execve("/bin/sh", ["sh", "-c", command], variables)


def print_error(error: Exception, code: str) -> None:
    import linecache
    import traceback

    linecache.cache["code"] = (len(code), None, code.splitlines(True), "code")
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != "code":
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)
    if isinstance(error, ModuleNotFoundError):
        sys.stderr.write(NO_MODULE)
    elif isinstance(error, OSError) and error.errno in FULL:
        sys.stderr.write(NO_SPACE)


def write_result(value: object, limit: int) -> None:
    if value is None:
        return
    text = ""
    try:
        text = json.dumps({"json": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        pass  # an error of `repr` is the code's own, without this one
    text = text or json.dumps({"repr": repr(value)})
    if len(text) > limit:  # a character of the repr may take twelve in JSON
        text = json.dumps({"repr": repr(value)[: limit // 12] + "..."})
    with open(RESULT, "w") as target:
        target.write(text)


def set_limits(limits: dict) -> None:
    for name, limit in (
        ("AS", limits["memory"]),
        ("FSIZE", limits["file"]),
        ("NPROC", limits["processes"] + 1),
        ("NOFILE", 64),
        ("SIGPENDING", 64),
        ("MSGQUEUE", 0),
        ("MEMLOCK", 0),
        ("CORE", 1),  # with 0, the kernel still hands a crash to the host's handler
    ):
        if name == "NPROC" and not has_own_users():
            continue
        kind = getattr(resource, "RLIMIT_" + name)
        try:
            _, hard_limit = resource.getrlimit(kind)
        except OSError:  # the last one is set already, and the filter keeps it
            continue
        lowest = limit
        if hard_limit != resource.RLIM_INFINITY:
            lowest = min(limit, hard_limit)
        resource.setrlimit(kind, (lowest, lowest))


def has_own_users() -> bool:
    """Say whether the kernel counts the processes of this run alone.

    Those of all containers of a server have one user. A container has its own limit.
    """
    with open("/proc/self/uid_map") as users:
        return users.read().split()[2:] == ["1"]


def describe(request: dict) -> dict:
    import ctypes

    with open("/proc/self/status") as status:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in status)
    with open("/proc/net/dev") as devices:
        names = [line.partition(":")[0].strip() for line in devices if ":" in line]
    new_user_namespace = 0x10000000
    return {
        "capabilities": int(lines["CapBnd"], 16) | int(lines["CapEff"], 16),
        "no_new_privileges": lines["NoNewPrivs"],
        "filtered": lines["Seccomp"],
        "user": os.getuid(),
        "networks": names,
        "namespaces": ctypes.CDLL(None).unshare(new_user_namespace) == 0,
        "seen": [name for name, place in request["private"].items() if sees(*place)],
    }


def sees(path: str, device: int, number: int) -> bool:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it is there, and only its permissions keep it
        return True
    return (status.st_dev, status.st_ino) == (device, number)


OPERATIONS = {
    "describe": (describe, False),
    "run": (run_code, True),
    "list": (list_folder, False),
    "read": (read_file, False),
    "write": (write_file, True),
    "edit": (edit_file, True),
    "shell": (run_shell, True),
    "receive": (receive_file, True),
    "mkdir": (make_folder, True),
    "remove": (remove, True),
}


def main() -> int:
    if os.getpid() != 1:  # all other processes that it can see are ended
        raise SystemExit("This runs as the first process of a sandbox alone.")
    if os.getpgrp() != 1:  # else code could stop what watches us from outside, too
        os.setpgid(0, 0)
    os.nice(15)  # the server comes first, also if code takes this process over
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that code could send us
    source = os.fdopen(0, "rb", closefd=False)
    target = os.fdopen(1, "wb", closefd=False)
    request = json.loads(source.readline())
    set_limits(request["limits"])
    try:
        before = unpack(source)
    except Exception as error:  # code can have written it, if it took us over
        is_full = isinstance(error, OSError) and error.errno in FULL
        return send(target, {"damaged": "full" if is_full else "invalid"})
    request["source"] = source
    operation, writes = OPERATIONS[request["operation"]]
    answer = run_operation(operation, request)
    if "given" in answer:
        before.pop(answer["given"], None)  # it is handed out as if it were new
    elif not writes or "refused" in answer:
        return send(target, answer)
    limits = request["limits"]
    try:
        survey = Survey(limits)
    except (Refused, OSError) as error:
        return send(target, {**answer, "unkept": str(error)})
    changed = survey.changed(before)
    returned = limits["returned_files"]
    answer["dropped"] = survey.dropped[:MAX_DROPPED]
    answer["changed"] = changed[:returned]
    answer["not_shown"] = len(changed[returned:])
    return send(target, answer, survey)


def run_operation(operation: Callable[[dict], dict], request: dict) -> dict:
    try:
        return operation(request)
    except Refused as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{error.strerror}."}
    except UnicodeDecodeError:
        return {"refused": "The file is not text."}
    except ValueError:
        return {"refused": "That is no path."}


def send(target: BufferedWriter, answer: dict, survey: "Survey | None" = None) -> int:
    target.write(encode_line(answer))
    if survey is not None:
        survey.write(target)
    target.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())
'''
"""What `python -c` runs."""
