"""ENDPOINTS_JSON: other addresses and keys, for some groups and models.

A call is answered at the first entry that is for its user and its model, and at the
next one if that fails before an answer begins. A chat stays where its reasoning can be
read, as long as that entry is for its user.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from openai_responses.causes import (
    FLEX_UNAVAILABLE,
    REQUEST_TOO_LARGE,
    SAFETY_STOPS,
    WRONG_KEY,
)
from openai_responses.endpoint import Endpoint, bare_key
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import load_json
from openai_responses.models.resolve import resolve_model
from openai_responses.recent_texts import UserReports
from owui_administration.host import user_groups
from shells.administration import CallFacts, EndpointTrial
from shells.valve_texts import describe_mistake, fits_pattern, json_mistake

_UNREADABLE = (
    "{}, so nothing is sent. An administrator has to correct it in the valves of the "
    'filter, for example `[{{"groups": ["staff"], "api_key": "..."}}]`.'
)
_SILENT = "The model's server did not answer: asking the next one."
_UNABLE = "The model's server could not answer: asking the next one."
_OTHER_ACCOUNT = (
    "The earlier reasoning of this chat belongs to another server or account."
)
DOWN_SECONDS = 60.0
"""How long an account that failed for a user is asked last."""
_SILENT_KINDS = ("unreachable", "first_event_timeout")
_DOWN_KINDS = (*_SILENT_KINDS, "unreadable")
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
        has_secret = self.auth == "entra_id" or bool(self.key)
        return has_secret and bool(self.at("").host)

    @property
    def key(self) -> str:
        """The key that is sent: none where a token takes its place."""
        return "" if self.auth == "entra_id" else bare_key(self.api_key)

    def is_for(self, groups: Collection[str], models: Collection[str]) -> bool:
        """Say whether it is for a member of `groups` and a model with these names."""
        is_for_model = any(fits_pattern(model, self.models) for model in models)
        is_for_user = not self.groups or any(name in groups for name in self.groups)
        return is_for_model and is_for_user

    def at(self, base_url: str) -> Endpoint:
        """Return its server and account; `base_url` is that of the valves."""
        address = base_url if self.base_url is None else self.base_url
        return Endpoint(address, self.key, self.organization.strip())

    def valves(self) -> dict[str, str]:
        """Return what replaces valves of the pipe, with nothing of another account."""
        valves: dict[str, str] = {}
        for name, value in self:
            # The texts have the names of valves. The lists say whom the entry is for,
            # and without an own `base_url` or `compatibility` the valve holds.
            if isinstance(value, str):
                valves[name.upper()] = value
        valves["API_KEY"] = self.key
        # Headers may hold another key, and vector stores belong to another account.
        valves["EXTRA_HEADERS"] = ""
        valves["FILE_SEARCH_VECTOR_STORES"] = ""
        return valves


@lru_cache(maxsize=8)
def read_endpoints(text: str) -> tuple[Sequence[EndpointEntry], str]:
    """Return the entries of a JSON list, and what is wrong in it, if anything.

    An entry that cannot be read may keep chats from a server, so it is not passed over:
    then there are no entries. Their values are not told: those may be keys.
    """
    text = text if text.strip() else "[]"
    if mistake := json_mistake(text):
        return (), f"ENDPOINTS_JSON {mistake}"
    rows = load_json(text)
    if rows in ({}, ""):  # empty, too
        rows = []
    if not isinstance(rows, list):
        return (), "ENDPOINTS_JSON is not a list"
    entries: list[EndpointEntry] = []
    for number, row in enumerate(rows, 1):
        try:
            entry = EndpointEntry.model_validate(row)
            mistake = "" if entry.is_complete else "`api_key` is missing"
        except ValidationError as error:
            mistake = describe_mistake(error, EndpointEntry)
        except InvalidRequest as error:
            mistake = str(error).rstrip(".").replace("The address", "the address")
        if mistake:
            return (), f"Entry {number} of ENDPOINTS_JSON: {mistake}"
        entries.append(entry)
    return entries, ""


class EndpointChoice:
    """Where one call is answered: the first of the entries that are left."""

    def __init__(
        self,
        entries: Sequence[EndpointEntry],
        base_url: str,
        failures: UserReports,
        user_id: str,
        problem: str = "",
    ) -> None:
        """Take the entries for a user's call; those that failed lately are the last.

        `failures` are those of accounts, by the users who met them.
        """
        self.problem = problem
        """Why nothing can be sent; then there are no entries."""
        self._base_url = base_url
        self._failures = failures
        self._user_id = user_id
        self._entries = sorted(entries, key=self._is_down)

    def valves(self) -> dict[str, str]:
        """Return what replaces valves of the pipe."""
        return self._entries[0].valves()

    def return_to(self, host: str, scope_id: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say whether that is another.

        One that failed lately is not chosen. Earlier records name neither a server nor
        an account.
        """
        chosen, *others = self._entries
        if self._can_read(chosen, host, scope_id):
            return False
        for entry in others:
            if self._can_read(entry, host, scope_id) and not self._is_down(entry):
                self._entries.remove(entry)
                self._entries.insert(0, entry)
                return True
        return False

    def lost_reasoning_notice(self, host: str, scope_id: str) -> str:
        """Return what to say if the entry cannot read a chat's reasoning, or nothing."""
        if self._can_read(self._entries[0], host, scope_id):
            return ""
        return _OTHER_ACCOUNT

    def mark_failed(self, kind: str, code: str | None, status: int) -> str:
        """Choose the next entry after a failure; return what to say, or nothing.

        A server that has not got the model may have others. A refusal of the request
        would be the same anywhere, and what was stopped for its safety must go on
        nowhere else.
        """
        # Whoever asks elsewhere works around what OpenAI's monitoring stopped (guide
        # "Safety checks: misalignment monitoring").
        if code in SAFETY_STOPS:
            return ""
        is_about_request = code in _ABOUT_ONE_REQUEST
        is_down = kind in _DOWN_KINDS or code in _DOWN_CODES
        is_refusing = status in (401, 429) or status >= 500
        is_missing = code == "model_not_found" or status in (403, 404)
        if (is_down or is_refusing) and not is_about_request:
            # Other requests to the same account would fail as well.
            account = self._entries[0].at(self._base_url).account()
            self._failures.add(account, self._user_id)
        elif not (is_missing or is_about_request):
            return ""
        if len(self._entries) == 1:
            return ""
        self._entries.pop(0)
        return _SILENT if kind in _SILENT_KINDS else _UNABLE

    def _is_down(self, entry: EndpointEntry) -> bool:
        account = entry.at(self._base_url).account()
        return self._failures.holds(account, self._user_id)

    def _can_read(self, entry: EndpointEntry, host: str, scope_id: str) -> bool:
        """Say whether an entry can read what a server and an account encrypted."""
        endpoint = entry.at(self._base_url)
        try:
            is_same_server = host in ("", endpoint.host)
        except InvalidRequest:  # that of the valves; the pipe tells it if it is chosen
            return False
        is_same_account = scope_id in ("", endpoint.reasoning_scope_id())
        return is_same_server and is_same_account


