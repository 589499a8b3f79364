"""The simulator's table of models, beside that of the openai package."""

import typing

from openai.types.shared import ResponsesModel

from simulator.models import MODELS, is_retired, read_family


def test_the_table_knows_the_models_of_the_package() -> None:
    """Every text model of it is living, retired, or left out by name."""
    dropped = {"gpt-5.1-mini", "gpt-rosalind-research"}
    literals = [
        name
        for option in typing.get_args(ResponsesModel)
        for inner in (option, *typing.get_args(option))
        for name in typing.get_args(inner)
        if isinstance(name, str)
    ]
    families = ("gpt-5", "gpt-6", "o1", "o3", "o4", "gpt-4.1")
    texts = [name for name in literals if name.startswith(families)]

    unknown = {name for name in texts if name not in MODELS and not is_retired(name)}
    assert len(texts) > 40
    assert unknown <= dropped


def test_variants_of_a_series_share_a_family() -> None:
    assert read_family("gpt-5.2-pro-2025-12-11") == read_family("gpt-5.2") == "gpt-5.2"
    assert read_family("gpt-5-mini") == "gpt-5"
    assert read_family("o3-pro") == "o3"
