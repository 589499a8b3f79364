"""Output that is sent back."""

from typing import Any

from live_cases.case import Case, say

THINKING: dict[str, Any] = {
    "input": "Think about 17 times 19.",
    "max_output_tokens": 400,
}
FIRST: dict[str, Any] = {**THINKING, "reasoning": {"effort": "low"}}
SOURCE = "OpenAI's agents SDK 0.24.0"
EFFORT: dict[str, Any] = {"reasoning": {"effort": "low"}}
AGAIN: dict[str, Any] = {**say(), **EFFORT}
SEARCH: dict[str, Any] = {"tools": [{"type": "web_search"}]}
CODE: dict[str, Any] = {
    "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]
}


REPLAY_CASES = (
    Case("an output sent back without ids", AGAIN, SOURCE, 200, first=FIRST),
    Case(
        "a message without its reasoning",
        AGAIN,
        "continue 12620, code_puppy 853",
        param="input",
        message="without its required 'reasoning' item",
        first=FIRST,
        edit="ids without reasoning",
    ),
    Case(
        "reasoning without what follows",
        AGAIN,
        "continue 8933, vercel/ai 7099",
        param="input",
        message="without its required following item",
        first=FIRST,
        edit="only reasoning",
    ),
    Case(
        "reasoning whose content was changed",
        AGAIN,
        "openai/codex 8145",
        code="invalid_encrypted_content",
        first=FIRST,
        edit="broken content",
    ),
    Case(
        "a web search sent back",
        {**say(), **SEARCH},
        "pydantic-ai 2.68.0",
        200,
        first={
            "input": "sim:web-search Search the web once: the weather in Zürich.",
            **SEARCH,
        },
        edit="with ids of hosted calls",
        fee=0.02,
    ),
    Case(
        "code sent back while its container lives",
        {**say(), **CODE},
        "pydantic-ai 2.68.0",
        200,
        first={"input": "sim:count Run Python: print(17 * 19).", **CODE},
        edit="with ids of hosted calls",
        fee=0.03,
    ),
)
