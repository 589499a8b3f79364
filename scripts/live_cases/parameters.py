"""Parameters of a request, and their limits."""

from typing import Any

from live_cases.case import ASSUMED, TYPES, Case, format_text

ABOVE = "above_max_value"
BELOW = "below_min_value"
LONG = "string_above_max_length"
MANY: dict[str, Any] = {f"k{n}": "v" for n in range(17)}


def _refused(
    name: str, value: Any, code: str, source: str = TYPES, *, title: str = ""
) -> Case:
    """Return the case of a refusal."""
    title = title or f"{name}: {value}"
    return Case(title, {name: value}, source, param=name, code=code)


PARAMETER_CASES = (
    _refused("seed", 1, "unknown_parameter", "jcode 1028, litellm 13420"),
    _refused("service_tier", "gold", "invalid_value"),
    _refused("temperature", 99, f"decimal_{ABOVE}", "reports of OpenAI's users"),
    _refused("top_p", 2, f"decimal_{ABOVE}", "reports of OpenAI's users"),
    _refused("max_output_tokens", 15, f"integer_{BELOW}", "reports of OpenAI's users"),
    _refused("max_output_tokens", 128001, f"integer_{ABOVE}", ASSUMED),
    _refused("top_logprobs", 21, f"integer_{ABOVE}", ASSUMED),
    _refused("safety_identifier", "u" * 129, LONG, title="safety_identifier of 129"),
    _refused(
        "prompt_cache_key", "k" * 65, LONG, ASSUMED, title="prompt_cache_key of 65"
    ),
    _refused("metadata", MANY, "object_above_max_properties", title="17 metadata"),
    Case(
        "temperature beside an effort",
        {"temperature": 0.5, "reasoning": {"effort": "low"}},
        "guide Deployment checklist",
        param="temperature",
        code="unsupported_parameter",
    ),
    Case(
        "an effort that the model lacks",
        {"reasoning": {"effort": "minimal"}},
        "inspect_ai 5254",
        param="reasoning.effort",
        code="unsupported_value",
        message="Supported values are",
    ),
    Case(
        "a verbosity that does not exist",
        {"text": {"verbosity": "endless"}},
        TYPES,
        param="text.verbosity",
        code="invalid_value",
    ),
    Case(
        "an include that does not exist",
        {"include": ["everything"]},
        TYPES,
        param="include[0]",
        code="invalid_value",
    ),
    # Older guides say that these two are refused, with the param `store`.
    Case(
        "background that is not stored",
        {"background": True},
        "guide Background mode, 2026-11, for projects with zero data retention",
        status=200,
    ),
    Case(
        "background that does not say whether it is stored",
        {"background": True, "store": None},
        "recorded (923, 925, 927, 930, 932)",
        status=200,
    ),
    Case(
        "background that may take two hours",
        {"background": True, "background_options": {"completion_window": "2h"}},
        "types of openai 3.57.0, guide Flex processing, 2026-11",
        status=200,
    ),
    Case(
        "a completion window without background",
        {"background_options": {"completion_window": "2h"}},
        "types of openai 3.57.0; the words are assumed",
        param="background_options.completion_window",
    ),
    Case(
        "stream options without a stream",
        {"stream_options": {"include_obfuscation": False}},
        "reports of OpenAI's users",
        param="stream_options",
    ),
    Case(
        "a format name with a dot",
        format_text("a.b"),
        "reports of OpenAI's users",
        param="text.format.name",
        code="invalid_value",
        message="does not match pattern",
    ),
    Case(
        "a format name of 65 characters",
        format_text("n" * 65),
        TYPES,
        param="text.format.name",
        code=LONG,
    ),
    Case(
        "json_object without the word",
        {"text": {"format": {"type": "json_object"}}},
        "reports of OpenAI's users",
        param="input",
        message="must contain the word 'json'",
    ),
    Case(
        "a model that does not exist",
        {},
        "recorded in November 2026",
        code="model_not_found",
        param="model",
        model="gpt-99-unheard-of",
    ),
    Case(
        "no input",
        {"input": []},
        "reports of OpenAI's users",
        param="input",
        code="missing_required_parameter",
    ),
)
