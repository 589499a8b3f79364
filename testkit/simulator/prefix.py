"""What the prompt cache and replayed reasoning depend on, by model.

=====================  ============================  =================================
setting                the prompt cache              reasoning (from gpt-6.2 on)
=====================  ============================  =================================
model, cache key       another cache                 the family must be the same
service tier           another cache                 no
parallel_tool_calls    another cache                 no
text.verbosity         another cache                 no
context_management     another cache                 no
text.format            another cache                 dropped
reasoning.effort       another cache                 dropped (whether it costs more than
                                                     cache is not known: assumed)
tools                  from the first changed one    dropped
instructions           before 6.2: from there on;    before 6.2: nothing is dropped;
                       then after the input, never   then no
                       cached
items of the input     from the first changed one    what comes after it is dropped
=====================  ============================  =================================

Sources: guide "Keep the prefix unchanged"; guide "Prompt caching"; guide "Prompt cache
diagnostics". ``tool_choice``, ``include``, ``max_output_tokens`` and ``metadata`` are
on no list: assumed to cost nothing. A setting at request level counts by its effect, so
that a default may be left out: assumed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.models import ModelFacts
from simulator.sealing import serialize_value
from simulator.tokens import count_prompt, count_tokens

Body = Mapping[str, Any]
Item = Mapping[str, Any]
TIERS = {"fast": "priority", "auto": "default"}


def read_tier(body: Body) -> str:
    """Return the tier that is used: ``fast`` shows as ``priority``."""
    wanted = body.get("service_tier") or "auto"
    return TIERS.get(wanted, wanted)


def _read_settings(body: Body, model: ModelFacts) -> dict[str, Any]:
    """Return the request's settings that the cache depends on."""
    text = body.get("text") or {}
    reasoning = body.get("reasoning") or {}
    return {
        "service_tier": read_tier(body),
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "text_format": text.get("format") or {"type": "text"},
        "reasoning_effort": reasoning.get("effort") or model.default_effort,
        "verbosity": text.get("verbosity") or "medium",
        "context_management": body.get("context_management") or [],
    }


def _serialize_head(body: Body, model: ModelFacts) -> bytes:
    """Serialize what precedes the input: tools, then instructions before 6.2."""
    first = "" if model.reads_instructions_last else body.get("instructions") or ""
    return serialize_value([body.get("tools") or [], first])


def serialize_bound_head(body: Body, model: ModelFacts) -> bytes:
    """Serialize what reasoning is bound to besides the items before it."""
    head = _serialize_head(body, model)
    if not model.binds_reasoning_to_prefix:
        return head
    settings = _read_settings(body, model)
    bound = [settings["text_format"], settings["reasoning_effort"]]
    return head + b"\n" + serialize_value(bound)


@dataclass(frozen=True)
class Prompt:
    """A prompt as the cache sees it."""

    settings: Mapping[str, Any]
    prefix: bytes
    """What can be cached; a longer chat starts with a shorter one."""
    behind: bytes
    """What follows the input and is billed in full."""
    reasoning_tokens: int

    @property
    def text(self) -> bytes:
        return self.prefix + self.behind

    @property
    def tokens(self) -> int:
        return count_prompt(self.prefix) + self.reasoning_tokens + self.uncached_tokens

    @property
    def uncached_tokens(self) -> int:
        """The tokens that are neither read from the cache nor written to it."""
        return count_tokens(self.behind) if self.behind else 0


def build_prompt(
    body: Body, model: ModelFacts, items: Iterable[Item], reasoning_tokens: int
) -> Prompt:
    """Return the prompt of a body whose items are canonical."""
    lines = [_serialize_head(body, model), *map(serialize_value, items)]
    last = body.get("instructions") if model.reads_instructions_last else None
    behind = b"\n" + serialize_value(last) if last else b""
    settings = _read_settings(body, model)
    return Prompt(settings, b"\n".join(lines), behind, reasoning_tokens)
