"""Guides by their names: built-in ones, and the files of PRESETS_DIR."""

from contextlib import suppress
from os.path import commonpath, getsize, join, realpath

from openai_responses.errors import InvalidRequest
from strategies.guide import BUILT_IN_GUIDES, NO_GUIDE, Guide

_MAX_PRESET_CHARACTERS = 1_000_000


def find_preset(name: str, folder: str = "") -> Guide:
    """Return the guide of that name; one in `folder` wins over a built-in one.

    Raises InvalidRequest for an unknown name and for an invalid file.
    """
    name = name.strip()
    folder = folder.strip()
    if not name:
        return NO_GUIDE
    path = ""
    if folder:
        with suppress(OSError, ValueError):
            root = realpath(folder)
            found = realpath(join(root, f"{name}.json"))
            getsize(found)  # raises if there is no such file
            # A name cannot lead out of the folder, not even by a link.
            path = found if commonpath((root, found)) == root else ""
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                return Guide.model_validate_json(file.read(_MAX_PRESET_CHARACTERS))
        except (OSError, ValueError):
            raise _preset_error(name, "cannot be read as a preset") from None
    if name in BUILT_IN_GUIDES:
        return BUILT_IN_GUIDES[name]
    known_names = ", ".join(BUILT_IN_GUIDES)
    raise _preset_error(
        name, f"is neither a file of PRESETS_DIR nor one of {known_names}"
    )


def _preset_error(name: str, problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The preset {name} {problem}. An administrator has to correct PRESET in the "
        "valves, or the file.",
        remedy="setup",
    )