def endpoint_trials(
    text: str, base_url: str, models: Sequence[str]
) -> list[EndpointTrial]:
    """Return each entry of ENDPOINTS_JSON (see `CallAccount.endpoint_trials`)."""
    trials: list[EndpointTrial] = []
    for entry in read_endpoints(text)[0]:
        # The first model that the entry is for, or the first of all, if there is any.
        model = models[0] if models else ""
        for listed in models:
            if entry.is_for(entry.groups, _model_names(listed)):
                model = listed
                break
        choice = EndpointChoice([entry], base_url, UserReports(), "")
        trials.append(EndpointTrial(model, choice))
    return trials


def _model_names(model: str) -> set[str]:
    """Return the names of a model that an entry can state: as listed, and the API's."""
    return {model, resolve_model(model).id}


async def choose_endpoints(
    text: str, facts: CallFacts, failures: UserReports
) -> EndpointChoice | None:
    """Return where a call is answered; None where the valves of the pipe say it.

    A user's own key goes to the address of the valves alone.
    """
    entries, mistake = read_endpoints(text)
    base_url = facts["base_url"]
    user_id = facts["user_id"]
    if mistake:
        problem = _UNREADABLE.format(mistake)
        return EndpointChoice([], base_url, failures, user_id, problem)
    if facts["has_own_key"]:
        return None
    groups: set[str] = set()
    if any(entry.groups for entry in entries):
        groups = await user_groups(user_id)
    names = _model_names(facts["model"])
    usable = [entry for entry in entries if entry.is_for(groups, names)]
    if not usable:
        return None
    return EndpointChoice(usable, base_url, failures, user_id)
