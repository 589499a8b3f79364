"""What the valves of both shells decide about a request and its calls."""

import pytest

from manifold.request_settings import (
    call_limits,
    chosen_tags,
    request_timeouts,
    settings_of_valves,
)
from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import Settings
from openai_responses.transport.deadlines import Timeouts
from settings.expert_keys import ExpertKeys
from settings.shared_valves import SharedValves
from shells.tool_valves import ToolTimeouts

AZURE = "https://name.openai.azure.com/openai/v1"


def settings(
    base_url: str = DEFAULT_BASE_URL,
    tokens: int = 0,
    streams: bool = True,
    **valves: object,
) -> Settings:
    """The settings of an answer to somebody at a server."""
    return settings_of_valves(
        SharedValves.model_validate({"REASONING_SUMMARY": "disabled", **valves}),
        Endpoint(base_url, "sk-1"),
        {"safety_identifier": "u", "prompt_cache_key": None},
        streams=streams,
        compaction_tokens=tokens,
    )


@pytest.mark.parametrize(
    ("tokens", "base_url", "threshold"),
    [
        (0, DEFAULT_BASE_URL, None),
        (1, DEFAULT_BASE_URL, 1000),
        (200_000, DEFAULT_BASE_URL, 200_000),
        (200_000, AZURE, None),
    ],
)
def test_threshold_of_compaction(
    tokens: int, base_url: str, threshold: int | None
) -> None:
    """Never below what the API takes, and not where the server lacks it."""
    compaction = settings(base_url, tokens).defaults.get("context_management")

    if threshold is None:
        assert compaction is None
    else:
        assert compaction == [{"type": "compaction", "compact_threshold": threshold}]


def test_what_nobody_chose_is_not_sent() -> None:
    """Ids that are not known, a summary that is disabled, the API's own defaults."""
    assert settings() == Settings(defaults={"safety_identifier": "u"})
    closed = settings(ENABLE_STREAM=False, PARALLEL_TOOL_CALLS=False)
    assert not closed.stream
    assert closed.defaults["parallel_tool_calls"] is False
    assert not settings(streams=False).stream


def test_calls_at_once_share_five_times_the_time_of_one() -> None:
    """Of both shells, with the limits of the valves."""
    valves = SharedValves(TOOL_OUTPUT_CHARACTERS=2000)

    others = [("draw", 900.0), ("crawl_*", 1.0)]
    limits = call_limits(valves, ToolTimeouts(60, [("crawl_*", 600)]), others)

    assert (limits.batch_seconds, limits.characters) == (300, 2000)
    assert limits.own_seconds("crawl_all") == 600
    assert limits.own_seconds("draw") == 900


@pytest.mark.parametrize(
    ("name", "silence"),
    [
        ("gpt-5.2", 60),
        ("gpt-5.2-pro", 900),
        ("gpt-6.1-sol-pro", 900),
        ("gpt-5.2-research", 900),
        ("someones-pro", 900),
    ],
)
def test_slow_models_may_be_silent_for_long(name: str, silence: float) -> None:
    """Several passes make one answer, and nothing is sent in between."""
    keys = ExpertKeys(
        connect_timeout_seconds=7,
        first_event_timeout_seconds=60,
        idle_timeout_seconds=60,
    )

    limits = request_timeouts(keys, resolve_model(name), 1800)

    assert limits == Timeouts(7, silence, silence, 1800)
    patient = keys.model_copy(update={"idle_timeout_seconds": 901})
    assert request_timeouts(patient, resolve_model(name)).idle == 901


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        (False, []),
        (True, None),
        (["<a>", "</a>"], ["<a>", "</a>"]),
        ([" ", "</a>"], None),
        (["<a>", " "], None),
        (["a" * 100, "b"], ["a" * 100, "b"]),
        (["a" * 101, "b"], None),
        (["a", "b" * 101], None),
        ("<a>", None),
    ],
)
def test_tags_are_a_pair_of_words(given: object, tags: list[str] | None) -> None:
    """With a blank one, each text would be a thought."""
    assert chosen_tags({"params": {"reasoning_tags": given}}) == tags
