"""The catalog of models; generated, do not edit.

Source: `scripts/catalog/models.json`, which names the source and the date of each fact.
Edit it and run `python scripts/catalog/generate.py`; with `--check` it reports whether
this module is current, as do the tests.

Facts as of 2026-11-28. Prices are US dollars for a million tokens at the standard tier.
A fact that is not stated is the one that is assumed of the id, else the default of
ModelFacts. A dated snapshot has an entry only where it differs from its model.
"""

from openai_responses.models.facts import (
    ImagePrices,
    ModelFacts,
    ModelPrices,
    assumed_facts,
)

CATALOG_MODELS = {
    "chat-latest": ModelFacts(
        reasoning=True,
        efforts=("medium",),
        default_effort="medium",
        sampling="never",
        summary=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=5, cached=0.5, cache_write=None, output=30),
    ),
    "chatgpt-image-latest": ModelFacts(
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    "gpt-4.1": ModelFacts(
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=2, cached=0.5, cache_write=None, output=8, fast=1.75),
        search_fee=0.025,
    ),
    "gpt-4.1-mini": ModelFacts(
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.4, cached=0.1, cache_write=None, output=1.6),
        search_fee=0.025,
    ),
    "gpt-4o": ModelFacts(
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=2.5, cached=1.25, cache_write=None, output=10),
    ),
    "gpt-4o-mini": ModelFacts(
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.15, cached=0.075, cache_write=None, output=0.6),
        search_fee=0.025,
    ),
    "gpt-5": assumed_facts("gpt-5")._replace(
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25, cached=0.125, cache_write=None, output=10, fast=2
        ),
    ),
    "gpt-5-mini": assumed_facts("gpt-5-mini")._replace(
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-terra",
        prices=ModelPrices(
            input=0.25, cached=0.025, cache_write=None, output=2, fast=1.8
        ),
    ),
    "gpt-5-nano": assumed_facts("gpt-5-nano")._replace(
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        lacks=("web_search",),
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.05, cached=0.005, cache_write=None, output=0.4),
    ),
    "gpt-5-pro": assumed_facts("gpt-5-pro")._replace(
        efforts=("high",),
        default_effort="high",
        lacks=("code_interpreter",),
        context_window=400_000,
        max_output_tokens=272_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(input=15, cached=None, cache_write=None, output=120),
    ),
    "gpt-5.1": assumed_facts("gpt-5.1")._replace(
        efforts=("none", "low", "medium", "high"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25, cached=0.125, cache_write=None, output=10, fast=2
        ),
    ),
    "gpt-5.2": assumed_facts("gpt-5.2")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=1.75, cached=0.175, cache_write=None, output=14, fast=2
        ),
    ),
    "gpt-5.2-pro": assumed_facts("gpt-5.2-pro")._replace(
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=21, cached=None, cache_write=None, output=168),
    ),
    "gpt-5.3-codex": assumed_facts("gpt-5.3-codex")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        verbosity=False,
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(input=1.75, cached=0.175, cache_write=None, output=14),
    ),
    "gpt-5.4": assumed_facts("gpt-5.4")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=2.5, cached=0.25, cache_write=None, output=15, fast=2),
    ),
    "gpt-5.4-mini": assumed_facts("gpt-5.4-mini")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.75, cached=0.075, cache_write=None, output=4.5, fast=2
        ),
    ),
    "gpt-5.4-nano": assumed_facts("gpt-5.4-nano")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.2, cached=0.02, cache_write=None, output=1.25),
    ),
    "gpt-5.4-pro": assumed_facts("gpt-5.4-pro")._replace(
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=30, cached=None, cache_write=None, output=180),
    ),
    "gpt-5.5": assumed_facts("gpt-5.5")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="medium",
        sampling="with_none",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=5, cached=0.5, cache_write=None, output=30, fast=2.5),
    ),
    "gpt-5.5-pro": assumed_facts("gpt-5.5-pro")._replace(
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=30, cached=None, cache_write=None, output=180),
    ),
    "gpt-5.6-cyber": assumed_facts("gpt-5.6-cyber")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=12.5, cached=1.25, cache_write=15.625, output=75),
    ),
    "gpt-5.6-luna": assumed_facts("gpt-5.6-luna")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.2, cached=0.02, cache_write=0.25, output=1.2, fast=2
        ),
    ),
    "gpt-5.6-sol": assumed_facts("gpt-5.6-sol")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=4, cached=0.4, cache_write=5, output=20, fast=2),
    ),
    "gpt-5.6-terra": assumed_facts("gpt-5.6-terra")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=2, cached=0.2, cache_write=2.5, output=12, fast=2),
    ),
    "gpt-6-astra": assumed_facts("gpt-6-astra")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=10, cached=1, cache_write=12.5, output=50, fast=2, ultrafast=6
        ),
    ),
    "gpt-6-astra-law": assumed_facts("gpt-6-astra-law")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=10, cached=1, cache_write=None, output=50),
    ),
    "gpt-6-cyber": assumed_facts("gpt-6-cyber")._replace(
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=20, cached=2, cache_write=25, output=100),
    ),
    "gpt-6-luna": assumed_facts("gpt-6-luna")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.1, cached=0.01, cache_write=0.125, output=0.5, fast=2
        ),
    ),
    "gpt-6-rosalind": assumed_facts("gpt-6-rosalind")._replace(
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=15, cached=1.5, cache_write=18.75, output=75),
    ),
    "gpt-6-sol": assumed_facts("gpt-6-sol")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=2, cached=0.2, cache_write=2.5, output=10, fast=2),
    ),
    "gpt-6.1-sol": assumed_facts("gpt-6.1-sol")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2, cached=0.1, cache_write=2.5, output=10, fast=2, ultrafast=6
        ),
    ),
    "gpt-6.1-terra": assumed_facts("gpt-6.1-terra")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=1, cached=0.05, cache_write=1.25, output=5, fast=2),
    ),
    "gpt-6.2-astra": assumed_facts("gpt-6.2-astra")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=8, cached=0.4, cache_write=10, output=40, fast=2),
    ),
    "gpt-6.2-astra-law": assumed_facts("gpt-6.2-astra-law")._replace(),
    "gpt-6.2-sol": assumed_facts("gpt-6.2-sol")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.1,
            cache_write=2.5,
            output=10,
            fast=2,
            ultrafast=3,
            ultrafast_until="2027-02-28",
            ultrafast_later=6,
        ),
    ),
    "gpt-daybreak-blue-latest": ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=4, cached=0.4, cache_write=5, output=20),
    ),
    "gpt-daybreak-red-latest": ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=12.5, cached=1.25, cache_write=15.625, output=75),
    ),
    "gpt-image-1-mini": ModelFacts(
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    "gpt-image-1.5": ModelFacts(
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    "gpt-rosalind-research": ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        prices=ModelPrices(input=5, cached=0.5, cache_write=None, output=25),
    ),
    "o3": assumed_facts("o3")._replace(
        default_effort="medium",
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(input=2, cached=0.5, cache_write=None, output=8),
    ),
    "o3-pro": assumed_facts("o3-pro")._replace(
        default_effort="medium",
        lacks=("code_interpreter",),
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(input=20, cached=None, cache_write=None, output=80),
    ),
}
"""What is known of each model, by its id."""

