"""Whether a model accepts the parameters of a request."""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.accounts import Profile
from simulator.checks.schemas import find_lookaround
from simulator.configuration import Configuration, Tool
from simulator.models import MODELS, ONLY_CHAT, ModelFacts, is_retired
from simulator.refusals import enumerate_values, refuse, refuse_unsupported_value

Body = Mapping[str, Any]
SAMPLING_PARAMETERS = ("temperature", "top_p")
# Of the models that are still served; the words are those of QuantumNous/new-api 1586.
# Which models these are: jrkropp/open-webui-developer-toolkit 716; of pro it is assumed.
HOSTED_TOOLS_LACKING = {
    "gpt-5-nano": ("web_search", "web_search_preview"),
    "gpt-5-pro": ("code_interpreter",),
    "o3-pro": ("code_interpreter",),
}
DEEP_RESEARCH = "-deep-research"
RESEARCH_TOOLS = ("web_search_preview", "code_interpreter", "mcp", "file_search")
WITHOUT_SCHEMAS = ("gpt-5.2-pro",)
ULTRAFAST = ("gpt-6-astra", "gpt-6.1-sol", "gpt-6.2-sol", "gpt-6.2-astra")
REFUSED_AT_MINIMAL = ("web_search", "file_search", "image_generation")


def find_model(id: str) -> ModelFacts:
    """Return the facts of a living model or raise the refusal.

    Source: reports of OpenAI's users.
    """
    if id in MODELS:
        return MODELS[id]
    if id.startswith(ONLY_CHAT):
        raise refuse("chat_model", model=id)
    if is_retired(id):
        raise refuse("retired_model", model=id)
    raise refuse("unknown_model", model=id)


def check_research_tools(body: Body) -> None:
    """Raise the refusal of tools that models for deep research do not have.

    Source: recorded. Assumed: that it still comes before the refusal of these models,
    which were shut down in July 2026.
    """
    if DEEP_RESEARCH not in (body.get("model") or ""):
        return
    kinds = {tool["type"] for tool in body.get("tools") or []}
    if kinds - set(RESEARCH_TOOLS):
        names = enumerate_values(RESEARCH_TOOLS)
        raise refuse("research_tools", names=names)


def check_model(
    body: Body, model: ModelFacts, profile: Profile, configuration: Configuration
) -> None:
    """Raise the refusal for the first parameter this model rejects.

    ``configuration`` is what holds after the updates in the input.

    Source: reports of OpenAI's users.
    """
    _check_reasoning(body, model)
    if configuration.effort not in (None, "none"):
        _refuse_sampling(body, model)
    # Source: types of openai 3.54.0; the wording is assumed.
    verbosity = (body.get("text") or {}).get("verbosity")
    if verbosity is not None and verbosity not in model.verbosities:
        raise refuse_unsupported_value(
            "text.verbosity", verbosity, model.id, model.verbosities
        )
    # Source: models.dev 910, langchain 35215; the words are those of Chat Completions
    # (harbor-framework/terminal-bench-1 303).
    format = configuration.format["type"]
    if format == "json_schema" and model.id.startswith(WITHOUT_SCHEMAS):
        raise refuse("format_of_model", kind=format)
    # Source: guide "Ultrafast mode"; codex 15099 for the words, of another tier.
    tier = body.get("service_tier")
    if tier == "ultrafast" and model.id not in ULTRAFAST:
        raise refuse("service_tier", name=tier)
    _check_tools(configuration, model)
    # Source: opencode 32073, vercel/ai 16021 and 20021; that GPT-6 takes patterns that
    # look around is assumed. gpt-5.4 fails on them: `is_broken_by`.
    if (5, 5) <= model.series < (6, 0):
        pattern_path = find_lookaround(configuration.tools)
        if pattern_path:
            raise refuse("lookaround", path=pattern_path)
    _check_caching(body, model)
    _check_organization(body, profile)
    if body.get("stream_options") is not None and not body.get("stream"):
        raise refuse("stream_options")


