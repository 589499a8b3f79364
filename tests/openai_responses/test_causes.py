"""What the words of a refusal mean; the messages are tested in test_endings.py."""

from openai_responses.causes import is_final
from openai_responses.errors import ApiError, read_error_body
from upstream.refusals import REFUSED_BODIES


def test_moderation_is_final() -> None:
    """Neither another attempt nor another server gets around it, nor around limits."""
    final = {
        name
        for name, refused in REFUSED_BODIES.items()
        if is_final(read_error_body(refused.body.encode()))
    }
    assert final == {
        *("OpenRouter's moderation", "xAI's moderation", "Portkey's guardrail"),
        *("LiteLLM's guardrail", "LiteLLM's moderation", "DashScope's inspection"),
        *("Ark's inspection", "DeepSeek's inspection", "wrong key"),
        *(
            "Google's wrong key",
            "Google's key that has leaked",
            "Azure's version of the API",
            "Azure's older version",
        ),
        *("Zhipu's inspection", "Ollama without memory"),
        *("more tools than the API takes", "more tools than Groq takes"),
        *("Bedrock's key of twelve hours", "AWS's expired token"),
    }
    quoted = ApiError(message="Invalid value: 'Content violates usage guidelines.'")
    assert not is_final(quoted)
