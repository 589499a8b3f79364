"""How strict the stand-in is."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """One kind of endpoint: which of the optional refusals it makes."""

    name: str
    line: str
    accepts_reasoning_status: bool = False
    accepts_foreign_family: bool = False
    verified_for_summaries: bool = True
    verified_for_streaming: bool = True
    accepts_context_management: bool = True
    names_rate_limits: bool = True


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("strictest", "every refusal that any of the others makes on input"),
        Profile(
            "openai",
            "api.openai.com: reasoning may carry a status or another family",
            accepts_reasoning_status=True,
            accepts_foreign_family=True,
        ),
        Profile(
            "azure",
            "Azure v1: no status on reasoning, no context_management, rate limits -1",
            accepts_context_management=False,
            names_rate_limits=False,
        ),
        Profile(
            "unverified",
            "an organisation that may not have reasoning.summary",
            verified_for_summaries=False,
        ),
        Profile(
            "unverified-stream",
            "an organisation that may neither stream nor have reasoning.summary",
            verified_for_summaries=False,
            verified_for_streaming=False,
        ),
    )
}
