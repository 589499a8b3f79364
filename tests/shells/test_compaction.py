"""From how many tokens on OpenAI compacts a chat."""

import pytest

from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from shells.compaction import compaction_settings

AZURE = "https://name.openai.azure.com/openai/v1"


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
    settings = compaction_settings(tokens, Endpoint(base_url, "sk-1"))

    if threshold is None:
        assert settings is None
    else:
        assert settings == [{"type": "compaction", "compact_threshold": threshold}]
