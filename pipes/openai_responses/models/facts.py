"""What is known about a model: what it accepts, its limits and its prices."""

import re
from typing import NamedTuple


class ModelPrices(NamedTuple):
    """US dollars for a million tokens, and how often they are paid at other tiers."""

    input: float | None
    cached: float | None
    cache_write: float | None
    output: float | None
    fast: float | None = None
    ultrafast: float | None = None
    ultrafast_until: str | None = None
    """The last day of `ultrafast`, an ISO date; then `ultrafast_later` holds."""
    ultrafast_later: float | None = None


class ImagePrices(NamedTuple):
    """US dollars for a million tokens of a model that draws."""

    text: float
    cached_text: float
    image: float
    cached_image: float
    output: float


class ModelFacts(NamedTuple):
    """What a model accepts, its limits and its prices; None where unknown.

    The defaults are for gpt-4 and for ids that say nothing (another vendor, an Azure
    deployment): a model that does not reason refuses `reasoning` and its `include` with
    a 400, and a reasoning model works without them. So they are sent only if an effort
    is asked for.
    """

    id: str = ""
    """The id in the catalog; empty if the facts are assumed."""
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
    context_window: int | None = None
    """The tokens of input and output together."""
    max_input_tokens: int | None = None
    """The tokens of input, where they are fewer than those of the window."""
    max_output_tokens: int | None = None
    shutdown: str | None = None
    """The day on which OpenAI switches the model off, an ISO date."""
    successor: str | None = None
    prices: ModelPrices | None = None
    search_fee: float | None = None
    """US dollars for a web search, where it differs from that of other models."""
    known_family: bool = True
    """False: the name says nothing, the facts are cautious."""


# o3, o4-mini
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_GPT_VERSION = re.compile(r"gpt-(?P<major>\d)(?:\.(?P<minor>\d{1,2}))?(?!\d)")
"""One digit, because Azure spells gpt-3.5 as gpt-35."""


def read_gpt_version(model_id: str) -> tuple[int, int] | None:
    """Return the version of a gpt, like (5, 4) for `gpt-5.4-mini`; else None."""
    match = _GPT_VERSION.match(model_id)
    if match is None:
        return None
    return int(match["major"]), int(match["minor"] or 0)


def assumed_facts(model_id: str) -> ModelFacts:
    """Return what is assumed of a model as long as only its id is known.

    What all models have from a version on, newer ones have, too
    (docs/reference/responses-api.md, "Unknown models"). A deployment can have any name:
    only its administrator knows its facts.
    """
    if _O_SERIES_ID.match(model_id):
        return ModelFacts(
            reasoning=True,
            efforts=("low", "medium", "high"),
            sampling="never",
            summary=True,
            hosted=True,
        )
    version = read_gpt_version(model_id)
    if version is None:
        return ModelFacts(hosted=True, known_family=False)
    if version < (5, 0):
        return ModelFacts()
    return ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=version >= (5, 4),
        long_prices=version >= (5, 4),
        regional=version >= (5, 4),
        appends_tools=version >= (5, 6),
        diagnostics=version >= (5, 6),
        appends_configuration=version >= (6, 0),
    )
