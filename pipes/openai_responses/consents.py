"""A person's consent to the calls that the API wants to make at remote servers.

The API asks where the description of a server says so, and wherever it does not say
anything; so what no rule decides is asked here, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openai_responses.approvals import Approver
from openai_responses.items import Item
from openai_responses.json_texts import typed_object
from openai_responses.remote_calls import refused_pair, remote_name
from openai_responses.run_events import (
    CallAnswered,
    ItemEnded,
    ItemStarted,
    RunEvent,
)


@dataclass(frozen=True, slots=True)
class Consent:
    """What was decided about one request; `refusal` says why it may not be."""

    request: Item
    refusal: str | None

    @property
    def response(self) -> Item:
        """The input item that tells the API."""
        told: Item = {
            "type": "mcp_approval_response",
            "approval_request_id": self.request.get("id"),
            "approve": self.refusal is None,
        }
        return told | ({"reason": self.refusal} if self.refusal else {})

    @property
    def output(self) -> list[Item]:
        """What the output of the run grows by: a refused call stands there as one."""
        if self.refusal is None:
            return [self.response]
        call, output = refused_pair(self.request, self.refusal)
        return [{**call, "id": f"fc_{call['call_id']}"}, output]

    def events(self, index: int) -> list[RunEvent]:
        """Return how that looks to viewers, from the item at `index` on.

        Of an allowed call they will see the call itself.
        """
        if self.refusal is None:
            return []
        call, output = self.output
        return [
            ItemStarted(index, call),
            ItemEnded(index, call),
            CallAnswered(index + 1, output, failed=True),
        ]


async def asked_consents(requests: Sequence[Item], approver: Approver) -> list[Consent]:
    """Return what the rules, or a person, say of each request, one after the other."""
    careful = replace(approver, otherwise="ask")
    return [
        Consent(
            request,
            await careful.refusal(
                str(request.get("id")), remote_name(request), _shown_arguments(request)
            ),
        )
        for request in requests
    ]


def refused_consents(requests: Sequence[Item], why: str) -> list[Consent]:
    """Return a refusal of each request, about which nobody was asked."""
    return [Consent(one, f"{remote_name(one)} {why}") for one in requests]


def _shown_arguments(request: Item) -> Mapping[str, Any]:
    """Return what a person is shown: the arguments, or their text if they are none."""
    text = str(request.get("arguments") or "{}")
    arguments = typed_object(text)
    return {"arguments": text} if arguments is None else arguments
