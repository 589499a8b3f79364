"""Writes the catalog module of the Responses package from `models.json`.

`models.json` is edited by hand: each fact of a model stands under the source that
says it, and each source has a date. `generate.py` rewrites the module, and
`generate.py --check` only reports whether it is current.

Behind a minus the traits name types of hosted tools that a model does not take.

The table has no column for `sampling`, which follows from the efforts and the traits of
each model; a test compares the result with `models.json`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

FACTS_FILE = Path(__file__).with_name("models.json")
CATALOG_FILE = Path(__file__).parents[2] / "pipes/openai_responses/models/catalog.py"
TRAITS = (
    "reasoning",
    "summary",
    "verbosity",
    "phase",
    "functions",
    "hosted",
    "vision",
    "prefix_bound",
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
ALL_TRAITS = (*TRAITS, *LATER_TRAITS)
UNUSED = ("phase",)
"""Facts that the pipe does not use."""
COLUMNS = (
    *("model", "efforts", "default_effort", "traits"),
    *("context", "max_output_tokens", "prices", "shutdown", "successor"),
)
EFFORT_SETS = {"some": "low medium high", "more": "some xhigh max"}
"""Words for several efforts, a later one for more."""
USUAL_OUTPUT = "128000"
TRAIT_SETS = {
    "usual": "reasoning summary functions hosted vision",
    "full": "usual verbosity",
    "5.4": "full all_turns long_prices regional",
    "5.6": "5.4 appends_tools diagnostics",
    "6": "5.6 appends_configuration",
    "6.2": "6 prefix_bound",
}
"""Words for several traits, a later one for more; a number is the version of gpt from
which on models have them, also models that the table does not know."""
PRICES = ("input", "cached", "cache_write", "output")
FACTORS = ("fast", "ultrafast", "ultrafast_until", "ultrafast_later")
OPTIONAL = (
    "lacks",
    "efforts",
    "default_effort",
    "max_output_tokens",
    "context",
    "prices",
    "tiers",
    "shutdown",
    "successor",
    "snapshots",
)

HEADER = '''\
"""The table of models, generated from `scripts/catalog/models.json`; do not edit.

Facts as of {as_of}. A dated snapshot has a row only where it differs from its model.
Prices are {unit}: {prices}.
"""

# ruff: noqa: E501 - one model a line reads as a table

CATALOG_TABLE = """
{columns}
{rows}
"""

CATALOG_WORDS: dict[str, str] = {{
{word_sets}
}}
"""Words for several efforts, or several traits; a number is the first version of gpt
that has them."""

CATALOG_SERVED_AS: dict[str, str] = {{
{served_as}
}}
"""Ids that the API itself serves with another model.

{served_as_why}
"""

CATALOG_ALIASES: dict[str, str] = {{
{aliases}
}}
"""Names of ours that are never sent.

{aliases_why}
"""
'''


def merge_facts(model: str, by_source: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Join what the sources say about a model; no fact may be said twice."""
    facts: dict[str, Any] = {}
    for source, said in by_source.items():
        for fact, value in said.items():
            if fact in facts:
                raise ValueError(f"{model}: {fact} is said twice, again by {source}")
            facts[fact] = value
    known = {*TRAITS, *LATER_TRAITS, *OPTIONAL, "sampling"}
    if wrong := (facts.keys() - known) | ({*TRAITS, "sampling"} - facts.keys()):
        raise ValueError(f"{model}: unknown or missing facts {sorted(wrong)}")
    return {**dict.fromkeys(LATER_TRAITS, False), **facts}


def render_row(model: str, facts: dict[str, Any], as_of: str) -> str:
    """One line of the table; empty where the sources say nothing.

    A model that is switched off has no price any more.
    """
    is_gone = facts.get("shutdown", as_of) < as_of
    prices = {} if is_gone else facts.get("prices") or {}
    columns = (
        model,
        render_efforts(" ".join(facts.get("efforts", ()))),
        facts.get("default_effort"),
        " ".join(
            (
                render_traits(
                    [one for one in ALL_TRAITS if facts[one] and one not in UNUSED]
                ),
                *(f"-{kind}" for kind in facts.get("lacks", ())),
            )
        ),
        re.sub("000$", "k", str(facts.get("context", ""))),
        str(facts.get("max_output_tokens", "")).replace(USUAL_OUTPUT, "+"),
        render_prices({**prices, **facts.get("tiers", {})}) if prices else None,
        facts.get("shutdown"),
        facts.get("successor"),
    )
    return "|".join("" if value is None else str(value) for value in columns)


def render_efforts(efforts: str) -> str:
    """The efforts of a model, several as one word."""
    for word, meant in EFFORT_SETS.items():
        efforts = efforts.replace(meant, word)
    return efforts


def render_prices(prices: dict[str, float | None]) -> str:
    """The prices, and the factors of other tiers as far as they are known."""
    names = [*PRICES, *(name for name in FACTORS if prices.get(name))]
    return " ".join("-" if prices[n] is None else f"{prices[n]:.9g}" for n in names)


def render_traits(traits: list[str]) -> str:
    """The traits of a model; the largest set that it has all of stands for them."""
    for name in reversed(TRAIT_SETS):
        if expand_traits(name) <= set(traits):
            rest = [one for one in traits if one not in expand_traits(name)]
            return " ".join([name, *rest])
    return " ".join(traits)


def expand_traits(text: str) -> set[str]:
    """The traits that words stand for."""
    words: set[str] = set()
    for word in text.split():
        words |= expand_traits(TRAIT_SETS[word]) if word in TRAIT_SETS else {word}
    return words


def render_pairs(entries: dict[str, Any]) -> str:
    """The lines of a table from name to text."""
    return "\n".join(f'    "{name}": "{text}",' for name, text in entries.items())


def render_reasons(entries: dict[str, dict[str, str]]) -> str:
    """Why each name leads to its model, and who says it."""
    return "\n".join(
        f"{name}: {entry['why']} ({entry['source']})."
        for name, entry in sorted(entries.items())
    )


def render_names(entries: dict[str, dict[str, str]]) -> str:
    """The lines of a table from name to model."""
    return render_pairs({name: entries[name]["model"] for name in sorted(entries)})


def render_catalog(source: dict[str, Any]) -> str:
    """The whole text of the module."""
    models = source["models"]
    facts = {model: merge_facts(model, models[model]) for model in sorted(models)}
    rows = (render_row(model, facts[model], source["as_of"]) for model in facts)
    return HEADER.format(
        as_of=source["as_of"],
        unit=source["unit"],
        prices=", ".join((*PRICES, *FACTORS)),
        columns="|".join(COLUMNS),
        rows="\n".join(rows),
        word_sets=render_pairs({**EFFORT_SETS, **TRAIT_SETS}),
        served_as=render_names(source["served_as"]),
        served_as_why=render_reasons(source["served_as"]),
        aliases=render_names(source["aliases"]),
        aliases_why=render_reasons(source["aliases"]),
    )


def main(arguments: list[str]) -> int:
    """Write the module, or with --check say whether it is current."""
    wanted = render_catalog(json.loads(FACTS_FILE.read_text("utf-8")))
    if arguments == ["--check"]:
        current = CATALOG_FILE.read_text("utf-8") == wanted
        print("catalog is current" if current else "run scripts/catalog/generate.py")
        return 0 if current else 1
    if arguments:
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    CATALOG_FILE.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
