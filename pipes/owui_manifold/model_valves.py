"""Settings of the models that are offered."""

from pydantic import BaseModel, Field


class ModelValves(BaseModel):
    """Which models there are, what they cost."""

    MODEL_ID: str = Field(
        default="gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        description="Models to offer, separated by commas. An effort can be part of "
        "the name: `gpt-5.2-high`, `o3-mini-high`, `gpt-5-thinking-high`. `auto` is "
        "the newest of each family, `gpt-5-auto` chooses a model for each chat.",
    )
    FETCH_MODELS: bool = Field(
        default=True,
        description="For `auto`: ask the server now and then which models the key may "
        "use, and leave out the others. What MODEL_ID names itself always stays.",
    )
    MODEL_OVERRIDES_JSON: str = Field(
        default="",
        description="What models can do, over what this pipe knows, as a JSON object: "
        '`{"my-deployment": {"like": "gpt-5.2", "name": "Our GPT"}}`.',
    )
    TASK_MODEL: str = Field(
        default="gpt-6-luna",
        description="Model for titles, tags and other small tasks, at its lowest "
        "effort. Empty, or on another server than OpenAI's: the chat's own.",
    )
    SHOW_COST: bool = Field(
        default=False,
        description="Show what an answer cost, in its last status line and its usage, "
        "by the prices of the standard tier.",
    )
    CUSTOM_MODEL_PRICING_JSON: str = Field(
        default="",
        description="Prices in US dollars for a million tokens, over those that this "
        'pipe knows: `{"my-model": {"input": 2, "cached": 0.5, "output": 8}}`.',
    )
