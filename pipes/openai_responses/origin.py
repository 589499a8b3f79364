"""Who made an item: reasoning is readable only for its own family and endpoint.

Encrypted reasoning of another model, server or organisation is refused or silently
dropped by the API (responses-api.md §2.1, rules 4, 10 and 11).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from openai_responses.endpoint import Endpoint
from openai_responses.models import resolve_model


@dataclass(frozen=True, slots=True)
class Origin:
    """The model family, the server's name, the account there that produced an item.

    `endpoint` and `account` are empty where an earlier writer did not note them.
    """

    family: str
    endpoint: str = ""
    account: str = ""

    def may_read(self, maker: Self) -> bool:
        """Say whether we may send reasoning that `maker` produced."""
        same_server = maker.endpoint in ("", self.endpoint)
        same_account = maker.account in ("", self.account)
        return same_server and same_account and maker.family == self.family

    def wire(self) -> dict[str, str]:
        """Return the form in which it is stored."""
        account = {"account": self.account} if self.account else {}
        return {"family": self.family, "endpoint": self.endpoint, **account}


def origin_at(family: str, endpoint: Endpoint) -> Origin:
    """Return who makes items of `family` at `endpoint`."""
    return Origin(family, endpoint.host, endpoint.owner())


def read_origin(wire: object, host_model: str) -> Origin:
    """Return a stored origin, or what the host's id of the model tells.

    The host's id is `{function id}.{model}`; earlier writers stored nothing else.
    """
    if isinstance(wire, Mapping) and wire.get("family"):
        endpoint, account = (str(wire.get(k) or "") for k in ("endpoint", "account"))
        return Origin(str(wire["family"]), endpoint, account)
    return Origin(resolve_model(host_model.split(".", 1)[-1]).family)
