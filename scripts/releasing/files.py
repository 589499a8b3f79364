"""The files of a release, made of the built files as they are now."""

from pathlib import Path

from owui_manifold.call.valves import Valves
from releasing.contents import (
    ADMINISTRATION,
    ADMINISTRATION_ID,
    FUNCTIONS,
    MODELS,
    PIPE_ID,
    READABLE,
    ROOT,
    SANDBOX,
    SANDBOX_ID,
    SWITCHES,
    packed_name,
    plugins_file,
)
from releasing.download_page import PAGE, download_page
from releasing.imports import models_file
from releasing.packed import pack
from shells.valve_texts import comma_list


def write_release(folder: Path) -> None:
    """Write all files of a release into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in release_files().items():
        (folder / name).write_text(text, "utf-8")
    (folder / PAGE).write_text(download_page(folder), "utf-8")


def release_files() -> dict[str, str]:
    """Return the text of each file by its name."""
    built = {
        plugin_id: (ROOT / path).read_text("utf-8")
        for plugin_id, path in (READABLE | SWITCHES).items()
    }
    packed = {
        plugin_id: pack(built[plugin_id], readable)
        for plugin_id, readable in READABLE.items()
    }
    switches = {plugin_id: built[plugin_id] for plugin_id in SWITCHES}
    model_names = comma_list(Valves().MODEL_ID)
    files = {packed_name(plugin_id): text for plugin_id, text in packed.items()}
    files[FUNCTIONS] = plugins_file({PIPE_ID: packed[PIPE_ID], **switches})
    for name, plugin_id in ((ADMINISTRATION, ADMINISTRATION_ID), (SANDBOX, SANDBOX_ID)):
        files[name] = plugins_file({plugin_id: packed[plugin_id]})
    files[MODELS] = models_file(PIPE_ID, model_names, switches)
    return files
