"""Fields of JSON objects."""

from collections.abc import Mapping
from typing import Any


def without_fields(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
