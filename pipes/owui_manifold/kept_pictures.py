"""Pictures that the model drew before, read back from the host's files."""

import base64
from collections.abc import Mapping, Sequence

from owui_chat.made import wanted_pictures, with_pictures
from owui_chat.messages import Stretch
from owui_chat.stored import Record
from owui_manifold.files import read_file
from owui_manifold.host import file_row, user_model


async def with_kept_pictures(
    records: Mapping[str, Record], stretches: Sequence[Stretch], user_id: str
) -> Mapping[str, Record]:
    """Return a chat's records with the pictures that its answers name.

    What the user may not read, or nobody any more, is left out.
    """
    wanted = wanted_pictures(stretches, records)
    user = await user_model(user_id) if wanted else None
    pictures: dict[str, str] = {}
    for file_id in dict.fromkeys(wanted):
        row = await file_row(file_id, user)
        held = await read_file(row, _encoded) if row else None
        if held:
            pictures[file_id] = held
    return with_pictures(records, pictures)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
