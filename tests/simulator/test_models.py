"""Keys, models, parameters that a model rejects."""

import typing
from typing import Any

import pytest
from openai.types.shared import ResponsesModel

from chats.pictures import PNG, data_url
from simulator.models import MODELS, is_retired, read_family
from upstream.simulated import Client

PARAMETER = "unsupported_parameter"
VALUE = "unsupported_value"
ALL_TURNS = {"context": "all_turns"}
TTL = {"ttl": "30m"}
OBFUSCATION = {"include_obfuscation": False}
RETENTION = "prompt_cache_retention"
RESPONSE = "previous_response_id"
SAMPLING = [{"temperature": 0.5}, {"top_p": 0.5}]
UP_TO_MAX = "'low', 'medium', 'high', 'xhigh', and 'max'"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("key", "words", "code"),
    [
        (None, "You didn't provide an API key.", None),
        (
            "sk-wrong-key-of-mine",
            "Incorrect API key provided: sk-***",
            "invalid_api_key",
        ),
    ],
)
async def test_missing_or_wrong_key_is_refused(
    client: Client, key: str | None, words: str, code: str | None
) -> None:
    """A wrong one is not repeated whole."""
    reply = await client.post(client.body(), key=key)

    assert reply.status == 401
    assert reply.error["message"].startswith(words)
    assert "sk-wrong-key" not in reply.error["message"]
    assert reply.error["code"] == code


@pytest.mark.asyncio
async def test_the_key_may_come_as_azure_sends_it(client: Client) -> None:
    """The header api-key opens the door too."""
    headers = {"api-key": "sk-simulator-1"}
    reply = await client.post(client.body(), key=None, **headers)

    assert reply.status == 200


@pytest.mark.asyncio
async def test_a_model_that_the_key_may_not_use(client: Client) -> None:
    """A project without access gets 403; the other models stay open to it."""
    reply = await client.post(client.body(), key="sk-simulator-limited")
    other = await client.post(
        {**client.body(), "model": "gpt-5.2"}, key="sk-simulator-limited"
    )

    assert reply.status == 403
    assert reply.error["message"] == (
        "Project `proj_limited` does not have access to model `gpt-5.6-sol`"
    )
    assert reply.error["code"] == "model_not_found"
    assert other.status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-5.2-high", "The requested model 'gpt-5.2-high' does not exist."),
        ("gpt-5-codex", "has been deprecated"),
        ("o1-2024-12-17", "has been deprecated"),
        ("gpt-5.2-chat-latest", "has been deprecated"),
    ],
)
async def test_models_that_are_not_there(
    client: Client, model: str, words: str
) -> None:
    """Unknown ids get 400, retired ones 404."""
    reply = await client.post({**client.body(), "model": model})

    assert reply.status == (404 if "deprecated" in words else 400)
    assert words in reply.error["message"]
    assert reply.error["code"] == "model_not_found"


@pytest.mark.asyncio
@pytest.mark.parametrize("more", SAMPLING)
@pytest.mark.parametrize(
    ("model", "reasoning"),
    [
        ("gpt-5.6-sol", None),
        ("gpt-6.2-sol", {"effort": "low"}),
        ("gpt-5.2", {"effort": "low"}),
        ("o3", None),
    ],
)
async def test_sampling_while_reasoning(
    client: Client, more: dict[str, Any], model: str, reasoning: Any
) -> None:
    """Sampling parameters need an effort that resolves to none."""
    name = next(iter(more))
    error = await client.refused(model=model, reasoning=reasoning, **more)

    assert error["message"] == (
        f"Unsupported parameter: '{name}' is not supported with this model."
    )
    assert (error["code"], error["param"]) == ("unsupported_parameter", name)


@pytest.mark.asyncio
async def test_logprobs_while_reasoning(client: Client) -> None:
    """Log probabilities are sampling too; the words for their number are recorded."""
    included = await client.refused(
        model="gpt-5.6-sol", include=["message.output_text.logprobs"]
    )
    numbered = await client.refused(model="gpt-5.6-sol", top_logprobs=2)

    assert included["code"] == "unsupported_parameter"
    assert numbered == {
        "message": "logprobs are not supported with reasoning models.",
        "type": "invalid_request_error",
        "param": "top_logprobs",
        "code": "unsupported_parameter",
    }


