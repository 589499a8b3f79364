"""Writes the catalog module of the Responses package from `models.json`.

`models.json` is edited by hand: each fact of a model is under the source that
says it, and each source has a date. `generate.py` rewrites the module, and
`generate.py --check` only reports whether it is current. Black formats the module, so
both need the development environment (`.venv`).

A model whose last day is over moves from `models` to `retired`, where only that day and
its successor are kept.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import black

PIPES = Path(__file__).resolve().parents[2] / "pipes"
sys.path.insert(0, str(PIPES))

from openai_responses.models.facts import (  # noqa: E402
    ImagePrices,
    ModelFacts,
    ModelPrices,
    assumed_facts,
)

FACTS_FILE = Path(__file__).with_name("models.json")
CATALOG_FILE = PIPES / "openai_responses/models/catalog.py"

Facts = dict[str, Any]
BySource = Mapping[str, Mapping[str, Any]]

REQUIRED_FACTS = frozenset(
    {
        "functions",
        "hosted",
        "phase",
        "prefix_bound",
        "reasoning",
        "sampling",
        "summary",
        "verbosity",
        "vision",
    }
)
LATER_TRAITS = (
    "all_turns",
    "appends_tools",
    "diagnostics",
    "appends_configuration",
    "pro_mode",
    "long_prices",
    "regional",
)
"""Traits that a model has only if a source says so."""
OPTIONAL_FACTS = frozenset(
    {
        *LATER_TRAITS,
        "context_window",
        "default_effort",
        "efforts",
        "lacks",
        "max_input_tokens",
        "max_output_tokens",
        "prices",
        "search_fee",
        "shutdown",
        "snapshots",
        "successor",
        "tiers",
    }
)
"""`phase`, `prefix_bound`, `snapshots`: not in the module; `tiers`: in the prices."""

HEADER = '''\
"""The catalog of models; generated, do not edit.

Source: `scripts/catalog/models.json`, which names the source and the date of each fact.
Edit it and run `python scripts/catalog/generate.py`; with `--check` it reports whether
this module is current, as do the tests.

Facts as of {as_of}. Prices are {unit}.
A fact that is not stated is the one that is assumed of the id, else the default of
ModelFacts. A dated snapshot has an entry only where it differs from its model.
"""

from openai_responses.models.facts import (
    ImagePrices,
    ModelFacts,
    ModelPrices,
    assumed_facts,
)

CATALOG_MODELS = {{
{models}
}}
"""What is known of each model, by its id."""

CATALOG_IMAGE_PRICES = {{
{image_prices}
}}
"""By the models that draw pictures."""

CATALOG_SUCCESSORS = {{
{successors}
}}
"""Models that OpenAI has switched off, with what it recommends instead."""

CATALOG_SERVED_AS = {{
{served_as}
}}
"""Ids that the API itself serves with another model.

{served_as_reasons}
"""

CATALOG_ALIASES = {{
{aliases}
}}
"""Names of ours that are never sent.

