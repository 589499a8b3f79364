"""The program that runs in the sandbox, whole.

It reads one line of JSON that says what to do, then the workspace as it was kept. It
answers with one line, then the workspace as it is now, if that may have changed.
"""

from toolbox.inside_archive import INSIDE_ARCHIVE
from toolbox.inside_code import INSIDE_CODE
from toolbox.inside_files import INSIDE_FILES

_INSIDE_START = r'''

def confine(limits: dict) -> None:
    """Take the limits of one process, for us and for all that we start."""
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
    """Tell how we are confined, so that a sandbox with a hole is not used."""
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
    """Do what the first line says."""
    if os.getpid() != 1:  # all other processes that it can see are ended
        raise SystemExit("This runs as the first process of a sandbox alone.")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that code could send us
    source = os.fdopen(0, "rb", closefd=False)
    target = os.fdopen(1, "wb", closefd=False)
    request = json.loads(source.readline())
    confine(request["limits"])
    try:
        before = unpack(source)
    except Exception:  # code can have written it, if it took us over
        return send(target, {"damaged": True}, None)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    operation, writes = OPERATIONS[request["operation"]]
    answer = attempt(operation, request)
    if "given" in answer:
        before.pop(answer["given"], None)  # it is handed out as if it were new
    elif not writes or "refused" in answer:
        return send(target, answer, None)
    return send(target, answer, look_back(answer, before, request["limits"]))


def attempt(operation: Callable[[dict], dict], request: dict) -> dict:
    """Return what an operation answers, or why it was refused."""
    try:
        return operation(request)
    except Refused as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{error.strerror}."}
    except ValueError:
        return {"refused": "That is no path."}


def look_back(answer: dict, before: dict, limits: dict) -> "Survey | None":
    """Note in the answer what became of the workspace; return it, if it is kept."""
    try:
        survey = Survey(limits)
    except (Refused, OSError) as error:
        answer["unkept"] = str(error)
        return None
    changed = survey.changed(before)
    answer["dropped"] = survey.dropped[:FEW]
    answer["changed"] = changed[:FEW]
    answer["unlisted"] = len(changed[FEW:])
    return survey


def send(target: BufferedWriter, answer: dict, survey: "Survey | None") -> int:
    """Write the answer, and the workspace if it is to be kept."""
    target.write(line_of(answer))
    if survey is not None:
        survey.write(target)
    target.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())  # there is nothing to tidy up
'''

INSIDE = (INSIDE_ARCHIVE + INSIDE_FILES + INSIDE_CODE + _INSIDE_START).lstrip()
"""What `python -c` runs."""
