"""Files that code left in containers, as ``GET /v1/containers`` gives them out."""

import base64
from collections.abc import Mapping

from simulator.accounts import Account
from simulator.pictures import picture
from simulator.refusals import Refusal

CONTAINER = "cntr_68e0000000000000000000000000000000000000"
EXPIRED = "cntr_68e0000000000000000000000000000000000404"
ORGANISATION = "org-simulator-1"
TABLE_FILE = "cfile_68e00000000000000000000000000001"
CHART_FILE = "cfile_68e00000000000000000000000000002"
TABLE = "city,people\nZürich,400000\n東京,14000000\n".encode()
FILES: Mapping[str, bytes] = {
    TABLE_FILE: TABLE,
    CHART_FILE: base64.b64decode(picture(90)),
}


def container_file(account: Account, container: str, file: str) -> bytes:
    """Return a file's bytes or raise the refusal."""
    if container == EXPIRED:
        raise Refusal("Container is expired.", status=404)
    if container != CONTAINER or account.organisation != ORGANISATION:
        raise Refusal(f"Container with id '{container}' not found.", status=404)
    if file not in FILES:
        raise Refusal(f"File with id '{file}' not found.", status=404)
    return FILES[file]