@pytest.mark.asyncio
@pytest.mark.parametrize("more", SAMPLING)
@pytest.mark.parametrize(
    ("model", "reasoning"),
    [("gpt-5.6-sol", {"effort": "none"}), ("gpt-5.2", None), ("gpt-4.1", None)],
)
async def test_sampling_without_reasoning(
    client: Client, more: dict[str, Any], model: str, reasoning: Any
) -> None:
    """Sampling parameters pass where nothing is reasoned."""
    reply = await client.post(
        {**client.body(), "model": model, "reasoning": reasoning, **more}
    )

    assert reply.status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("model", "effort", "supported"),
    [
        ("gpt-5", "none", "'minimal', 'low', 'medium', and 'high'"),
        ("gpt-5.2", "minimal", "'none', 'low', 'medium', 'high', and 'xhigh'"),
        ("gpt-6-astra", "none", UP_TO_MAX),
        ("gpt-5.2-pro", "low", "'medium', 'high', and 'xhigh'"),
        ("gpt-5-pro", "low", "'high'"),
    ],
)
async def test_an_effort_the_model_lacks(
    client: Client, model: str, effort: str, supported: str
) -> None:
    """The refusal lists the efforts that the model has."""
    error = await client.refused(model=model, reasoning={"effort": effort})

    assert error["message"] == (
        f"Unsupported value: '{effort}' is not supported with the '{model}' model. "
        f"Supported values are: {supported}."
    )
    assert error["code"] == "unsupported_value"
    assert error["param"] == "reasoning.effort"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("model", "more", "code", "param"),
    [
        ("gpt-4.1", {"reasoning": {"effort": "low"}}, PARAMETER, "reasoning.effort"),
        ("gpt-4.1", {"reasoning": {"summary": "auto"}}, PARAMETER, "reasoning.summary"),
        ("gpt-4.1", {"include": ["reasoning.encrypted_content"]}, None, "include"),
        ("gpt-4.1", {"text": {"verbosity": "low"}}, VALUE, "text.verbosity"),
        ("gpt-5", {"reasoning": {"summary": "concise"}}, VALUE, "reasoning.summary"),
        ("gpt-5.2", {"reasoning": {"mode": "pro"}}, PARAMETER, "reasoning.mode"),
        ("gpt-5.2", {"reasoning": ALL_TURNS}, PARAMETER, "reasoning.context"),
        ("gpt-5.2", {"prompt_cache_options": TTL}, PARAMETER, "prompt_cache_options"),
        ("gpt-5.6-sol", {RETENTION: "in_memory"}, VALUE, RETENTION),
        ("gpt-5.2", {"stream_options": OBFUSCATION}, None, "stream_options"),
        ("gpt-5.2", {RESPONSE: "resp_1"}, "previous_response_not_found", RESPONSE),
    ],
)
async def test_parameters_that_a_model_rejects(
    client: Client, model: str, more: dict[str, Any], code: str | None, param: str
) -> None:
    """Each parameter is refused by the models that lack it."""
    error = await client.refused(model=model, **more)

    assert (error["code"], error["param"]) == (code, param)


@pytest.mark.asyncio
async def test_minimal_effort_with_web_search(client: Client) -> None:
    """Minimal effort refuses web search in the API's words."""
    error = await client.refused(
        model="gpt-5", reasoning={"effort": "minimal"}, tools=[{"type": "web_search"}]
    )

    assert error["message"] == (
        "The following tools cannot be used with reasoning.effort 'minimal': web_search."
    )
    assert error["param"] == "tools"


