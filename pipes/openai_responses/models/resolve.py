"""Resolves a model name to an id and to the facts about the model.

The first that fits, so that a real id always has priority:

1. an id of the catalog, with or without a date at its end (the date is sent as given);
2. one of our names: an alias of the catalog, `gpt-5-thinking-mini`, `gpt-5.2-instant`;
3. one of both with an effort at its end: `o3-mini-high`, `gpt-5-thinking-minimal`;
4. one of these with `-pro`, in front of an effort, of a model that has the mode pro:
   `gpt-6.1-sol-pro`, `gpt-6.1-sol-pro-high`;
5. any other name, with the facts of its family, or with cautious facts.

An administrator's override takes the facts of the model in `like`, or of the family,
and replaces some of them: `{"my-gpt": {"like": "gpt-5.2", "vision": false}}`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from openai_responses.errors import InvalidRequest, valve_error
from openai_responses.json_input import fits_form, parse_json_object
from openai_responses.models.catalog import (
    CATALOG_ALIASES,
    CATALOG_SERVED_AS,
    CATALOG_TABLE,
    CATALOG_WORDS,
)

REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_SNAPSHOT_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2})$")
_GPT_VERSION = re.compile(r"gpt-(\d)(?:\.(\d{1,2}))?(?!\d)")
"""One digit, because Azure spells gpt-3.5 as gpt-35."""
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_THINKING_NAME = re.compile(r"(gpt-\d(?:\.\d+)?)-thinking(-mini|-nano)?$")
_INSTANT_NAME = re.compile(r"(gpt-\d(?:\.\d+)?)-instant$")
_PRO_NAME = re.compile(r"(gpt-[\w.-]+)-pro(-[a-z]+)?$")
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


class ModelPrices(NamedTuple):
    """US dollars for a million tokens, and how often they are paid at other tiers."""

    input: float | None
    cached: float | None
    cache_write: float | None
    output: float | None
    fast: float | None = None
    ultrafast: float | None = None
    ultrafast_until: float | None = None
    """The last day of `ultrafast`, like 20270228; then `ultrafast_later` holds."""
    ultrafast_later: float | None = None


class ModelFacts(NamedTuple):
    """What a model accepts, its limits and its prices; None where unknown.

    The defaults are for gpt-4 and for ids that say nothing (another vendor, an Azure
    deployment): a model that does not reason refuses `reasoning` and its `include` with
    a 400, and a reasoning model works without them. So they are sent only if an effort
    is asked for.
    """

    reasoning: bool = False
    efforts: tuple[str, ...] = ()
    """Lowest first; empty: none, or unknown."""
    default_effort: str | None = None
    """What the API uses when none is sent."""
    sampling: str = "always"
    """Or "with_none", "never": temperature, top_p, logprobs."""
    summary: bool = False
    verbosity: bool = False
    functions: bool = True
    hosted: bool = False
    """It takes the tools that OpenAI itself runs."""
    lacks: tuple[str, ...] = ()
    """Types of such tools that it does not take."""
    vision: bool = True
    prefix_bound: bool = False
    """Reasoning is dropped when what preceded it changed, and `instructions` stand
    behind the input, where no cache reaches them."""
    appends_tools: bool = False
    """It takes `additional_tools` items, and `allowed_tools` that name their tools."""
    appends_configuration: bool = False
    """It takes `configuration_update` items."""
    pro_mode: bool = False
    """It takes the `reasoning.mode` pro."""
    all_turns: bool = False
    """It takes the `reasoning.context` all_turns."""
    diagnostics: bool = False
    """It says why a prompt was not found in the cache."""
    long_prices: bool = False
    """Above 272,000 tokens of input the whole request costs more."""
    regional: bool = False
    """It costs 10 % more at OpenAI's hosts of a region."""
    context: int | None = None
    """The tokens of input and output together."""
    max_output_tokens: int | None = None
    shutdown: str | None = None
    """ISO date."""
    successor: str | None = None
    prices: ModelPrices | None = None
    known_family: bool = True
    """False: the name says nothing, the facts are cautious."""


_PLAIN_FACTS = ModelFacts()


