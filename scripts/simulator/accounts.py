"""The keys that open the stand-in."""

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.refusals import no_key, wrong_key


@dataclass(frozen=True)
class Account:
    """Whom a key belongs to, and the models it may not use."""

    organisation: str
    project: str
    forbidden: tuple[str, ...] = ()

    def may_use(self, model: str) -> bool:
        """Tell whether the key may use a model."""
        return not model.startswith(self.forbidden) if self.forbidden else True


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
    scheme, _, bearer = headers.get("Authorization", "").partition(" ")
    key = bearer.strip() if scheme.lower() == "bearer" else headers.get("api-key", "")
    if not key:
        raise no_key()
    if key not in ACCOUNTS:
        raise wrong_key(key)
    return ACCOUNTS[key]
