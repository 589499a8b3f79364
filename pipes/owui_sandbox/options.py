"""The settings of the sandbox in Open WebUI."""

from pydantic import BaseModel, Field

from sandbox.options import SandboxOptions


class StoredSandboxOptions(SandboxOptions):
    """What SANDBOX_OPTIONS of this tool can hold."""

    hours: int = Field(
        default=24,
        ge=1,
        le=720,
        description="How long the files of a chat are kept after their last use, 1 to "
        "720.",
    )


class SandboxValves(BaseModel):
    """The settings that an administrator sees."""

    SANDBOX_OPTIONS: str = Field(
        default="",
        description="A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of "
        "one chat, `hours` that its files are kept, `wheels` (a folder of packages to "
        'import). Example: `{"seconds": 60, "wheels": "/srv/wheels"}`.',
    )
