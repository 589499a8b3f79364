"""Settings of the tools that OpenAI runs."""

from typing import Literal

from pydantic import BaseModel, Field


class HostedValves(BaseModel):
    """What the model may have OpenAI do."""

    ENABLE_WEB_SEARCH: bool = Field(
        default=False,
        description="Offer OpenAI's web search to every chat. It is billed per search.",
    )
    MAP_WEB_SEARCH: bool = Field(
        default=True,
        description="Let the Web Search switch of the page mean OpenAI's search "
        "instead of Open WebUI's own.",
    )
    WEB_SEARCH_CONTEXT_SIZE: Literal["low", "medium", "high"] = Field(
        default="medium",
        description="How much of the pages that it finds the model reads; more costs more.",
    )
    WEB_SEARCH_USER_LOCATION: str = Field(
        default="",
        description="Where users are, as `city, region, country, timezone`, for "
        "example `Bern, BE, CH, Europe/Zurich`, or as a JSON object of these.",
    )
    WEB_SEARCH_ALLOWED_DOMAINS: str = Field(
        default="",
        description="Search only these domains and those below them, separated by "
        "commas. Empty: all.",
    )
    FILE_SEARCH_VECTOR_STORES: str = Field(
        default="",
        description="Ids of vector stores at OpenAI to search in, separated by commas.",
    )
    ENABLE_IMAGE_GENERATION: bool = Field(
        default=False,
        description="Let the model draw and change pictures with OpenAI's tool, which "
        "is billed by picture. They are stored as files of the user who asked.",
    )
    IMAGE_GENERATION_OPTIONS: str = Field(
        default='{"partial_images": 2}',
        description="What OpenAI's tool takes, as a JSON object: `quality`, `size`, "
        "`background`, `output_format`, `model`; `partial_images` (0 to 3) is how often "
        "an unfinished picture is shown.",
    )
    ENABLE_CODE_INTERPRETER: bool = Field(
        default=False,
        description="Let the model run Python in a container at OpenAI, which is billed "
        "by container. What the code leaves is stored as files of the user who asked.",
    )
    REMOTE_MCP_SERVERS_JSON: str = Field(
        default="",
        description="Remote MCP servers that OpenAI calls for the model, as a JSON list "
        "of objects: `server_label`, `server_url` or `connector_id`, `authorization`, "
        "`headers`, `allowed_tools`, `require_approval`, `server_description`. Unless "
        "`require_approval` says `never`, people are asked before each call.",
        json_schema_extra={"input": {"type": "password"}},
    )
