"""ENDPOINTS_JSON: other addresses and keys, for some groups and models.

A call is answered at the first entry that is for its user and its model, and at the
next one if that fails before an answer begins. A chat stays where its reasoning can be
read, as long as that entry is for its user.
"""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from openai_responses.clock import monotonic_seconds
from openai_responses.endings import (
    FLEX_UNAVAILABLE,
    REQUEST_TOO_LARGE,
    SAFETY_STOPS,
    WRONG_KEY,
)
from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import JsonObject, as_mapping, load_json
from openai_responses.models.resolve import resolve_model
from owui_administration.host import user_groups

_UNREADABLE = (
    "ENDPOINTS_JSON is not a list of entries with a key each, so nothing is sent. An "
    "administrator has to correct it in the valves of the filter, for example "
    '`[{"groups": ["staff"], "api_key": "..."}]`.'
)
_ASKS_NEXT = (
    "The server did not answer. The next one that an administrator named is asked."
)
_OTHER_ACCOUNT = "The earlier reasoning of this chat is at another server or account."
_DOWN_SECONDS = 60.0
_DOWN_KINDS = ("unreachable", "unreadable", "first_event_timeout")
_DOWN_CODES = ("server_error", "rate_limit_exceeded", "insufficient_quota", WRONG_KEY)
_ABOUT_ONE_REQUEST = (REQUEST_TOO_LARGE, FLEX_UNAVAILABLE)
"""Another account may have a higher limit; for other requests the server is not down."""


class EndpointEntry(BaseModel):
    """Whom and what it is for, and what it has in the place of valves.

    No `groups` mean everybody, None the valve.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    groups: list[str] = []
    models: list[str] = ["*"]
    base_url: str | None = None
    compatibility: Literal["auto", "openai", "strict"] | None = None
    api_key: str = ""
    organization: str = ""
    project: str = ""
    auth: Literal["key", "bearer", "entra_id"] = "key"
    entra_scope: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it has a key, or needs none; raises InvalidRequest for its address."""
        return bool(self.at("").host and (self.auth == "entra_id" or self.key))

    @property
    def key(self) -> str:
        """The key that is sent: none where a token takes its place."""
        return "" if self.auth == "entra_id" else self.api_key.strip()

    def is_for(self, groups: Collection[str], models: Collection[str]) -> bool:
        """Say whether it is for a member of `groups` and a model with these names."""
        is_named = any(fnmatchcase(m, one) for m in models for one in self.models)
        return is_named and bool(not self.groups or {*groups}.intersection(self.groups))

    def at(self, base_url: str) -> Endpoint:
        """Return its server and account; `base_url` is that of the valves."""
        address = base_url if self.base_url is None else self.base_url
        return Endpoint(address, self.key, self.organization.strip())

    def valves(self) -> dict[str, str]:
        """Return what replaces valves of the pipe, with nothing of another account."""
        given = {name.upper(): text for name, text in self if isinstance(text, str)}
        unset = {"EXTRA_HEADERS": "", "FILE_SEARCH_VECTOR_STORES": ""}
        return {**given, "API_KEY": self.key, **unset}


@lru_cache(maxsize=8)
def read_endpoints(text: str) -> Sequence[EndpointEntry] | None:
    """Return the entries of a JSON list; None if one cannot be read.

    Such an entry may keep chats from a server, so it is not passed over.
    """
    try:
        entries = [*map(EndpointEntry.model_validate, load_json(text.strip() or "[]"))]
        return entries if all(one.is_complete for one in entries) else None
    except (ValueError, TypeError, InvalidRequest):
        return None


class EndpointChoice:
    """Where one call is answered: the first of the entries that are left."""

    def __init__(
        self, entries: Sequence[EndpointEntry], base_url: str, down: dict[str, float]
    ) -> None:
        """Take the entries for the call; those that failed a moment ago are the last.

        `down` has the times until which an account counts as one that fails.
        """
        self.problem = ""
        self._base_url = base_url
        self._down = down
        self._entries = sorted(entries, key=self._is_down)

    def valves(self) -> dict[str, str]:
        """Return what replaces valves of the pipe."""
        return self._entries[0].valves()

    def return_to(self, host: str, owner: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say whether that is another.

        One that failed lately is not chosen. Earlier records name neither a server nor
        an account.
        """
        if self._reads(self._entries[0], host, owner):
            return False
        for one in self._entries[1:]:
            if not self._is_down(one) and self._reads(one, host, owner):
                self._entries.remove(one)
                self._entries.insert(0, one)
                return True
        return False

    def loss(self, host: str, owner: str) -> str:
        """Return what a chat loses whose reasoning the entry cannot read, or nothing."""
        return "" if self._reads(self._entries[0], host, owner) else _OTHER_ACCOUNT

    def leave_failed(self, kind: str, code: str, status: int) -> str:
        """Choose the next entry after a failure; return what to say, or nothing.

        A server that has not got the model may have others. A refusal of the request
        would be the same anywhere, and what was stopped for its safety must go on
        nowhere else.
        """
        if code in SAFETY_STOPS:
            return ""
        may_work_elsewhere = code in _ABOUT_ONE_REQUEST or status in (403, 404)
        if _is_down(kind, code, status):
            account = self._entries[0].at(self._base_url).account()
            self._down[account] = monotonic_seconds() + _DOWN_SECONDS
        elif not may_work_elsewhere:
            return ""
        if len(self._entries) == 1:
            return ""
        self._entries.pop(0)
        return _ASKS_NEXT

    def _is_down(self, entry: EndpointEntry) -> bool:
        account = entry.at(self._base_url).account()
        return monotonic_seconds() < self._down.get(account, 0)

    def _reads(self, entry: EndpointEntry, host: str, owner: str) -> bool:
        here = entry.at(self._base_url)
        return host in ("", here.host) and owner in ("", here.owner())


def _is_down(kind: str, code: str, status: int) -> bool:
    """Say whether other requests to the same account would fail as well."""
    if code in _ABOUT_ONE_REQUEST:
        return False
    is_failing = kind in _DOWN_KINDS or code in _DOWN_CODES
    return is_failing or status in (401, 429) or status >= 500


class NoEndpoint:
    """What a call gets whose entries cannot be read."""

    problem = _UNREADABLE


async def choose_endpoints(
    text: str, facts: JsonObject, down: dict[str, float]
) -> EndpointChoice | NoEndpoint | None:
    """Return where a call is answered; None where the valves of the pipe say it.

    A user's own key goes to the address of the valves alone.
    """
    entries = read_endpoints(text)
    if entries is None:
        return NoEndpoint()
    if not entries or facts.get("has_own_key"):
        return None
    user_id = str(as_mapping(facts.get("user")).get("id") or "")
    has_groups = any(entry.groups for entry in entries)
    groups = await user_groups(user_id) if has_groups else ()
    model = str(facts.get("model"))
    names = {model, resolve_model(model).id}
    found = [entry for entry in entries if entry.is_for(groups, names)]
    return EndpointChoice(found, str(facts.get("base_url")), down) if found else None