class ResolvedModel(NamedTuple):
    """What a name stands for.

    `id` is sent as `model`, `name` is for people. Encrypted reasoning is readable
    inside one `family`. `effort` and `pro`, the mode, are those that the name stood for.
    """

    id: str
    family: str
    effort: str | None
    facts: ModelFacts
    name: str
    pro: bool = False

    def lowest_effort(self) -> str | None:
        """Return the cheapest effort known to be accepted."""
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        """Say whether the model accepts an effort; if unknown, it may be tried."""
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family


def resolve_model(
    name: str, overrides: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ResolvedModel:
    """Resolve any name, an administrator's first; an unknown one is sent as it is.

    An effort at the end of an overridden name counts if the model accepts it.
    """
    if name in overrides:
        return overrides[name]
    base, _, effort = name.rpartition("-")
    model = overrides.get(base)
    if model and effort in REASONING_EFFORTS and model.takes_effort(effort):
        return model._replace(effort=effort, name=f"{model.name} ({effort})")
    if (match := _PRO_NAME.match(name)) and not _named_model(name):
        model = resolve_model(match[1] + (match[2] or ""), overrides)
        if model.facts.pro_mode:
            shown = _shown_name(f"{model.id}-pro", model.effort)
            return model._replace(name=shown, pro=True)
    id, found = _named_model(name) or _model_with_effort(name) or (name, None)
    facts, shown = _model_facts(id), _shown_name(id, found)
    return ResolvedModel(id, _model_family(id), found, facts, shown)


def _named_model(name: str) -> tuple[str, str | None] | None:
    if name in CATALOG_FACTS or _model_family(name) in CATALOG_FACTS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    return _thinking_or_instant(name)


def _thinking_or_instant(name: str) -> tuple[str, str | None] | None:
    """Resolve ChatGPT's words for a model that thinks, or does not.

    From gpt-5.1 to 5.4 the default is not to think at all.
    """
    if match := _THINKING_NAME.match(name):
        facts = CATALOG_FACTS.get(model_id := match[1] + (match[2] or ""))
        thinks = "medium" if facts and facts.default_effort == "none" else None
        return (model_id, thinks) if facts else None
    if match := _INSTANT_NAME.match(name):
        facts = CATALOG_FACTS.get(match[1])
        return (match[1], "none") if facts and "none" in facts.efforts else None
    return None


def _model_with_effort(name: str) -> tuple[str, str] | None:
    """Resolve a name with an effort at its end.

    gpt-5.1-codex-max was a model: a newer one of that name is not the effort max.
    """
    base, _, effort = name.rpartition("-")
    if effort not in REASONING_EFFORTS or name.startswith("ft:"):
        return None
    if base.endswith("-codex") and effort == "max":
        return None
    model_id, _ = _named_model(base) or (base, None)
    facts = _model_facts(model_id)
    accepted = effort in facts.efforts if facts.efforts else facts.reasoning
    return (model_id, effort) if accepted else None


def _model_family(model_id: str) -> str:
    """Return the id without its date, after the redirections of the API itself."""
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    """Return the facts of an id, with or without a date, or those of its family.

    Fine-tuned models and routers have prices of their own. A deployment can have any
    name: only its administrator knows its facts.
    """
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_FACTS:
            return CATALOG_FACTS[name]
    if match := _WRAPPED_ID.match(model_id):
        return _model_facts(match[1])._replace(prices=None)
    if _O_SERIES_ID.match(model_id):
        efforts = tuple(_expand_words("some"))
        return _reasoning_facts("usual")._replace(efforts=efforts)
    match = _GPT_VERSION.match(model_id)
    if not match:
        return _PLAIN_FACTS._replace(hosted=True, known_family=False)
    version = (int(match[1]), int(match[2] or 0))
    if version < (5, 0):
        return _PLAIN_FACTS
    known = [name for name in CATALOG_WORDS if name[0].isdigit()]
    newest = [name for name in known if tuple(map(int, name.split("."))) <= version]
    return _reasoning_facts(newest[-1] if newest else "full")


def _reasoning_facts(traits: str) -> ModelFacts:
    """Return what is assumed of a model that the catalog does not have
    (docs/reference/responses-api.md, "Unknown models")."""
    return ModelFacts(sampling="never", **_read_traits(_expand_words(traits)))


def _expand_words(text: str) -> list[str]:
    """Return the efforts or traits that words of the catalog stand for."""
    words = list[str]()
    for word in text.split():
        words += _expand_words(CATALOG_WORDS[word]) if word in CATALOG_WORDS else [word]
    return words


def _read_traits(words: list[str]) -> dict[str, Any]:
    return {name: name in words for name in _YES_OR_NO_FACTS - {"known_family"}}


def _shown_name(model_id: str, effort: str | None) -> str:
    """Return `GPT-5.6 Sol (high)` for `gpt-5.6-sol` with effort high; other ids stay."""
    name, notes = model_id, [effort] if effort else []
    if _GPT_VERSION.match(model_id):
        if match := _SNAPSHOT_DATE.search(model_id):
            notes.insert(0, match[1])
        _, version, *words = _SNAPSHOT_DATE.sub("", model_id).split("-")
        shown = [w if w in _SIZES else w.capitalize() for w in words if w != "latest"]
        name = " ".join((f"GPT-{version}", *shown))
    return f"{name} ({', '.join(notes)})" if notes else name


_SIZES = ("mini", "nano", "pro")


_YES_OR_NO_FACTS = frozenset(
    name for name, fact in _PLAIN_FACTS._asdict().items() if isinstance(fact, bool)
)


def _read_catalog_row(line: str) -> tuple[str, ModelFacts]:
    """Return a model of the table and its facts.

    Models that reason take sampling parameters only with the effort `none`.
    """
    name, efforts, effort, traits, *rest = line.split("|")
    context, output, prices, shutdown, successor = rest
    words = _expand_words(traits)
    sampling = "never" if "reasoning" in words else "always"
    return name, ModelFacts(
        **_read_traits(words),
        lacks=tuple(word[1:] for word in words if word[0] == "-"),
        efforts=tuple(_expand_words(efforts)),
        default_effort=effort or None,
        sampling="with_none" if "none" in efforts else sampling,
        context=int(context.replace("k", "000")) if context else None,
        max_output_tokens=int(output.replace("+", "128000")) if output else None,
        shutdown=shutdown or None,
        successor=successor or None,
        prices=ModelPrices(*_prices(prices)) if prices else None,
    )


def _prices(text: str) -> list[float | None]:
    return [None if one == "-" else float(one) for one in text.split()]


CATALOG_FACTS = dict(map(_read_catalog_row, CATALOG_TABLE.split("\n")[2:-1]))
"""The facts of each model of the catalog, by id."""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value > 0


_OVERRIDE_FORMS = {
    **dict.fromkeys(_YES_OR_NO_FACTS, bool),
    **dict.fromkeys(("default_effort", "shutdown", "successor", "like", "name"), str),
    **dict.fromkeys(("context", "max_output_tokens"), _is_count),
    "sampling": "always|with_none|never",
    "lacks": [str],
    "efforts": ["|".join(REASONING_EFFORTS)],
    "phase": object,
}
"""The facts that an entry can have; it may still have `phase`, which is not used."""


@lru_cache(maxsize=8)
def read_overrides(text: str) -> dict[str, ResolvedModel]:
    """Return the models that a JSON object describes; raises InvalidRequest."""
    table = parse_json_object(text.strip() or "{}")
    if table is None:
        problem = "MODEL_OVERRIDES_JSON is not a JSON object"
        raise valve_error(problem, '{"my-gpt": {"like": "gpt-5.2"}}')
    return {model: _read_override(model, row) for model, row in table.items()}


def _read_override(model_id: str, row: object) -> ResolvedModel:
    if not isinstance(row, Mapping):
        raise _entry_error(model_id, "is no JSON object")
    for key, value in row.items():
        if not fits_form({key: value}, _OVERRIDE_FORMS):
            raise _entry_error(model_id, f"has a wrong {str(key)[:40]}")
    facts = {key: value for key, value in row.items() if key != "phase"}
    like, name = facts.pop("like", ""), facts.pop("name", "")
    for key in facts.keys() & {"efforts", "lacks"}:
        facts[key] = tuple(facts[key])
    model = resolve_model(like or model_id)
    if like:
        model = ResolvedModel(model_id, model_id, None, model.facts, model_id)
    return model._replace(facts=model.facts._replace(**facts), name=name or model.name)


def _entry_error(model: str, what: str) -> InvalidRequest:
    return valve_error(f"MODEL_OVERRIDES_JSON: the entry {model} {what}")
