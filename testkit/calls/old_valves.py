"""What a server may have stored for earlier pipes of this name.

The valves are those of the specification (0.8.28) and of jrkropp's pipe up to 0.9.15,
each with another value than our default, or one that we have no more.
"""

import json
from typing import Any

Json = dict[str, Any]

OLD_VALVES: Json = {
    "BASE_URL": "https://gateway.example/v1",
    "API_KEY": "sk-old",
    "MODEL_ID": "gpt-5-auto, gpt-5-thinking-high, gpt-5.6-sol-pro-high, o3-mini-high",
    "FETCH_MODELS": False,
    "MODEL_FETCH_TTL_SECONDS": 60,
    "MODEL_ICON_URL": "https://gateway.example/icon.png",
    "SERVICE_TIER": "flex",
    "VERIFY_SSL": False,
    "REASONING_SUMMARY": "detailed",
    "PERSIST_REASONING_TOKENS": "response",
    "AUTO_ENABLE_NATIVE_FUNCTION_CALLING": True,
    "PERSIST_TOOL_RESULTS": False,
    "PARALLEL_TOOL_CALLS": False,
    "ENABLE_STRICT_TOOL_CALLING": True,
    "MAX_TOOL_CALLS": 0,
    "MAX_FUNCTION_CALL_LOOPS": 0,
    "ENABLE_WEB_SEARCH_TOOL": True,
    "WEB_SEARCH_CONTEXT_SIZE": "high",
    "WEB_SEARCH_USER_LOCATION": json.dumps({"type": "approximate", "country": "US"}),
    "REMOTE_MCP_SERVERS_JSON": json.dumps(
        {
            "server_label": "deepwiki",
            "server_url": "https://mcp.example/mcp",
            "require_approval": "never",
        }
    ),
    "TRUNCATION": "auto",
    "SHOW_USAGE_COST": True,
    "CUSTOM_MODEL_PRICING_JSON": json.dumps(
        {"gpt-5": {"input": 1.25, "cached_input": 0.125, "output": 10.0}}
    ),
    "PROMPT_CACHE_KEY": "email",
    "LOG_LEVEL": "WARNING",
}

OLD_USER_VALVES: Json = {"LOG_LEVEL": "INHERIT"}