@pytest.mark.asyncio
async def test_hosted_tools_that_a_model_lacks(client: Client) -> None:
    """A model takes the others."""
    files = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    tools = [files, {"type": "web_search"}]
    error = await client.refused(model="gpt-5-nano", tools=tools)

    words = "Hosted tool 'web_search' is not supported with gpt-5-nano."
    assert (error["message"], error["param"]) == (words, "tools")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("profile", "refused", "taken", "param"),
    [
        (
            "unverified",
            {"reasoning": {"summary": "auto"}},
            {"stream": True},
            "reasoning.summary",
        ),
        ("unverified-stream", {"stream": True}, {}, "stream"),
    ],
)
async def test_unverified_organization_is_refused_restricted_features(
    client: Client, profile: str, refused: Any, taken: Any, param: str
) -> None:
    """What is not restricted is answered."""
    client.headers = {"X-Simulator-Profile": profile}
    error = await client.refused(model="gpt-5.2", **refused)
    answered = await client.post(client.body(**taken))

    assert error["message"].startswith("Your organization must be verified to ")
    assert (error["code"], error["param"]) == ("unsupported_value", param)
    assert answered.status == 200


@pytest.mark.asyncio
async def test_azure_has_no_context_management(client: Client) -> None:
    """The profile azure refuses context_management; its rate limits are recorded (554)."""
    client.headers = {"X-Simulator-Profile": "azure"}
    error = await client.refused(
        model="gpt-5.2", context_management=[{"type": "compaction"}]
    )
    reply = await client.post(client.body())

    assert error["param"] == "context_management"
    assert reply.headers["x-ratelimit-limit-requests"] == "250"


@pytest.mark.asyncio
async def test_an_unknown_profile(client: Client) -> None:
    """A misspelt profile is not taken for the strictest."""
    reply = await client.post(client.body(), **{"X-Simulator-Profile": "lenient"})

    assert (reply.status, reply.error["code"]) == (400, "no_profile")


@pytest.mark.asyncio
async def test_input_beyond_the_context_is_refused(client: Client) -> None:
    """An input beyond the context gets context_length_exceeded; pictures are no text."""
    text = "word " * 250_000
    error = await client.refused(model="gpt-5.2", input=text)
    picture = data_url(PNG + bytes(1_100_000), "image/png")
    part = {"type": "input_image", "image_url": picture, "detail": "auto"}
    seen = await client.post(client.body([{"role": "user", "content": [part]}]))

    assert (error["code"], error["param"]) == ("context_length_exceeded", "input")
    assert seen.status == 200


@pytest.mark.asyncio
async def test_the_list_of_models(client: Client) -> None:
    """GET /v1/models needs a key and lists living models with their last day."""
    url = f"{client.simulator.base_url}/models"
    headers = {"Authorization": "Bearer sk-simulator-1"}
    async with client.session.get(url, headers=headers) as answer:
        listed = {model["id"]: model for model in (await answer.json())["data"]}
    async with client.session.get(url) as refused:
        assert refused.status == 401

    assert listed["gpt-5"]["shutdown_date"] == "2026-12-11"
    assert listed["gpt-6-luna"]["shutdown_date"] is None
    assert "gpt-5-codex" not in listed


@pytest.mark.asyncio
async def test_unknown_address_gets_404(client: Client) -> None:
    """An address that the API does not have gets 404."""
    url = f"{client.simulator.base_url}/chat/completions"
    async with client.session.post(url, json={}) as answer:
        error = (await answer.json())["error"]

    assert answer.status == 404
    assert error["message"] == "Invalid URL (POST /v1/chat/completions)"


def test_the_table_knows_the_models_of_the_package() -> None:
    """Every text model of the openai package is living, retired, or left out by name."""
    dropped_parameters = {"gpt-5.1-mini", "gpt-rosalind-research"}
    literals = [
        name
        for option in typing.get_args(ResponsesModel)
        for inner in (option, *typing.get_args(option))
        for name in typing.get_args(inner)
        if isinstance(name, str)
    ]
    texts = [
        name
        for name in literals
        if name.startswith(("gpt-5", "gpt-6", "o1", "o3", "o4", "gpt-4.1"))
    ]

    unknown = {name for name in texts if name not in MODELS and not is_retired(name)}
    assert len(texts) > 40
    assert unknown <= dropped_parameters


def test_variants_of_a_series_share_a_family() -> None:
    """Variants and snapshots of one series share a family; series do not."""
    assert read_family("gpt-5.2-pro-2025-12-11") == read_family("gpt-5.2") == "gpt-5.2"
    assert read_family("gpt-5-mini") == "gpt-5"
    assert read_family("o3-pro") == "o3"
