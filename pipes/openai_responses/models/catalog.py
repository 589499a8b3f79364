"""The table of models, generated from `scripts/catalog/models.json`; do not edit."""

from typing import Literal, NamedTuple

# ruff: noqa: E501 - one model a line reads as a table


class CatalogRow(NamedTuple):
    """What the sources say about one model; None where they say nothing."""

    efforts: str
    default_effort: str | None
    sampling: Literal["always", "with_none", "never"]
    traits: str
    max_output_tokens: int | None
    context: int | None
    prices: tuple[float | None, float | None, float | None, float | None] | None
    shutdown: str | None
    successor: str | None


# Facts as of 2026-11-21. A dated snapshot has a row only where it differs from its model.
# Prices are US dollars for a million tokens at the standard tier: input, cached, cache_write, output.
# fmt: off
CATALOG_ROWS: dict[str, CatalogRow] = {
    "chatgpt-4o-latest": CatalogRow("", None, "always", "vision", None, None, None, "2026-02-17", "gpt-5.5"),
    "codex-mini-latest": CatalogRow("", None, "never", "reasoning summary functions vision", None, None, None, "2026-02-12", "gpt-5.4-mini"),
    "gpt-3.5-turbo": CatalogRow("", None, "always", "functions", 4096, 16385, (0.5, None, None, 1.5), "2026-10-23", "gpt-5.6-terra"),
    "gpt-3.5-turbo-0125": CatalogRow("", None, "always", "functions", 4096, 16385, (0.5, None, None, 1.5), "2026-10-23", "gpt-5.6-terra"),
    "gpt-3.5-turbo-1106": CatalogRow("", None, "always", "functions", 4096, 16385, (1.0, None, None, 2.0), "2026-09-28", "gpt-5.6-terra"),
    "gpt-4": CatalogRow("", None, "always", "functions", 4096, 8192, (30.0, None, None, 60.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-0125-preview": CatalogRow("", None, "always", "functions", None, None, None, "2026-03-26", "gpt-5.6-sol"),
    "gpt-4-0314": CatalogRow("", None, "always", "functions", None, None, None, "2026-03-26", "gpt-5.6-sol"),
    "gpt-4-0613": CatalogRow("", None, "always", "functions", 4096, 8192, (30.0, None, None, 60.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-1106-preview": CatalogRow("", None, "always", "functions", 4096, 128000, (10.0, None, None, 30.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-turbo": CatalogRow("", None, "always", "functions vision", 4096, 128000, (10.0, None, None, 30.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-turbo-preview": CatalogRow("", None, "always", "functions", None, None, None, "2026-03-26", "gpt-5.6-sol"),
    "gpt-4.1": CatalogRow("", None, "always", "functions hosted vision", 32768, 1047576, (2.0, 0.5, None, 8.0), "2027-01-14", "gpt-6-luna"),
    "gpt-4.1-mini": CatalogRow("", None, "always", "functions hosted vision", 32768, 1047576, (0.4, 0.1, None, 1.6), "2027-01-14", "gpt-6-luna"),
    "gpt-4.1-nano": CatalogRow("", None, "always", "functions vision", 32768, 1047576, (0.1, 0.025, None, 0.4), "2026-10-23", "gpt-5.6-luna"),
    "gpt-4o": CatalogRow("", None, "always", "functions hosted vision", 16384, 128000, (2.5, 1.25, None, 10.0), "2027-01-14", "gpt-6-luna"),
    "gpt-4o-2024-05-13": CatalogRow("", None, "always", "functions hosted vision", 4096, 128000, (5.0, None, None, 15.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4o-mini": CatalogRow("", None, "always", "functions hosted vision", 16384, 128000, (0.15, 0.075, None, 0.6), "2027-01-14", "gpt-6-luna"),
    "gpt-5": CatalogRow("minimal low medium high", "medium", "never", "reasoning summary verbosity functions hosted vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-12-11", "gpt-6.1-sol"),
    "gpt-5-chat-latest": CatalogRow("", None, "always", "vision", 16384, 128000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.5"),
    "gpt-5-codex": CatalogRow("low medium high", "medium", "never", "reasoning summary functions hosted vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.4"),
    "gpt-5-mini": CatalogRow("minimal low medium high", "medium", "never", "reasoning summary verbosity functions hosted vision", 128000, 400000, (0.25, 0.025, None, 2.0), "2026-12-11", "gpt-6.1-terra"),
    "gpt-5-nano": CatalogRow("minimal low medium high", "medium", "never", "reasoning summary verbosity functions hosted vision", 128000, 400000, (0.05, 0.005, None, 0.4), "2026-12-11", "gpt-6-luna"),
    "gpt-5-pro": CatalogRow("high", "high", "never", "reasoning summary verbosity functions hosted vision", 272000, 400000, (15.0, None, None, 120.0), "2026-12-11", "gpt-6.1-sol"),
    "gpt-5.1": CatalogRow("none low medium high", "none", "with_none", "reasoning summary verbosity functions hosted vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2027-04-01", "gpt-6.1-sol"),
    "gpt-5.1-chat-latest": CatalogRow("medium", "medium", "never", "reasoning summary verbosity functions vision", 16384, 128000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.5"),
    "gpt-5.1-codex": CatalogRow("low medium high", "medium", "never", "reasoning summary functions hosted vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-6.1-sol"),
    "gpt-5.1-codex-max": CatalogRow("low medium high xhigh", "medium", "never", "reasoning summary functions hosted vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.4"),
    "gpt-5.1-codex-mini": CatalogRow("low medium high", "medium", "never", "reasoning summary functions hosted vision", 128000, 400000, (0.25, 0.025, None, 2.0), "2026-07-23", "gpt-5.4-mini"),
    "gpt-5.2": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity functions hosted vision", 128000, 400000, (1.75, 0.175, None, 14.0), None, None),
    "gpt-5.2-chat-latest": CatalogRow("medium", "medium", "never", "reasoning summary verbosity functions vision", 16384, 128000, (1.75, 0.175, None, 14.0), "2026-08-10", "gpt-5.5"),
    "gpt-5.2-codex": CatalogRow("low medium high xhigh", None, "never", "reasoning summary functions hosted vision", 128000, 400000, (1.75, 0.175, None, 14.0), "2026-07-23", "gpt-5.4"),
    "gpt-5.2-pro": CatalogRow("medium high xhigh", "medium", "never", "reasoning summary verbosity functions hosted vision", 128000, 400000, (21.0, None, None, 168.0), None, None),
    "gpt-5.3-chat-latest": CatalogRow("medium", "medium", "never", "reasoning summary verbosity functions vision", 16384, 128000, (1.75, 0.175, None, 14.0), "2026-08-10", "gpt-5.5"),
    "gpt-5.3-codex": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary phase functions hosted vision", 128000, 400000, (1.75, 0.175, None, 14.0), "2027-04-01", "gpt-6.1-sol"),
    "gpt-5.4": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (2.5, 0.25, None, 15.0), None, None),
    "gpt-5.4-mini": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 400000, (0.75, 0.075, None, 4.5), None, None),
    "gpt-5.4-nano": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 400000, (0.2, 0.02, None, 1.25), "2027-04-01", "gpt-6-luna"),
    "gpt-5.4-pro": CatalogRow("medium high xhigh", "medium", "never", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (30.0, None, None, 180.0), None, None),
    "gpt-5.5": CatalogRow("none low medium high xhigh", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (5.0, 0.5, None, 30.0), None, None),
    "gpt-5.5-pro": CatalogRow("medium high xhigh", "medium", "never", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (30.0, None, None, 180.0), None, None),
    "gpt-5.6-cyber": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 400000, (12.5, 1.25, 15.625, 75.0), None, None),
    "gpt-5.6-luna": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (0.2, 0.02, 0.25, 1.2), None, None),
    "gpt-5.6-sol": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (4, 0.4, 5.0, 20), None, None),
    "gpt-5.6-terra": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (2.0, 0.2, 2.5, 12.0), None, None),
    "gpt-6-astra": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (10.0, 1.0, 12.5, 50.0), None, None),
    "gpt-6-astra-law": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (10.0, 1.0, None, 50.0), None, None),
    "gpt-6-cyber": CatalogRow("", None, "never", "reasoning summary verbosity phase functions hosted vision", None, None, None, None, None),
    "gpt-6-luna": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (0.1, 0.01, 0.125, 0.5), None, None),
    "gpt-6-rosalind": CatalogRow("", None, "never", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (15.0, 1.5, 18.75, 75.0), None, None),
    "gpt-6-sol": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (2.0, 0.2, 2.5, 10.0), None, None),
    "gpt-6.1-sol": CatalogRow("low medium high xhigh max", "medium", "never", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (2.0, 0.1, 2.5, 10.0), None, None),
    "gpt-6.1-terra": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions hosted vision", 128000, 1050000, (1.0, 0.05, 1.25, 5.0), None, None),
    "gpt-6.2-astra": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions hosted vision prefix_bound", 128000, 1050000, (8, None, None, 40), None, None),
    "gpt-6.2-astra-law": CatalogRow("", None, "never", "reasoning summary verbosity phase functions hosted vision prefix_bound", None, None, None, None, None),
    "gpt-6.2-sol": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions hosted vision prefix_bound", 128000, 1050000, (2, None, None, 10), None, None),
    "gpt-daybreak-blue-latest": CatalogRow("", None, "never", "reasoning summary phase functions hosted vision", 128000, 1050000, (4.0, 0.4, 5.0, 20.0), None, None),
    "gpt-daybreak-red-latest": CatalogRow("", None, "never", "reasoning summary phase functions hosted vision", 128000, 400000, (12.5, 1.25, 15.625, 75.0), None, None),
    "gpt-rosalind-research": CatalogRow("", None, "never", "reasoning summary phase functions hosted vision", None, None, (5.0, 0.5, None, 25.0), None, None),
    "o1": CatalogRow("low medium high", "medium", "never", "reasoning functions vision", 100000, 200000, (15.0, 7.5, None, 60.0), "2026-10-23", "gpt-5.6-sol"),
    "o1-pro": CatalogRow("low medium high", "medium", "never", "reasoning functions vision", 100000, 200000, (150.0, None, None, 600.0), "2026-10-23", "gpt-5.6-sol"),
    "o3": CatalogRow("low medium high", "medium", "never", "reasoning summary functions hosted vision", 100000, 200000, (2.0, 0.5, None, 8.0), "2026-12-11", "gpt-6.1-sol"),
    "o3-deep-research": CatalogRow("low medium high", "medium", "never", "reasoning summary hosted vision", 100000, 200000, (10.0, 2.5, None, 40.0), "2026-07-23", "gpt-5.4-pro"),
    "o3-mini": CatalogRow("low medium high", "medium", "never", "reasoning summary functions", 100000, 200000, (1.1, 0.55, None, 4.4), "2026-10-23", "gpt-5.6-sol"),
    "o3-pro": CatalogRow("low medium high", "medium", "never", "reasoning summary functions hosted vision", 100000, 200000, (20.0, None, None, 80.0), "2026-12-11", "gpt-6.1-sol"),
    "o4-mini": CatalogRow("low medium high", "medium", "never", "reasoning summary functions hosted vision", 100000, 200000, (1.1, 0.275, None, 4.4), "2026-10-23", "gpt-5.6-terra"),
    "o4-mini-deep-research": CatalogRow("low medium high", "medium", "never", "reasoning summary hosted vision", 100000, 200000, (2.0, 0.5, None, 8.0), "2026-07-23", "gpt-5.4-pro"),
}
# fmt: on

# Ids that the API itself serves with another model.
CATALOG_SERVED_AS: dict[str, str] = {
    # OpenAI resolves the short id itself (openai-docs)
    "gpt-5.6": "gpt-5.6-sol",
}

# Names of ours that are never sent.
CATALOG_ALIASES: dict[str, str] = {
    # gpt-5-chat-latest, its first target, is gone; this replaces gpt-5 (openai-deprecations)
    "gpt-5-auto": "gpt-6.1-sol",
}
