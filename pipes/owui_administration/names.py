"""Names in the rules that Open WebUI does not know, for administrators.

A mistyped group would be a rule that silently holds for no one. An address that no
one has is worse: whoever signs up with it gets its rule.
"""

from openai_responses.clock import monotonic_seconds
from owui_administration.endpoints import read_endpoints
from owui_administration.host import has_group, has_user
from owui_administration.rules import read_limits

_CHECK_SECONDS = 60.0
_MAX_LOOKED_UP = 100
"""Of users, and of groups: each is one or two questions to the database."""
_MAX_SHOWN_NAMES = 9


class NameCheck:
    """Looks names up when an administrator asks, at most once a minute."""

    def __init__(self) -> None:
        self._texts = ("", "")
        self._until = 0.0
        self._problem = ""

    async def problem(self, limits: str, endpoints: str) -> str:
        """Return the message about names in the two valves, or nothing.

        It is advice: a database that cannot be asked says nothing about the names.
        """
        texts = (limits, endpoints)
        now = monotonic_seconds()
        if texts == self._texts and now <= self._until:
            return self._problem
        users: list[str] = []
        groups: list[str] = []
        for rule in read_limits(limits)[0] or ():
            users.append(rule.user)
            groups.append(rule.group)
        for entry in read_endpoints(endpoints)[0]:
            groups += entry.groups
        unknown: list[str] = []
        try:
            for names, is_known in ((groups, has_group), (users, has_user)):
                named = dict.fromkeys(name for name in names if name)
                for name in list(named)[:_MAX_LOOKED_UP]:
                    if not await is_known(name):
                        unknown.append(name)
        except Exception:  # whatever the host's database raises
            return ""
        self._problem = ""
        if unknown:
            shown = ", ".join(unknown[:_MAX_SHOWN_NAMES])
            self._problem = (
                f"Open WebUI has no group or user named {shown}, but the valves of the "
                "filter have rules for them. These apply to nobody until somebody signs "
                "up with such an address."
            )
        self._texts = texts
        self._until = now + _CHECK_SECONDS
        return self._problem
