"""The log of a run: rounds, in them the model and its tools, each with its time."""

from collections.abc import Callable

from gpt5_agent.events import StepEnded, StepKind, StepStarted
from openai_responses.models.usage import Usage


class Steps:
    """Makes the events of the log; `log` takes a line for each end."""

    def __init__(
        self, log: Callable[[str], object], now: Callable[[], float], *, debug: bool
    ) -> None:
        """With `debug` the events say what was given and returned."""
        self._log = log
        self._now = now
        self._debug = debug
        self._began: dict[str, tuple[StepStarted, float]] = {}

    def start(
        self,
        kind: StepKind,
        label: str,
        *,
        parent: str = "",
        may_call: bool = False,
        detail: str = "",
    ) -> StepStarted:
        """Return the event of a step that begins."""
        name = f"{parent}/{len(self._began) + 1}" if parent else label
        shown = detail if self._debug else ""
        step = StepStarted(name, parent, kind, label, may_call, shown)
        self._began[name] = (step, self._now())
        return step

    def end(
        self,
        step: StepStarted,
        *,
        usage: Usage | None = None,
        failed: bool = False,
        detail: str = "",
    ) -> StepEnded:
        """Return the event of a step that ended."""
        _, began = self._began[step.id]
        ended = StepEnded(
            step.id,
            step.kind,
            step.label,
            self._now() - began,
            usage,
            failed,
            detail if self._debug else "",
        )
        parent = self._began.get(step.parent)
        within = f"{parent[0].label} > " if parent else ""
        self._log(f"{within}{step_line(ended)}{step.detail and f' {step.detail}'}")
        return ended


def step_line(step: StepEnded) -> str:
    """Return a step as a line: what it was, how long it took, for how many tokens."""
    notes = [f"{step.seconds:.1f} s"]
    notes += [f"{step.usage.total} tokens"] if step.usage else []
    notes += ["failed"] if step.failed else []
    return f"{step.label}: {', '.join(notes)}"
