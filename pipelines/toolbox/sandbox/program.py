"""Source text of the sandboxed program, second half: running code, and the main function.

The program reads one JSON line with the operation, then the stored workspace. It
answers with one JSON line, then the new workspace if it may have changed.
"""

from toolbox.sandbox.program_files import ARCHIVE_SOURCE, FILES_SOURCE

_CODE_SOURCE = r'''

class ChildJob:
    """A child process with its three pipes: stdout, stderr, result."""

    def __init__(self, job: Callable[[int], int], limit: int) -> None:
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
        """Wait for the end; return the limit that it exceeds, or nothing."""
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
            if self.exceeds_limit():
                return "output"
            if ending in ready:
                return ""

    def exceeds_limit(self) -> bool:
        return any(len(written) > self.limit for written in self.outputs.values())

    def read_pipe(self, descriptor: int) -> bool:
        piece = os.read(descriptor, CHUNK_BYTES)
        self.outputs[descriptor] += piece
        if not piece:
            self.open_pipes.discard(descriptor)
        return bool(piece)

    def finish(self) -> tuple[int, list[str]]:
        """End all other processes in here; return the child's status and outputs."""
        status = -1
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while True:
                child, code = os.wait()
                status = code if child == self.child else status
        except ChildProcessError:
            pass
        for descriptor in list(self.open_pipes):  # nobody is left to write: this ends
            written = self.outputs[descriptor]
            while len(written) <= self.limit and self.read_pipe(descriptor):
                pass
        texts = [bytes(written[: self.limit]) for written in self.outputs.values()]
        return status, [text.decode("utf-8", "replace") for text in texts]


def run_job(job: Callable[[int], int], pipes: list[int]) -> None:
    """Run a job in this process, which was just forked."""
    output, complaints, result = pipes
    os.dup2(output, 1)
    os.dup2(complaints, 2)
    os.dup2(result, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.set_inheritable(3, False)
    os.nice(10)  # the server comes first
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        status = job(3)
    except OSError as error:
        raise SystemExit(str(error)) from None
    raise SystemExit(status)


def run_code(request: dict) -> dict:
    limits = request["limits"]
    deadline = time.monotonic() + limits["seconds"]
    if request["dependencies"]:
        installing = ChildJob(lambda _: install(request["dependencies"]), CHUNK_BYTES)
        stopped = installing.wait(deadline)
        status, (_, complaints, _) = installing.finish()
        if stopped or status:
            raise Refused("The dependencies were not installed. " + complaints[-2000:])
        sys.path.insert(0, PACKAGES)
    running = ChildJob(lambda result: execute(request, result), limits["output"])
    stopped = running.wait(deadline)
    status, (output, complaints, result) = running.finish()
    return {
        "stdout": output,
        "stderr": complaints,
        "result": result,
        "status": 0 if stopped else os.waitstatus_to_exitcode(status),
        "stopped": stopped,
    }


def install(dependencies: list[str]) -> int:
    """Become pip, run from its own wheel; it reads one folder only."""
    wheels = sorted(name for name in os.listdir("/wheels") if name.startswith("pip-"))
    if not wheels:
        raise SystemExit("The folder of wheels has no wheel of pip.")
    pip = f"/wheels/{wheels[-1]}/pip"
    options = "--quiet --no-input --no-index --no-cache-dir --no-compile"
    command = [sys.executable, "-I", pip, "install", *options.split()]
    command += ["--disable-pip-version-check", "--only-binary", ":all:"]
    command += ["--find-links", "/wheels", "--target", PACKAGES, "--", *dependencies]
    os.execv(sys.executable, command)


def execute(request: dict, result: int) -> int:
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    sys.argv[:] = ["code"]
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
            write_result(value, result, request["limits"]["output"])
    except Exception as error:
        print_error(error, request["code"])
        return 1
    return 0


def print_error(error: Exception, code: str) -> None:
    import linecache
    import traceback

    linecache.cache["code"] = (len(code), None, code.splitlines(True), "code")
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != "code":
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def write_result(value: object, result: int, limit: int) -> None:
    if value is None:
        return
    try:
        told = json.dumps({"json": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        told = json.dumps({"repr": repr(value)})
    if len(told) > limit:  # a character of the repr may take twelve in JSON
        told = json.dumps({"repr": repr(value)[: limit // 12] + "..."})
    with open(result, "w") as target:
        target.write(told)
'''


_MAIN_SOURCE = r'''

def set_limits(limits: dict) -> None:
    for name, limit in (
        ("AS", limits["memory"]),
        ("FSIZE", limits["file"]),
        ("NPROC", limits["processes"] + 1),
        ("NOFILE", 64),
        ("SIGPENDING", 64),
        ("MSGQUEUE", 0),
        ("MEMLOCK", 0),
        ("CORE", 0),
    ):
        kind = getattr(resource, "RLIMIT_" + name)
        _, most = resource.getrlimit(kind)
        least = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (least, least))


def describe(_: dict) -> dict:
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
    }


OPERATIONS = {
    "describe": (describe, False),
    "run": (run_code, True),
    "list": (list_folder, False),
    "read": (read_file, False),
    "write": (write_file, True),
    "mkdir": (make_folder, True),
    "remove": (remove, True),
}


def main() -> int:
    if os.getpid() != 1:  # all other processes that it can see are ended
        raise SystemExit("This runs as the first process of a sandbox alone.")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that code could send us
    source = os.fdopen(0, "rb", closefd=False)
    target = os.fdopen(1, "wb", closefd=False)
    request = json.loads(source.readline())
    set_limits(request["limits"])
    try:
        before = unpack(source)
    except Exception:  # code can have written it, if it took us over
        return send(target, {"damaged": True}, None)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    operation, writes = OPERATIONS[request["operation"]]
    answer = run_operation(operation, request)
    if "given" in answer:
        before.pop(answer["given"], None)  # it is handed out as if it were new
    elif not writes or "refused" in answer:
        return send(target, answer, None)
    return send(target, answer, survey_changes(answer, before, request["limits"]))


def run_operation(operation: Callable[[dict], dict], request: dict) -> dict:
    try:
        return operation(request)
    except Refused as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{error.strerror}."}
    except ValueError:
        return {"refused": "That is no path."}


def survey_changes(answer: dict, before: dict, limits: dict) -> "Survey | None":
    """Add the changes to the answer; return the workspace if it can be kept."""
    try:
        survey = Survey(limits)
    except (Refused, OSError) as error:
        answer["unkept"] = str(error)
        return None
    changed = survey.changed(before)
    answer["dropped"] = survey.dropped[:MAX_LISTED]
    answer["changed"] = changed[:MAX_LISTED]
    answer["unlisted"] = len(changed[MAX_LISTED:])
    return survey


def send(target: BufferedWriter, answer: dict, survey: "Survey | None") -> int:
    target.write(encode_line(answer))
    if survey is not None:
        survey.write(target)
    target.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())
'''

SANDBOX_PROGRAM = (ARCHIVE_SOURCE + FILES_SOURCE + _CODE_SOURCE + _MAIN_SOURCE).lstrip()
"""What `python -c` runs."""
