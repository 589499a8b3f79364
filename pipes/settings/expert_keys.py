"""The keys of EXPERT_JSON that the pipe and the agents both have.

Those of the pipe alone are in owui_manifold/call/expert.py. One that is added here is on
both pages, in docs/settings.md and in docs/agent-settings.md.
"""

from pydantic import BaseModel, ConfigDict

from settings.table import key, key_at_pipelines


class ExpertKeys(BaseModel):
    """Keys of EXPERT_JSON at both doors."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True)

    connect_timeout_seconds: float = key(30, "Time limit to open a connection.", gt=0)
    first_event_timeout_seconds: float = key(
        300, "Longest silence before an answer begins.", bounds=(30, 900)
    )
    idle_timeout_seconds: float = key(
        300,
        "Longest silence within an answer, also in reasoning.",
        bounds=(30, 900),
    )
    max_retries: int = key(
        2,
        "How often a request that failed before any text is retried.",
        bounds=(0, 5),
    )
    caller_may_set: str = key(
        "",
        "What requests may set although it is reserved for administrators, separated by "
        "commas: parameters, types of OpenAI's tools, fields (`mcp.server_url`); "
        "`admin:service_tier` opens a name for administrators' requests only "
        "(docs/parameters.md).",
        pipelines="What a request may set in addition to its chat, tools, sampling and format, "
        "separated by commas; also possible: `agent_model`, `instruction`, "
        "`prompt_policy_overrides`, `maximum_iterations`, `reasoning_effort`, "
        "`reasoning_summary`, `verbosity` and the API's parameters. Anyone who may chat "
        "can then spend more, or change the rules.",
    )
    audit_log: bool = key(
        False,
        "Log one JSON line for each request, success and error, without text of the "
        "chat. `OPENAI_GPT5_AUDIT_LOG=true` in the environment does the same.",
    )


class AgentExpertKeys(ExpertKeys):
    """What EXPERT_JSON can hold at the Pipelines server."""

    max_retries: int = key_at_pipelines(ExpertKeys, "max_retries", 1)
    caller_may_set: str = key_at_pipelines(
        ExpertKeys, "caller_may_set", "context, query, emit_intermediate_thoughts"
    )
