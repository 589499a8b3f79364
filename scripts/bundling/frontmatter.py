"""The lines by which a host knows a bundle."""

import re
from collections.abc import Iterator

from bundling.modules import Module
from bundling.refusals import Refusal
from bundling.targets import Target

# Open WebUI 0.12.4, utils/plugin.py, extract_frontmatter: read on every line up to the
# closing quotes, and only when line 1 is exactly three quotes.
KEY_LINE = re.compile(r"^\s*([a-z_]+):\s*(.*)\s*$", re.IGNORECASE)


def split_docstring(docstring: str) -> tuple[str, str]:
    """Return the key lines of an entry module's docstring, and the text after them."""
    keys, _, rest = docstring.strip().partition("\n\n")
    return keys, rest.strip()


def check_frontmatter(entry: Module, target: Target, version: str) -> Iterator[Refusal]:
    """Refuse key lines that are incomplete, or that promise another version."""
    keys, rest = split_docstring(entry.docstring)
    matches = [KEY_LINE.match(line) for line in keys.splitlines()]
    pairs = [(match[1], match[2]) if match else ("", "") for match in matches]
    names = tuple(key for key, _ in pairs)
    if names != target.frontmatter:
        wanted = ", ".join(target.frontmatter)
        yield entry.refuse(1, f"the frontmatter must have, in this order, {wanted}")
    if not all(value.strip() for _, value in pairs) or "\\" in keys:
        yield entry.refuse(1, "the frontmatter has a line without a plain value")
    if ("version", version) not in pairs:
        reason = f"the frontmatter's version is not {version}, as in pyproject.toml"
        yield entry.refuse(1, reason)
    if not rest:
        yield entry.refuse(1, "a sentence must follow the frontmatter")


_PASTING = """
Do not paste this file into Open WebUI. Its editor formats what is pasted, and the server
responds to nobody for seconds meanwhile. Paste the same code, compressed, from
{}
"""


def opening(entry: Module, target: Target) -> str:
    """Return the docstring of a bundle: key lines, and how the file is made and read."""
    keys, _ = split_docstring(entry.docstring)
    folders = " and ".join(f"{folder}/" for folder in target.folders)
    warning = _PASTING.format(target.packed) if target.packed else ""
    return f'''"""
{keys}
{warning}
Built by scripts/bundle.py from {folders}; do not edit. Each module follows those that
it imports; the last one has the class {target.host_class}.
"""'''
