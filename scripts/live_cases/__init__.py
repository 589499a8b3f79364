"""What the project assumes of the Responses API: a request, and what comes back.

Each case says where the assumption comes from, or that it is one. The tests hold the
simulator against all of them, `scripts/live` the real API.
"""

from live_cases.case import Case
from live_cases.items import ITEM_CASES
from live_cases.parameters import PARAMETER_CASES
from live_cases.parts import PART_CASES
from live_cases.replays import REPLAY_CASES
from live_cases.safety import SAFETY_CASES
from live_cases.schemas import SCHEMA_CASES
from live_cases.tools import TOOL_CASES


def list_cases() -> tuple[Case, ...]:
    """Return all cases."""
    return (
        *TOOL_CASES,
        *SCHEMA_CASES,
        *PARAMETER_CASES,
        *ITEM_CASES,
        *PART_CASES,
        *REPLAY_CASES,
        *SAFETY_CASES,
    )


__all__ = ["Case", "list_cases"]