{aliases_reasons}
"""
'''


def merge_facts(model: str, by_source: BySource) -> Facts:
    """Return what the sources state about a model.

    Raises ValueError for a fact that is stated twice, unknown or missing.
    """
    facts: Facts = {}
    for source, stated in by_source.items():
        for fact, value in stated.items():
            if fact in facts:
                raise ValueError(f"{model}: {fact} is stated again by {source}")
            facts[fact] = value
    unknown = facts.keys() - REQUIRED_FACTS - OPTIONAL_FACTS
    missing = REQUIRED_FACTS - facts.keys()
    if unknown or missing:
        wrong = sorted(unknown | missing)
        raise ValueError(f"{model}: unknown or missing facts {wrong}")
    return facts


def merge_retired(model: str, by_source: BySource) -> Facts:
    """Return the last day and the successor of a model that is switched off."""
    facts: Facts = {}
    for stated in by_source.values():
        facts.update(stated)
    if facts.keys() != {"shutdown", "successor"}:
        raise ValueError(f"{model}: a retired model has a shutdown and a successor")
    return facts


def model_facts(model: str, facts: Facts) -> ModelFacts:
    """Return the facts in the form of the package."""
    known = {name: facts[name] for name in ModelFacts._fields if name in facts}
    for name in ("efforts", "lacks"):
        known[name] = tuple(facts.get(name, ()))
    known["prices"] = None
    if facts.get("prices"):
        known["prices"] = ModelPrices(**facts["prices"], **facts.get("tiers", {}))
    return ModelFacts(id=model, **known)


def render_model(facts: ModelFacts) -> str:
    """Return the row of a model: what is not assumed of it, one keyword a line."""
    assumed = assumed_facts(facts.id)
    make = f'assumed_facts("{facts.id}")._replace'
    if not assumed.known_family or assumed == ModelFacts():
        assumed = ModelFacts()
        make = "ModelFacts"
    known = assumed._replace(id=facts.id)._asdict()
    stated = {key: fact for key, fact in facts._asdict().items() if fact != known[key]}
    keywords = f"{render_keywords(stated)}," if stated else ""
    return f'"{facts.id}": {make}({keywords}),'


def render_keywords(values: Mapping[str, object]) -> str:
    """Return values as keywords of a call."""
    return ", ".join(f"{name}={render_value(values[name])}" for name in values)


def render_value(value: object) -> str:
    """Return the source of a fact."""
    if isinstance(value, ModelPrices):
        known: Facts = {}
        for name, price in value._asdict().items():
            # Those of other tiers only if they are known.
            if name not in ModelPrices._field_defaults or price is not None:
                known[name] = price
        return f"ModelPrices({render_keywords(known)})"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return repr(value)


def render_image_prices(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the lines of a table from an image model to its prices, sorted."""
    lines = []
    for model in sorted(entries):
        prices = ImagePrices(**entries[model]["prices"])._asdict()
        lines.append(f'"{model}": ImagePrices({render_keywords(prices)}),')
    return "\n".join(lines)


def render_names(entries: Mapping[str, str]) -> str:
    """Return the lines of a table from name to model, sorted."""
    return "\n".join(f'    "{name}": "{entries[name]}",' for name in sorted(entries))


def render_reasons(entries: Mapping[str, Mapping[str, str]]) -> str:
    """Return why each name leads to its model, with the source."""
    return "\n".join(
        f"{name}: {entries[name]['why']} ({entries[name]['source']})."
        for name in sorted(entries)
    )


def models_by_name(entries: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the model to which each name leads."""
    return {name: entry["model"] for name, entry in entries.items()}


def served_models(source: Mapping[str, Any]) -> Iterable[ModelFacts]:
    """Yield the facts of all models, sorted; raises ValueError for a retired one."""
    for model in sorted(source["models"]):
        facts = merge_facts(model, source["models"][model])
        shutdown = facts.get("shutdown")
        if shutdown and shutdown <= source["as_of"]:
            raise ValueError(f"{model} is switched off; move it to `retired`")
        yield model_facts(model, facts)


def successors(source: Mapping[str, Any]) -> dict[str, str]:
    """Return the successor of each retired model."""
    retired = source["retired"]
    return {
        model: merge_retired(model, retired[model])["successor"] for model in retired
    }


def render_catalog(source: Mapping[str, Any]) -> str:
    """Return the whole text of the module."""
    text = HEADER.format(
        as_of=source["as_of"],
        unit=source["unit"],
        models="\n".join(render_model(facts) for facts in served_models(source)),
        image_prices=render_image_prices(source["image_models"]),
        successors=render_names(successors(source)),
        served_as=render_names(models_by_name(source["served_as"])),
        served_as_reasons=render_reasons(source["served_as"]),
        aliases=render_names(models_by_name(source["aliases"])),
        aliases_reasons=render_reasons(source["aliases"]),
    )
    return black.format_str(text, mode=black.Mode())


def main() -> int:
    """Write the module, or with --check say whether it is current."""
    parser = argparse.ArgumentParser(description="Write the catalog of models.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    wanted = render_catalog(json.loads(FACTS_FILE.read_text("utf-8")))
    if not options.check:
        CATALOG_FILE.write_text(wanted, "utf-8")
        return 0
    if CATALOG_FILE.read_text("utf-8") == wanted:
        print("catalog is current")
        return 0
    print("catalog is stale; run: python scripts/catalog/generate.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
