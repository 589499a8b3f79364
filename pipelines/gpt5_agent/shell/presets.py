"""Guides by their names: built-in ones, and the files of PRESETS_DIR."""

from os.path import commonpath, getsize, join, realpath

from openai_responses.errors import InvalidRequest
from strategies.guide import BUILT_IN_GUIDES, NO_GUIDE, Guide

_MAX_PRESET_CHARACTERS = 1_000_000


def find_preset(name: str, folder: str = "") -> Guide:
    """Return the guide of that name; one in `folder` wins over a built-in one.

    Raises InvalidRequest for an unknown name and for an invalid file.
    """
    name = name.strip()
    if not name:
        return NO_GUIDE
    path = _find_preset_file(name, folder)
    if path:
        return _read_preset_file(name, path)
    if name in BUILT_IN_GUIDES:
        return BUILT_IN_GUIDES[name]
    known_names = ", ".join(BUILT_IN_GUIDES)
    raise _preset_error(
        name, f"is neither a file of PRESETS_DIR nor one of {known_names}"
    )


def _find_preset_file(name: str, folder: str) -> str:
    """Return the path of a file in the folder; empty without one.

    A name cannot lead out of the folder, not even by a link.
    """
    if not folder.strip():
        return ""
    folder_path = realpath(folder.strip())
    try:
        path = realpath(join(folder_path, f"{name}.json"))
        getsize(path)
    except (OSError, ValueError):
        return ""
    return path if commonpath((folder_path, path)) == folder_path else ""


def _read_preset_file(name: str, path: str) -> Guide:
    """Return the guide in a file; raises InvalidRequest."""
    try:
        with open(path, encoding="utf-8") as file:
            return Guide.model_validate_json(file.read(_MAX_PRESET_CHARACTERS))
    except (OSError, ValueError):
        raise _preset_error(name, "cannot be read as a preset") from None


def _preset_error(name: str, problem: str) -> InvalidRequest:
    """Return the error of a preset that an administrator corrects."""
    return InvalidRequest(
        f"The preset {name} {problem}. An administrator has to correct PRESET in the "
        "valves, or the file."
    )
