"""Resolves a model name to an id and to the facts about the model.

The first that fits, so that a real id always has priority:

1. an id of the catalog, with or without a date at its end (the date is sent as given);
2. one of our names: an alias of the catalog, `gpt-5-thinking-mini`, `gpt-5.2-instant`;
3. one of both with an effort at its end: `o3-mini-high`, `gpt-5-thinking-minimal`;
4. one of these with `-pro`, in front of an effort, of a model that has the mode pro:
   `gpt-6.1-sol-pro`, `gpt-6.1-sol-pro-high`;
5. one of these with `-research` at its end: `gpt-6.1-sol-research`;
6. any other name, with the facts of its family, or with cautious facts.

Models that are described elsewhere (`overrides`) have priority over all of these.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from openai_responses.models.catalog import (
    CATALOG_ALIASES,
    CATALOG_MODELS,
    CATALOG_SERVED_AS,
    CATALOG_SUCCESSORS,
)
from openai_responses.models.facts import ModelFacts, assumed_facts, read_gpt_version

REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# gpt-5.4-2026-03-05
_SNAPSHOT_DATE = re.compile(r"-(?P<date>\d{4}-\d{2}-\d{2})$")
_THINKING_NAME = re.compile(
    r"(?P<model>gpt-\d(?:\.\d+)?)-thinking(?P<size>-mini|-nano)?$"
)
_INSTANT_NAME = re.compile(r"(?P<model>gpt-\d(?:\.\d+)?)-instant$")
# gpt-6.1-sol-pro, gpt-6.1-sol-pro-high
_PRO_NAME = re.compile(r"(?P<model>gpt-[\w.-]+)-pro(?P<effort>-[a-z]+)?$")
# openai/gpt-5.4 of OpenRouter, ft:gpt-4.1:... of OpenAI
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


CATALOG_FACTS = {
    name: CATALOG_MODELS[name]._replace(id=name) for name in CATALOG_MODELS
}
"""The facts of each model of the catalog, by id."""


class ResolvedModel(NamedTuple):
    """What a name stands for."""

    id: str
    """Sent as `model`."""
    family: str
    """Encrypted reasoning is readable inside one family."""
    effort: str | None
    """The one in the name, if any."""
    facts: ModelFacts
    name: str
    """For users."""
    pro: bool = False
    """Whether the name asks for the pro mode."""
    research: bool = False
    """Whether the name asks for research."""

    def lowest_effort(self) -> str | None:
        """Return the cheapest effort known to be accepted."""
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        """Say whether the model accepts an effort; if unknown, it may be tried."""
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family

    def fit_effort(self, effort: str | None) -> str | None:
        """Return an effort that is asked for as the model takes it; None for none."""
        if effort == "max" and self.facts.efforts:  # the highest of the model
            return self.facts.efforts[-1]
        return effort if effort and self.takes_effort(effort) else None


def resolve_model(
    name: str, overrides: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ResolvedModel:
    """Resolve any name, one of `overrides` first; an unknown one is sent as it is.

    An effort at the end of an overridden name counts if the model accepts it.
    """
    if name in overrides:
        return overrides[name]
    base, _, effort = name.rpartition("-")
    model = overrides.get(base)
    if model and effort in REASONING_EFFORTS and model.takes_effort(effort):
        return model._replace(effort=effort, name=f"{model.name} ({effort})")
    in_mode = _resolve_mode(name, overrides) if len(name) <= _LONGEST_NAME else None
    if in_mode:
        return in_mode
    known = _named_model(name) or _model_with_effort(name) or (name, None)
    model_id, stated_effort = known
    shown_name = _AUTO_NAMES.get(name) or _shown_name(model_id, stated_effort)
    return ResolvedModel(
        id=model_id,
        family=_model_family(model_id),
        effort=stated_effort,
        facts=_model_facts(model_id),
        name=shown_name,
    )


_LONGEST_NAME = 200
"""Characters of a name with endings of ours: each is resolved by a call of its own."""

AUTO_MODEL = "gpt-5-auto"
_AUTO_NAMES = {AUTO_MODEL: "GPT Auto (chooses for each chat)"}
"""A name that stands for several models must not look like one of them."""
_RESEARCH = "-research"
_RESEARCH_EFFORTS = ("high", "xhigh", "max")


def _resolve_mode(
    name: str, overrides: Mapping[str, ResolvedModel]
) -> ResolvedModel | None:
    """Resolve a name with `-pro` or `-research` where that is a mode and no model.

    Retired models and those of other vendors have such names, too. The effort of
    research is high if the name has none (OpenAI's guide "Web search" recommends `high`
    or `xhigh`).
    """
    if name in CATALOG_FACTS or name in CATALOG_SUCCESSORS:
        return None
    if name.endswith(_RESEARCH):
        model = resolve_model(name.removesuffix(_RESEARCH), overrides)
        if model.facts.known_family:
            effort = model.effort
            if effort not in _RESEARCH_EFFORTS and model.takes_effort("high"):
                effort = "high"
            shown = f"{model.name} Research"
            return model._replace(effort=effort, name=shown, research=True)
    match = _PRO_NAME.match(name)
    if match:
        model = resolve_model(match["model"] + (match["effort"] or ""), overrides)
        if model.facts.pro_mode:
            shown = _shown_name(f"{model.id}-pro", model.effort)
            return model._replace(name=shown, pro=True)
    return None


def takes_hosted_tool(model: ResolvedModel, kind: str) -> bool:
    """Say whether a model takes a type of OpenAI's tools.

    Of the types that it lacks the beginnings are compared: one that lacks `web_search`
    lacks `web_search_preview`, too.
    """
    return model.facts.hosted and not kind.startswith(model.facts.lacks)


def takes_search_budget(model: ResolvedModel) -> bool:
    """Say whether a model's web search takes a `return_token_budget`.

    It is for "GPT-5+ reasoning web search runs" (OpenAI's changelog, 2026-05-11).
    """
    version = read_gpt_version(model.facts.id or model.family)
    return model.facts.reasoning and version is not None and version >= (5, 0)


def _named_model(name: str) -> tuple[str, str | None] | None:
    if name in CATALOG_FACTS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    # ChatGPT's words for a model that thinks, or does not. From gpt-5.1 to 5.4 the
    # default is not to think at all.
    thinking = _THINKING_NAME.match(name)
    if thinking:
        model_id = thinking["model"] + (thinking["size"] or "")
        if model_id not in CATALOG_FACTS:
            return None
        if CATALOG_FACTS[model_id].default_effort == "none":
            return model_id, "medium"
        return model_id, None
    instant = _INSTANT_NAME.match(name)
    if instant:
        model_id = instant["model"]
        facts = CATALOG_FACTS.get(model_id)
        if facts and "none" in facts.efforts:
            return model_id, "none"
    return None


def _model_with_effort(name: str) -> tuple[str, str | None] | None:
    """Resolve a name with an effort at its end.

    gpt-5.1-codex-max was a model: a newer one of that name is not the effort max. The
    last word of a fine-tuned model is its owner's.
    """
    base, _, effort = name.rpartition("-")
    if effort not in REASONING_EFFORTS or name.startswith("ft:"):
        return None
    if base.endswith("-codex") and effort == "max":
        return None
    model_id, _ = _named_model(base) or (base, None)
    facts = _model_facts(model_id)
    is_accepted = facts.reasoning
    if facts.efforts:
        is_accepted = effort in facts.efforts
    return (model_id, effort) if is_accepted else None


def _model_family(model_id: str) -> str:
    """Return the id without its date, after the redirections of the API itself."""
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    """Return the facts of an id, with or without a date, or those of its family.

    Fine-tuned models and routers have prices of their own.
    """
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_FACTS:
            return CATALOG_FACTS[name]
    wrapped = _WRAPPED_ID.match(model_id)
    if wrapped:
        return _model_facts(wrapped[1])._replace(prices=None)
    return assumed_facts(model_id)


def successor_of(model_id: str) -> ResolvedModel | None:
    """Return what OpenAI recommends instead of a model that it has switched off."""
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_SUCCESSORS:
            return resolve_model(CATALOG_SUCCESSORS[name])
    return None


_SIZES = ("mini", "nano", "pro")


def _shown_name(model_id: str, effort: str | None) -> str:
    """Return `GPT-5.6 Sol (high)` for `gpt-5.6-sol` with effort high; other ids stay."""
    name = model_id
    notes: list[str] = []
    if read_gpt_version(model_id):
        snapshot = _SNAPSHOT_DATE.search(model_id)
        if snapshot:
            notes.append(snapshot["date"])
        _, version, *words = _SNAPSHOT_DATE.sub("", model_id).split("-")
        name = f"GPT-{version}"
        for word in words:
            if word != "latest":
                name += f" {word if word in _SIZES else word.capitalize()}"
    if effort:
        notes.append(effort)
    return f"{name} ({', '.join(notes)})" if notes else name