def _check_reasoning(body: Body, model: ModelFacts) -> None:
    """Source: inspect_ai 5254; of summaries and contexts assumed."""
    reasoning = body.get("reasoning") or {}
    if not model.reasons:
        for name, value in reasoning.items():
            if value is not None:
                raise refuse("unsupported_parameter", path=f"reasoning.{name}")
        if "reasoning.encrypted_content" in (body.get("include") or []):
            raise refuse("encrypted_content")
        return
    effort = reasoning.get("effort")
    summary = reasoning.get("summary")
    if effort is not None and effort not in model.efforts:
        raise refuse_unsupported_value(
            "reasoning.effort", effort, model.id, model.efforts
        )
    if summary == "concise" and model.series <= (5, 0):
        raise refuse_unsupported_value(
            "reasoning.summary", summary, model.id, ("auto", "detailed")
        )
    mode = reasoning.get("mode", "standard")
    if mode != "standard":
        if model.series < (5, 6):
            raise refuse("unsupported_parameter", path="reasoning.mode")
        # The wording for newer models is assumed.
        modes = ("standard", "pro") if model.has_pro_mode else ("standard",)
        if mode not in modes:
            raise refuse_unsupported_value("reasoning.mode", mode, model.id, modes)
    if reasoning.get("context") == "all_turns" and model.series < (5, 4):
        raise refuse("unsupported_parameter", path="reasoning.context")


def _refuse_sampling(body: Body, model: ModelFacts) -> None:
    """Refuse sampling; the 6.2 models take the default of 1 (a probe of 2026-11-19).

    Source: guide "Deployment checklist"; of `top_logprobs` recorded.
    """
    for name in SAMPLING_PARAMETERS:
        value = body.get(name)
        is_default = value == 1 and model.series >= (6, 2)
        if value is not None and not is_default:
            raise refuse("unsupported_parameter", path=name)
    if body.get("top_logprobs") is not None:
        raise refuse("logprobs")
    if "message.output_text.logprobs" in (body.get("include") or []):
        raise refuse(
            "unsupported_parameter", path="include[message.output_text.logprobs]"
        )


def _check_tools(configuration: Configuration, model: ModelFacts) -> None:
    """Source: QuantumNous/new-api 1586, jrkropp/open-webui-developer-toolkit 716."""
    kinds = [tool["type"] for tool in configuration.tools]
    for kind in kinds:
        if kind in HOSTED_TOOLS_LACKING.get(model.id, ()):
            raise refuse("hosted_tool", kind=kind, id=model.id)
    refused = [kind for kind in kinds if kind in REFUSED_AT_MINIMAL]
    if configuration.effort == "minimal" and refused:
        raise refuse("tools_at_minimal", names=", ".join(refused))


def is_broken_by(tools: Sequence[Tool], model: ModelFacts) -> bool:
    """Tell whether a pattern makes the model fail with a bare `server_error`."""
    return model.series == (5, 4) and bool(find_lookaround(tools))


def _check_caching(body: Body, model: ModelFacts) -> None:
    """Source: guide "Prompt caching"; the wording is assumed."""
    options = set(body.get("prompt_cache_options") or {}) - {"comparison_response_id"}
    if options and not model.writes_cache_explicitly:
        raise refuse("unsupported_parameter", path="prompt_cache_options")
    retention = body.get("prompt_cache_retention")
    if retention == "in_memory" and model.series >= (5, 5):
        raise refuse_unsupported_value(
            "prompt_cache_retention", retention, model.id, ("24h",)
        )


def _check_organization(body: Body, profile: Profile) -> None:
    """Source: reports of OpenAI's users."""
    summary = (body.get("reasoning") or {}).get("summary")
    if summary and not profile.verified_for_summaries:
        raise refuse(
            "unverified",
            action="generate reasoning summaries",
            param="reasoning.summary",
        )
    if body.get("stream") and not profile.verified_for_streaming:
        raise refuse("unverified", action="stream this model", param="stream")
    if body.get("context_management") and not profile.accepts_context_management:
        raise refuse("unsupported_parameter", path="context_management")
    if body.get("previous_response_id"):
        raise refuse("unknown_previous", id=body["previous_response_id"])
