"""Writes the catalog module of the Responses package from `models.json`.

`models.json` is edited by hand: each fact of a model stands under the source that
says it, and each source has a date. `generate.py` rewrites the module, and
`generate.py --check` only reports whether it is current.

Behind a minus the traits name types of hosted tools that a model does not take.

The table has no column for `sampling`, which follows from the efforts and the traits of
each model; a test compares the result with `models.json`.
"""

import json
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
UNUSED = ("phase", "context")
"""Facts that the pipe does not use."""
COLUMNS = (
    *("model", "efforts", "default_effort", "traits"),
    *("max_output_tokens", "prices", "shutdown", "successor"),
)
USUAL_EFFORTS = "low medium high"
USUAL_OUTPUT = "128000"
USUAL_TRAITS = ("reasoning", "summary", "functions", "hosted", "vision")
PRICES = ("input", "cached", "cache_write", "output")
OPTIONAL = (
    "lacks",
    "efforts",
    "default_effort",
    "max_output_tokens",
    "context",
    "prices",
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

# Ids that the API itself serves with another model.
CATALOG_SERVED_AS: dict[str, str] = {{
{served_as}
}}

# Names of ours that are never sent.
CATALOG_ALIASES: dict[str, str] = {{
{aliases}
}}
'''


def merge_facts(model: str, by_source: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Join what the sources say about a model; no fact may be said twice."""
    facts: dict[str, Any] = {}
    for source, said in by_source.items():
        for fact, value in said.items():
            if fact in facts:
                raise ValueError(f"{model}: {fact} is said twice, again by {source}")
            facts[fact] = value
    known = {*TRAITS, *OPTIONAL, "sampling"}
    if wrong := (facts.keys() - known) | ({*TRAITS, "sampling"} - facts.keys()):
        raise ValueError(f"{model}: unknown or missing facts {sorted(wrong)}")
    return facts


def render_row(model: str, facts: dict[str, Any]) -> str:
    """One line of the table; empty where the sources say nothing."""
    prices = facts.get("prices") or {}
    columns = (
        model,
        " ".join(facts.get("efforts", ())).replace(USUAL_EFFORTS, "usual"),
        facts.get("default_effort"),
        " ".join(
            (
                render_traits([t for t in TRAITS if facts[t] and t not in UNUSED]),
                *(f"-{kind}" for kind in facts.get("lacks", ())),
            )
        ),
        str(facts.get("max_output_tokens", "")).replace(USUAL_OUTPUT, "+"),
        " ".join(
            "-" if prices[n] is None else f"{prices[n]:g}" for n in PRICES if prices
        ),
        facts.get("shutdown"),
        facts.get("successor"),
    )
    return "|".join("" if value is None else str(value) for value in columns)


def render_traits(traits: list[str]) -> str:
    """The traits of a model, those of most reasoning models as one word."""
    if not set(USUAL_TRAITS) <= set(traits):
        return " ".join(traits)
    rest = [one for one in traits if one not in USUAL_TRAITS]
    return " ".join(["usual", *rest]).replace("usual verbosity", "full")


def render_names(entries: dict[str, dict[str, str]]) -> str:
    """The lines of a table from name to model, each under its reason."""
    return "\n".join(
        f'    # {entry["why"]} ({entry["source"]})\n    "{name}": "{entry["model"]}",'
        for name, entry in sorted(entries.items())
    )


def render_catalog(source: dict[str, Any]) -> str:
    """The whole text of the module."""
    models = source["models"]
    rows = (render_row(m, merge_facts(m, models[m])) for m in sorted(models))
    return HEADER.format(
        as_of=source["as_of"],
        unit=source["unit"],
        prices=", ".join(PRICES),
        columns="|".join(COLUMNS),
        rows="\n".join(rows),
        served_as=render_names(source["served_as"]),
        aliases=render_names(source["aliases"]),
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
