"""What the API knows about each model.

The table is taken from the published facts independently: it shares nothing with the
client under test, so a mistake there is found here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

REASONING_TO_MAX = ("low", "medium", "high", "xhigh", "max")
SWITCHABLE_TO_MAX = ("none", *REASONING_TO_MAX)
SWITCHABLE_TO_XHIGH = ("none", "low", "medium", "high", "xhigh")
LOW_TO_HIGH = ("low", "medium", "high")
MEDIUM_TO_XHIGH = ("medium", "high", "xhigh")
GPT_5 = ("minimal", "low", "medium", "high")
PRO_MODE = ("gpt-6-astra", "gpt-6-sol", "gpt-6-luna", "gpt-6.1-sol", "gpt-6.1-terra")
SNAPSHOT = re.compile(r"^(?P<name>.+)-(?P<date>\d{4}-\d{2}-\d{2})$")
SERIES = re.compile(r"^gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?(?P<omni>o)?")


@dataclass(frozen=True)
class ModelFacts:
    """One model: its efforts in rising order, its default, and its limits."""

    id: str
    efforts: tuple[str, ...] = ()
    default_effort: str | None = None
    max_input: int = 922_000
    max_output: int = 128_000
    snapshot: str | None = None
    shutdown: str | None = None
    verbosities: tuple[str, ...] = ("low", "medium", "high")

    @property
    def reasons(self) -> bool:
        return bool(self.efforts)

    @property
    def family(self) -> str:
        """The series whose reasoning this model can read, such as ``gpt-5.6``."""
        return read_family(self.id)

    @property
    def series(self) -> tuple[int, int]:
        """The version as a pair that compares, (0, 0) outside ``gpt-``."""
        match = SERIES.match(self.id)
        if match is None:
            return (0, 0)
        return int(match["major"]), int(match["minor"] or 0)

    @property
    def binds_reasoning_to_prefix(self) -> bool:
        """Whether replayed reasoning counts only after the history it had."""
        return self.series >= (6, 2)

    @property
    def reads_instructions_last(self) -> bool:
        """Whether ``instructions`` come after the input, never cached.

        Source: guide "Keep the prefix unchanged".
        """
        return self.series >= (6, 2)

    @property
    def takes_updates(self) -> bool:
        """Whether `configuration_update` is known: "GPT-6 and later models".

        Source: reports (vercel/ai 20390); the guide for 6.2, without a live proof.
        """
        return self.series >= (6, 0)

    @property
    def has_pro_mode(self) -> bool:
        """Whether ``reasoning.mode`` may be ``pro``.

        Source: pydantic-ai 2.68.0. For the 6.2 models it is unknown: assumed not.
        """
        return self.id in PRO_MODE or self.series == (5, 6)

    @property
    def default_retention(self) -> str:
        """The ``prompt_cache_retention`` in force when none is requested.

        Recorded, but for gpt-5.1.
        """
        return "24h" if self.series >= (5, 2) else "in_memory"

    @property
    def default_top_p(self) -> float:
        """The ``top_p`` in force when none is requested; recorded, but for gpt-5.1."""
        return 0.98 if self.series >= (5, 2) else 1.0

    @property
    def diagnoses_cache(self) -> bool:
        """Whether prompt cache diagnostics say more than ``unavailable``.

        Source: guide "Prompt cache diagnostics".
        """
        return self.series >= (5, 6)

    @property
    def writes_cache_explicitly(self) -> bool:
        return self.series >= (5, 6)


def read_context(body: Mapping[str, Any], model: ModelFacts) -> str:
    """Return the ``reasoning.context`` in force.

    Recorded of none and of ``auto``: all turns on gpt-5.6 and gpt-6-astra, the current
    turn on gpt-5 to gpt-5.4. Of the other newer ones it is assumed.
    """
    wanted: str = (body.get("reasoning") or {}).get("context") or "auto"
    if wanted != "auto":
        return wanted
    return "all_turns" if model.series >= (5, 6) else "current_turn"


def read_family(model: str) -> str:
    """Return the series of a model id: ``gpt-5.2-pro`` is of ``gpt-5.2``."""
    match = SERIES.match(model)
    return match[0] if match else model.split("-", 1)[0]


def _group(ids: str, *facts: Any, **more: Any) -> list[ModelFacts]:
    """Return models that differ in nothing but their ids, which `ids` lists."""
    return [ModelFacts(id, *facts, **more) for id in ids.split()]


_WITHOUT_SNAPSHOTS = (
    *_group(
        "gpt-6-astra gpt-6.2-astra gpt-6.1-sol gpt-6.2-sol gpt-6-astra-law "
        "gpt-6.2-astra-law gpt-6-cyber gpt-6-rosalind",
        REASONING_TO_MAX,
        "medium",
    ),
    *_group(
        "gpt-6.1-terra gpt-6-sol gpt-6-luna gpt-5.6 gpt-5.6-sol gpt-5.6-terra "
        "gpt-5.6-luna gpt-5.6-cyber",
        SWITCHABLE_TO_MAX,
        "medium",
    ),
    *_group("gpt-5.5", SWITCHABLE_TO_XHIGH, "medium"),
    *_group("gpt-5.4", SWITCHABLE_TO_XHIGH, "none"),
    *_group("gpt-5.5-pro gpt-5.4-pro", MEDIUM_TO_XHIGH, "medium"),
    *_group("gpt-5.4-mini gpt-5.2", SWITCHABLE_TO_XHIGH, "none", 272_000),
    *_group("gpt-5.2-pro", MEDIUM_TO_XHIGH, "medium", 272_000),
    *_group(
        *("gpt-5.4-nano gpt-5.3-codex", SWITCHABLE_TO_XHIGH, "none", 272_000),
        shutdown="2027-04-01",
    ),
    *_group(
        *("gpt-5.1", ("none", *LOW_TO_HIGH), "none", 272_000), shutdown="2027-04-01"
    ),
    *_group(
        *("gpt-5 gpt-5-mini gpt-5-nano", GPT_5, "medium", 272_000),
        shutdown="2026-12-11",
    ),
    *_group(*("gpt-5-pro", ("high",), "high", 272_000, 272_000), shutdown="2026-12-11"),
    *_group(
        *("o3 o3-pro", LOW_TO_HIGH, "medium", 200_000, 100_000), shutdown="2026-12-11"
    ),
    *_group(
        *("gpt-4.1 gpt-4.1-mini", (), None, 1_047_576, 32_768),
        shutdown="2027-01-14",
        verbosities=("medium",),
    ),
    *_group(
        *("gpt-4o gpt-4o-mini", (), None, 128_000, 16_384),
        shutdown="2027-01-14",
        verbosities=("medium",),
    ),
)

_SNAPSHOTS = """
gpt-5.5-2026-04-23 gpt-5.5-pro-2026-04-23 gpt-5.4-mini-2026-03-17
gpt-5.4-nano-2026-03-17 gpt-5.2-2025-12-11 gpt-5.2-pro-2025-12-11 gpt-5.1-2025-11-13
gpt-5-2025-08-07 gpt-5-mini-2025-08-07 gpt-5-nano-2025-08-07 gpt-5-pro-2025-10-06
o3-2025-04-16 o3-pro-2025-06-10 gpt-4.1-2025-04-14 gpt-4.1-mini-2025-04-14
gpt-4o-2024-11-20 gpt-4o-mini-2024-07-18
"""
SNAPSHOTS = {
    match["name"]: snapshot
    for snapshot in _SNAPSHOTS.split()
    if (match := SNAPSHOT.match(snapshot))
}
"""The newest of each model."""

_RETIRED = """
gpt-5.3-chat-latest gpt-5.2-chat-latest gpt-5.1-chat-latest gpt-5-chat-latest
gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini gpt-5.1-codex-max gpt-5.2-codex
gpt-4.1-nano o4-mini o3-mini o1 o1-preview o1-mini o1-pro o3-deep-research
o4-mini-deep-research computer-use-preview codex-mini-latest chatgpt-4o-latest
gpt-4o-search-preview gpt-4-turbo gpt-4 gpt-3.5-turbo
"""
RETIRED = frozenset(_RETIRED.split())
ONLY_CHAT = ("o1-mini", "o1-preview")
"""Models of which the Responses API said that it does not have them."""


def _build_table() -> dict[str, ModelFacts]:
    """Return all models by their ids, each before its dated snapshot."""
    table: dict[str, ModelFacts] = {}
    for model in _WITHOUT_SNAPSHOTS:
        if model.id not in SNAPSHOTS:
            table[model.id] = model
            continue
        snapshot = SNAPSHOTS[model.id]
        table[model.id] = replace(model, snapshot=snapshot)
        table[snapshot] = replace(model, id=snapshot, snapshot=snapshot)
    return table


MODELS = _build_table()


def is_retired(model: str) -> bool:
    """Tell whether the id, dated or not, named a model that is gone."""
    match = SNAPSHOT.match(model)
    return model in RETIRED or bool(match and match["name"] in RETIRED)
