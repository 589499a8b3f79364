"""The guides that an administrator can choose, built in or read from files."""

from collections.abc import Mapping
from dataclasses import dataclass
from os.path import commonpath, getsize, join, realpath

from pydantic import BaseModel, ConfigDict, Field

from gpt5_agent.ports import Guide
from openai_responses.errors import InvalidRequest

_LARGEST_PRESET = 1_000_000


@dataclass(frozen=True, slots=True)
class Preset:
    """A guide that is built in."""

    system_prompt: str
    temperature: float | None = None
    memory_policy: str = ""
    initial_memories: tuple[str, ...] = ()


class PresetFile(BaseModel):
    """A guide as a JSON file holds it, in the spelling of JSON or of Python."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    system_prompt: str = Field(alias="systemPrompt")
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    memory_policy: str = Field("", alias="memoryPolicy")
    initial_memories: tuple[str, ...] = Field((), alias="initialMemories")


PRESETS: Mapping[str, Preset] = {
    "researcher": Preset(
        "You find things out. Prefer primary and recent sources, compare at least two "
        "of them for every claim that matters, and name the source beside the claim. "
        "Separate what is established from what is disputed."
    ),
    "engineer": Preset(
        "You are an experienced software engineer. Read before you write, change as "
        "little as solves the problem, keep to the style of what is there, and say how "
        "you checked that it works. Show code in fenced blocks.",
        temperature=0.2,
    ),
    "companion": Preset(
        "You help with everyday questions in plain, friendly words. Answer first, then "
        "explain, and keep it short unless more is asked for.",
        memory_policy="sliding-window",
    ),
}


def find_guide(name: str, folder: str = "") -> Guide | None:
    """Return the guide of that name; one in `folder` wins over one built in.

    Raises InvalidRequest for a name that neither has, and for a file that is no guide.
    """
    wanted = name.strip()
    if not wanted:
        return None
    path = _file_of(wanted, folder)
    try:
        return _read_file(path) if path else PRESETS[wanted]
    except (OSError, ValueError):
        problem = "cannot be read as a preset"
    except KeyError:
        problem = f"is neither a file of PRESETS_DIR nor one of {', '.join(PRESETS)}"
    raise InvalidRequest(
        f"The preset {wanted} {problem}. An administrator has to correct PRESET in the "
        "valves, or the file."
    )


def _file_of(name: str, folder: str) -> str:
    """Return the path of a preset's file, or nothing where there is none."""
    if not folder.strip():
        return ""
    home = realpath(folder.strip())
    try:
        path = realpath(join(home, f"{name}.json"))
        getsize(path)
    except (OSError, ValueError):
        return ""
    return path if commonpath((home, path)) == home else ""


def _read_file(path: str) -> PresetFile:
    with open(path, encoding="utf-8") as file:
        return PresetFile.model_validate_json(file.read(_LARGEST_PRESET))
