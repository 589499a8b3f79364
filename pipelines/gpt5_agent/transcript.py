"""What a run has come to: the history that is sent, the items that came of it."""

from collections.abc import Iterable, Sequence

from openai_responses.items import Item
from openai_responses.loop.events import ItemEnded, ItemStarted, ToolOutput
from openai_responses.loop.tools import ToolResult, output_item
from openai_responses.requests.replay import replay_output


class Transcript:
    """Grows by answers of the model and by outputs of calls."""

    def __init__(self, history: Iterable[Item]) -> None:
        """Begin with what was said before."""
        self.history = list(history)
        self.output: list[Item] = []
        self.next_index = 0

    def add_answer(self, items: Sequence[Item]) -> None:
        """Add what the model answered."""
        self.output += items
        self.history += replay_output(items, with_reasoning=True)

    def add_output(self, call: Item, answer: ToolResult) -> ToolOutput:
        """Add the output of a call; return the event of it."""
        item = output_item(call, answer)
        self.output.append(item)
        self.history.append(item)
        self.next_index += 1
        return ToolOutput(self.next_index - 1, item, answer.failed, answer.card)

    def shown_call(self, call: Item) -> tuple[ItemStarted, ItemEnded]:
        """Return the events of a call that no answer of this run brought."""
        self.next_index += 1
        index = self.next_index - 1
        return ItemStarted(index, call), ItemEnded(index, call)
