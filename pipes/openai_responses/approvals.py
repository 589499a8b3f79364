"""Whether a call may run: by rule, or by asking a person.

A rule is a pattern of tool names with an answer, `delete_*=ask`; the first that fits
counts. Nobody there to ask, or no clear yes, is a no.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from openai_responses.errors import InvalidRequest
from openai_responses.redaction import error_place

Approval = Literal["auto", "ask", "deny"]

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[bool]]
"""Shows a person the id, the name and the arguments of a call; True is a yes."""


@dataclass(frozen=True, slots=True)
class Approver:
    """The rules of a request, with the way to ask for the calls they leave open.

    `log` takes a line when asking failed.
    """

    rules: Sequence[tuple[str, Approval]] = ()
    otherwise: Approval = "auto"
    ask: Ask | None = field(default=None, compare=False)
    log: Callable[[str], object] = field(default=str, compare=False)

    def rule_for(self, name: str) -> Approval:
        """Return what the rules say of a tool."""
        fitting = (
            answer for pattern, answer in self.rules if fnmatchcase(name, pattern)
        )
        return next(fitting, self.otherwise)

    @property
    def may_ask(self) -> bool:
        """Whether there is a tool, known or not, for which a person is asked."""
        return "ask" in (self.otherwise, *(answer for _, answer in self.rules))

    async def refusal(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> str | None:
        """Return what to tell the model of a call that may not run, or None."""
        match self.rule_for(name):
            case "auto":
                return None
            case "deny":
                return f"The administrator does not allow {name}. Do not call it again."
        if await self._is_approved(call_id, name, arguments):
            return None
        return f"The user did not approve this call of {name}. Go on without it."

    async def _is_approved(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        try:
            return self.ask is not None and await self.ask(call_id, name, arguments)
        except Exception as error:  # whoever cannot be asked has not said yes
            self.log(f"nobody could be asked about {name}: {error_place(error)}")
            return False


def read_rules(text: str) -> list[tuple[str, Approval]]:
    """Return the rules of a valve, one a line or a comma: `pattern=auto|ask|deny`.

    A pattern alone means `ask`. Raises InvalidRequest for any other word.
    """
    rules: list[tuple[str, Approval]] = []
    for entry in text.replace("\n", ",").split(","):
        pattern, _, answer = (part.strip() for part in entry.partition("="))
        match answer or "ask":
            case "auto" | "ask" | "deny" as known if pattern:
                rules.append((pattern, known))
            case _ if pattern or answer:
                raise InvalidRequest(
                    "TOOL_APPROVAL holds something that is no rule. An administrator "
                    "has to correct it in the valves, for example `delete_*=ask`."
                )
    return rules
