"""Differences from recordings that are known and right, with their reasons.

docs/reference/recordings.md has the same table for readers. All others are printed as
unexplained.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from recorded.rows import Difference


@dataclass(frozen=True)
class Explanation:
    """A reason that holds for the differences of some groups."""

    reason: str
    groups: tuple[str, ...]
    """How the names of the groups begin."""
    lines: tuple[int, ...] = ()
    """The lines of the file that it holds for; empty for all of all files."""
    details: tuple[str, ...] = ()
    """How the details begin; empty for any."""
    file: str = "responses"
    """The file of the lines."""

    def explains(self, difference: Difference) -> bool:
        """Tell whether a difference has this reason."""
        recording = difference.recording
        is_line = recording.file == self.file and recording.number in self.lines
        if self.lines and not is_line:
            return False
        if self.details and not difference.detail.startswith(self.details):
            return False
        return difference.group.startswith(self.groups)


ACCEPTED = "accepted by the API, refused here: "
AUTUMN = "responses-2026-11-28"
THOUGHT = "llama.cpp-b11434-think-text"
EXPLANATIONS = (
    Explanation(
        "The model was shut down after it was recorded.",
        (
            f"{ACCEPTED}model_not_found None",
            "refused in another way: (400, 'unsupported_parameter', "
            "'reasoning.effort') recorded, (404, 'model_not_found', None) here",
        ),
    ),
    Explanation(
        "The request names items or a response that that account had stored; the "
        "simulator keeps nothing for requests that name them.",
        (
            f"{ACCEPTED}None input",
            f"{ACCEPTED}previous_response_not_found previous_response_id",
        ),
        details=(
            "Item with id",
            "Previous response with id",
            "No tool call found for",
            "No open MCP approval request found for",
        ),
    ),
    Explanation(
        "Whoever published it wrote <MASSIVE_TEXT> in place of the text.",
        ("refused by the API, accepted here: context_length_exceeded",),
        (553,),
    ),
    Explanation(
        "Edited by hand: parts of several responses stand in one stream.",
        ("decoder: ", "pipe, page", "pipe, plain"),
        (1121,),
    ),
    Explanation(
        "Made by hand: an item or an ending that the API does not send.",
        ("pipe, page from JSON: ending", "pipe, plain from JSON: ending"),
        (831, 833, 938, 990),
    ),
    Explanation(
        "Made by hand, or by another server under OpenAI's address.",
        (ACCEPTED, "pipe, plain: text"),
        (48, 49, 105, 153, 154, 155, 167, 170),
        file=AUTUMN,
    ),
    Explanation(
        "The model wrote its thoughts into the text, as another server's models do.",
        ("pipe, page from JSON", "pipe, plain from JSON"),
        (105,),
        file=AUTUMN,
    ),
    Explanation(
        "The model only thought, and the pipe says so.",
        ("pipe, page: ending",),
        (1,),
        file=THOUGHT,
    ),
    Explanation(
        "The API's own deltas of the summary are not those of the finished item. Chunks "
        "of Chat Completions cannot take back what they said.",
        ("pipe, page: deltas", "pipe, plain: thoughts"),
        (615,),
    ),
    Explanation(
        "The API sent the same message twice; it is shown once.",
        ("pipe, page from JSON: text", "pipe, plain from JSON: text"),
        (140,),
    ),
    Explanation(
        "Summaries and commentary take turns; here they are compared one after the "
        "other.",
        ("pipe, plain from JSON: thoughts",),
        (581,),
    ),
)


def find_explanation(difference: Difference) -> Explanation | None:
    """Return why ours differs, if that is known."""
    for explanation in EXPLANATIONS:
        if explanation.explains(difference):
            return explanation
    return None


def split_explained(
    differences: Iterable[Difference],
) -> tuple[list[Difference], dict[str, list[Difference]]]:
    """Return the unexplained differences, and the others by their reasons."""
    unexplained: list[Difference] = []
    explained: dict[str, list[Difference]] = {}
    for difference in differences:
        explanation = find_explanation(difference)
        if explanation is None:
            unexplained.append(difference)
        else:
            explained.setdefault(explanation.reason, []).append(difference)
    return unexplained, explained
