"""The part of the sandboxed program that works on the files of the workspace."""

INSIDE_FILES = r'''

def inside(path: str, follow: bool = True) -> str:
    """Return where a path of the workspace leads; refuse what leads out of it."""
    if "\0" in path:
        raise Refused("A path has no zero bytes.")
    place = os.path.normpath(os.path.join(WORK, path))
    if follow:
        real = os.path.realpath(place)
    else:  # the link itself is meant
        folder, name = os.path.split(place)
        real = os.path.join(os.path.realpath(folder), name)
    if os.path.commonpath((WORK, real)) != WORK:
        raise Refused(f"{path!r} is not in the workspace.")
    return real


def kind_of(mode: int) -> str:
    """Return what people call an entry of a folder."""
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(mode), "other")


def list_folder(request: dict) -> dict:
    """Tell what a folder holds."""
    with os.scandir(inside(request["path"])) as entries:
        found = sorted(entries, key=lambda one: one.name)
    listed = []
    for entry in found[: request["limits"]["files"]]:
        status = entry.stat(follow_symlinks=False)
        kind = kind_of(status.st_mode)
        size = {"size": status.st_size} if kind == "file" else {}
        listed.append(dict(name=entry.name, kind=kind, **size))
    return {"listed": listed, "more": len(found) - len(listed)}


def read_file(request: dict) -> dict:
    """Tell the text of a file; anything but text comes back as a file."""
    limit = request["limits"]["output"]
    place = inside(request["path"])
    with open(place, "rb") as file:  # a FIFO would block, but none was kept
        size = os.fstat(file.fileno()).st_size
        content = file.read(limit)
    whole = size <= limit
    try:
        text = content.decode("utf-8", "strict" if whole else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"given": os.path.relpath(place, WORK), "size": size}
    return {"text": text, "whole": whole, "size": size}


def write_file(request: dict) -> dict:
    """Write a text, in the place of what was there."""
    place = inside(request["path"])
    os.makedirs(os.path.dirname(place), exist_ok=True)
    content = request["content"].encode("utf-8", "replace")
    with open(place, "wb") as file:
        file.write(content)
    return {"done": f"Wrote {len(content)} bytes."}


def make_folder(request: dict) -> dict:
    """Make a folder, with those above it."""
    os.makedirs(inside(request["path"]), exist_ok=True)
    return {"done": "The folder is there."}


def remove(request: dict) -> dict:
    """Remove a file, a link, or a folder with all that it holds."""
    place = inside(request["path"], follow=False)
    if place == WORK:
        raise Refused("The workspace itself stays; name what is in it.")
    if os.path.isdir(place) and not os.path.islink(place):
        remove_folder(place)
    else:
        os.remove(place)
    return {"done": "Removed."}


def remove_folder(folder: str) -> None:
    """Remove a folder from its leaves on; links are not followed."""
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.remove(os.path.join(place, name))
        for name in folders:
            inner = os.path.join(place, name)
            (os.remove if os.path.islink(inner) else os.rmdir)(inner)
    os.rmdir(folder)
'''
