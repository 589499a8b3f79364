"""What a caller could ask for at the administrator's cost."""

from typing import Any

Json = dict[str, Any]
OURS: Json = {
    "access_programs": {"cyber": "standard"},
    "cache_control": {"type": "ephemeral"},
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "image": {"context_compression": "disabled"},
    "max_tool_calls": 7,
    "metadata": {"team": "blue"},
    "moderation": {"model": "omni-moderation-latest"},
    "prompt_cache_key": "shared",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "somebody-else",
    "service_tier": "priority",
}
"""What only administrators set, with values that the API takes."""

HOSTED: list[Json] = [
    {"type": "web_search"},
    {"type": "mcp", "server_label": "evil", "server_url": "https://evil.example"},
    {"type": "code_interpreter", "container": "cntr_of_somebody"},
    {"type": "file_search", "vector_store_ids": ["vs_of_somebody"]},
    {"type": "image_generation"},
    {"type": "a_tool_of_tomorrow"},
]
