"""API keys with their accounts, and the profiles: kinds of endpoints, by what they refuse."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.refusals import refuse
from simulator.wire.servers import IMITATIONS


@dataclass(frozen=True)
class Account:
    """Whom a key belongs to, and which models it may not use."""

    organization: str
    project: str
    forbidden_prefixes: tuple[str, ...] = ()

    def may_use(self, model: str) -> bool:
        return not model.startswith(self.forbidden_prefixes)


KEY = "sk-simulator-1"
CANARY_KEY = "sk-canary-3f9b1c7e5a2d8046"  # for tests that search for it everywhere
ACCOUNTS: Mapping[str, Account] = {
    KEY: Account("org-simulator-1", "proj_simulator1"),
    CANARY_KEY: Account("org-simulator-1", "proj_simulator1"),
    "sk-simulator-2": Account("org-simulator-2", "proj_simulator2"),
    "sk-simulator-limited": Account(
        "org-simulator-1",
        "proj_limited",
        ("gpt-6", "gpt-5.6", "gpt-5.5", "gpt-5.2-pro"),
    ),
}


def find_account(headers: Mapping[str, str]) -> Account:
    """Return the account of a request's key or raise the refusal."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else headers.get("api-key", "")
    if not key:
        raise refuse("missing_key")
    if key not in ACCOUNTS:
        hidden = "*" * len(key[3:-4])
        raise refuse("wrong_key", key=f"{key[:3]}{hidden}{key[-4:]}")
    return ACCOUNTS[key]


OPENAI_LIMITS = {
    "x-ratelimit-limit-requests": "5000",
    "x-ratelimit-remaining-requests": "4999",
    "x-ratelimit-reset-requests": "12ms",
}
AZURE_LIMITS = {
    "x-ratelimit-limit-requests": "250",
    "x-ratelimit-remaining-requests": "249",
    "x-ratelimit-reset-requests": "0",
    "x-ratelimit-renewalperiod-requests": "60",
}
"""The headers that an Azure resource sent (recorded)."""


@dataclass(frozen=True)
class Profile:
    """One kind of endpoint, by what it accepts."""

    name: str
    summary: str
    accepts_reasoning_status: bool = False
    accepts_foreign_family: bool = False
    verified_for_summaries: bool = True
    verified_for_streaming: bool = True
    accepts_context_management: bool = True
    accepts_appended_settings: bool = True
    """Whether `configuration_update` and `additional_tools` are known; assumed not for
    Azure and other servers."""
    reads_plain_reasoning: bool = False
    """Whether reasoning in plain text may be sent back; it is not looked at."""
    rate_limits: Mapping[str, str] = field(default_factory=OPENAI_LIMITS.copy)
    """The headers that say how many requests a minute are left."""


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("strictest", "refuses everything that any of the others refuses"),
        Profile(
            "openai",
            "api.openai.com: reasoning may carry a status or another family",
            accepts_reasoning_status=True,
            accepts_foreign_family=True,
        ),
        Profile(
            "azure",
            "Azure v1: no status on reasoning, no context_management, no appended "
            "settings",
            accepts_context_management=False,
            accepts_appended_settings=False,
            rate_limits=AZURE_LIMITS,
        ),
        Profile(
            "unverified",
            "an organization that may not ask for reasoning.summary",
            verified_for_summaries=False,
        ),
        Profile(
            "unverified-stream",
            "an organization that may neither stream nor ask for reasoning.summary",
            verified_for_summaries=False,
            verified_for_streaming=False,
        ),
        *(
            Profile(
                name,
                "streams as this server does",
                accepts_reasoning_status=True,
                accepts_appended_settings=False,
                reads_plain_reasoning="tagged" in name,
            )
            for name in IMITATIONS
        ),
    )
}
