"""`release/README.md`: which file is for whom, and how to check it.

It is made of the files next to it, so that it can be compared with them. The standard
library is enough for that.
"""

import hashlib
from pathlib import Path

from releasing.contents import (
    ADMINISTRATION,
    ADMINISTRATION_ID,
    FUNCTIONS,
    MODELS,
    PIPE_ID,
    SANDBOX,
    SANDBOX_ID,
    packed_name,
    version_of,
)

PAGE = "README.md"
CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
_PURPOSES = {
    FUNCTIONS: "Everybody, first: the pipe and its five switches, for *Import JSON*",
    MODELS: "Everybody, second: the models, with access for all users",
    packed_name(PIPE_ID): "Updates of the pipe: replace its text with this",
    ADMINISTRATION: "Servers with many users: limits, several keys, telemetry",
    packed_name(ADMINISTRATION_ID): "Updates of that filter",
    SANDBOX: "Optional: the sandbox as a tool, for *Workspace → Tools → Import JSON*",
    packed_name(SANDBOX_ID): "Updates of that tool",
}
"""Each file that people download, in the order in which they need them."""
_TEMPLATE = """\
# Files of version {version}

| File | For whom | Bytes |
| --- | --- | ---: |
{rows}

[Install](../README.md#install) says what to do with them, [install.md]\
(../docs/install.md) how to go back to an earlier version, and [sandbox.md]\
(../docs/sandbox.md#the-sandbox-as-a-tool-of-open-webui) what the sandbox needs. \
[CHANGELOG.md]({changes}) says what changed.

## Check a file

`sha256sum --check` compares a download with these digests:

```
{digests}
```

They show that a download is complete. To see that a packed file contains the published
code, run this in a checkout of this version, with nothing but Python:

```
python scripts/release.py --verify openai_responses_packed.py
```

It writes the same file from the readable one and compares every character. The code is
that of the readable file, line for line; docstrings and comments stay behind.
"""


def download_page(folder: Path) -> str:
    """Return the text of the page about the files in a folder; raises OSError."""
    contents = {name: (folder / name).read_bytes() for name in _PURPOSES}
    version = version_of(contents[packed_name(PIPE_ID)].decode())
    rows = [
        f"| [`{name}`]({name}) | {purpose} | {len(contents[name]):,} |"
        for name, purpose in _PURPOSES.items()
    ]
    digests = [
        f"{hashlib.sha256(content).hexdigest()}  {name}"
        for name, content in contents.items()
    ]
    return _TEMPLATE.format(
        version=version,
        rows="\n".join(rows),
        changes=_changes_link(version),
        digests="\n".join(digests),
    )


def _changes_link(version: str) -> str:
    """Return the address of the section about a version in CHANGELOG.md."""
    changelog = CHANGELOG.read_text("utf-8")
    for line in changelog.splitlines():
        if line.startswith(f"## [{version}]"):
            # As GitHub makes an anchor of a heading.
            kept = [c for c in line[3:].lower() if c.isalnum() or c in " -"]
            return "../CHANGELOG.md#" + "".join(kept).replace(" ", "-")
    return "../CHANGELOG.md"