CATALOG_IMAGE_PRICES = {
    "chatgpt-image-latest": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=32
    ),
    "gpt-image-1-mini": ImagePrices(
        text=2, cached_text=0.2, image=2.5, cached_image=0.25, output=8
    ),
    "gpt-image-1.5": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=32
    ),
    "gpt-image-2": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.5-flare": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.5-sunburst": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.6-flare": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.6-sunburst": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
}
"""By the models that draw pictures."""

CATALOG_SUCCESSORS = {
    "chatgpt-4o-latest": "gpt-5.5",
    "codex-mini-latest": "gpt-5.4-mini",
    "gpt-3.5-turbo": "gpt-5.6-terra",
    "gpt-3.5-turbo-0125": "gpt-5.6-terra",
    "gpt-3.5-turbo-1106": "gpt-5.6-terra",
    "gpt-4": "gpt-5.6-sol",
    "gpt-4-0125-preview": "gpt-5.6-sol",
    "gpt-4-0314": "gpt-5.6-sol",
    "gpt-4-0613": "gpt-5.6-sol",
    "gpt-4-1106-preview": "gpt-5.6-sol",
    "gpt-4-turbo": "gpt-5.6-sol",
    "gpt-4-turbo-preview": "gpt-5.6-sol",
    "gpt-4.1-nano": "gpt-5.6-luna",
    "gpt-4o-2024-05-13": "gpt-5.6-sol",
    "gpt-5-chat-latest": "gpt-5.5",
    "gpt-5-codex": "gpt-5.4",
    "gpt-5.1-chat-latest": "gpt-5.5",
    "gpt-5.1-codex": "gpt-6.1-sol",
    "gpt-5.1-codex-max": "gpt-5.4",
    "gpt-5.1-codex-mini": "gpt-5.4-mini",
    "gpt-5.2-chat-latest": "gpt-5.5",
    "gpt-5.2-codex": "gpt-5.4",
    "gpt-5.3-chat-latest": "gpt-5.5",
    "o1": "gpt-5.6-sol",
    "o1-pro": "gpt-5.6-sol-pro",
    "o3-deep-research": "gpt-5.4-pro",
    "o3-mini": "gpt-5.6-sol",
    "o4-mini": "gpt-5.6-terra",
    "o4-mini-deep-research": "gpt-5.4-pro",
}
"""Models that OpenAI has switched off, with what it recommends instead."""

CATALOG_SERVED_AS = {
    "gpt-5.6": "gpt-5.6-sol",
}
"""Ids that the API itself serves with another model.

gpt-5.6: OpenAI resolves the short id itself (openai-docs).
"""

CATALOG_ALIASES = {
    "gpt-5-auto": "gpt-6.1-sol",
}
"""Names of ours that are never sent.

gpt-5-auto: gpt-5-chat-latest, its first target, is gone; this replaces gpt-5 (openai-deprecations).
"""
