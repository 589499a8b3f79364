"""Settings of the tools that run here."""

from pydantic import BaseModel, Field

from gpt5_agent.sealing import SECRET_FORMS


class OwnToolValves(BaseModel):
    """Which tools the agent brings itself, and what they may do."""

    TOOL_APPROVAL: str = Field(
        default="",
        description="Which tools need a person's consent, as `pattern=auto`, `ask` or "
        "`deny`, separated by commas. Example: `delete_*=ask, shell=deny`.",
    )
    TOOL_TIMEOUT_SECONDS: int = Field(
        default=120, description="For a single call of our own tools. Example: `120`."
    )
    TOOL_OUTPUT_CHARACTERS: int = Field(
        default=100_000,
        description="Longest output of a tool of our own that the model gets; of a "
        "longer one it gets the beginning and the end. Example: `100000`.",
    )
    MCP_SERVERS_JSON: str = Field(
        default="",
        description="MCP servers whose tools run here, as a JSON list of objects: "
        "`server_label`, `server_url`, `authorization` (a token), `headers`, "
        "`allowed_tools` (patterns), `timeout`; or, with ALLOW_STDIO, `command` and "
        f"`env` instead of an address. Tokens, headers and `env` can be {SECRET_FORMS} "
        'Example: `[{"server_label": "docs", "server_url": "https://mcp.example.org", '
        '"authorization": "env:DOCS_TOKEN"}]`.',
    )
    ALLOW_STDIO: bool = Field(
        default=False,
        description="Let MCP_SERVERS_JSON start programs on this server. The server "
        "takes new valves from whoever reaches it, without a key: then whoever does "
        "can run anything. Example: `false`.",
    )
    OPENAPI_SERVERS_JSON: str = Field(
        default="",
        description="Servers with an OpenAPI document whose operations are tools that "
        "run here, as a JSON list of objects: `server_label`, `server_url` (of the "
        "document), `base_url`, `authorization`, `headers`, `allowed_tools`, "
        f"`timeout`. Tokens and headers can be {SECRET_FORMS} Example: "
        '`[{"server_label": "shop", "server_url": "http://10.0.0.2/openapi.json"}]`.',
    )
    SANDBOX: bool = Field(
        default=False,
        description="Let the model run Python and keep files, in a sandbox without "
        "network. Where none can be had the log says why, and nothing is offered. "
        "Example: `true`.",
    )
    SANDBOX_SECONDS: int = Field(
        default=30, description="For one run in the sandbox. Example: `30`."
    )
    SANDBOX_MEMORY_MB: int = Field(
        default=512, description="For one run, all its processes. Example: `512`."
    )
    SANDBOX_DISK_MB: int = Field(
        default=64, description="For the files of one chat. Example: `64`."
    )
    SANDBOX_WHEELS: str = Field(
        default="",
        description="Folder of wheels that runs may install; empty installs nothing. "
        "Example: `/srv/wheels`.",
    )
    FILES_ROOT: str = Field(
        default="",
        description="The one folder from which tools may hand over files by their path; "
        "empty forbids it. Example: `/files`.",
    )
