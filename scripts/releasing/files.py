"""The files of a release, made of the sources as they are now."""

from pathlib import Path

from bundling.building import build
from bundling.targets import TARGETS, Target
from owui_manifold.call.valves import Valves
from releasing.contents import (
    ADMINISTRATION,
    ADMINISTRATION_ID,
    FUNCTIONS,
    MODELS,
    PIPE_ID,
    READABLE,
    packed_name,
)
from releasing.download_page import PAGE, download_page
from releasing.imports import functions_file, models_file
from releasing.packed import pack
from shells.valve_words import comma_list

ROOT = Path(__file__).resolve().parents[2]
SWITCHES = {
    Path(target.output).stem: target
    for target in TARGETS
    if "owui_controls" in target.packages
}
"""The switches of the composer, by the ids that they are installed under."""


def write_release(folder: Path) -> None:
    """Write all files of a release into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in release_files().items():
        (folder / name).write_text(text, "utf-8")
    (folder / PAGE).write_text(download_page(folder), "utf-8")


def release_files() -> dict[str, str]:
    """Return the text of each file by its name; builds the bundles for that."""
    packed = {
        function_id: pack(build(_target_of(readable), ROOT), readable)
        for function_id, readable in READABLE.items()
    }
    switches = {name: build(target, ROOT) for name, target in SWITCHES.items()}
    model_names = comma_list(Valves().MODEL_ID)
    files = {packed_name(function_id): text for function_id, text in packed.items()}
    files[FUNCTIONS] = functions_file({PIPE_ID: packed[PIPE_ID], **switches})
    files[ADMINISTRATION] = functions_file(
        {ADMINISTRATION_ID: packed[ADMINISTRATION_ID]}
    )
    files[MODELS] = models_file(PIPE_ID, model_names, switches)
    return files


def _target_of(output: str) -> Target:
    """Return the bundle that is written to this path."""
    return next(target for target in TARGETS if target.output == output)
