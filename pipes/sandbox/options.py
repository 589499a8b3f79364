"""The settings of a sandbox, as administrators write them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from sandbox.backend import MEBIBYTE, SandboxLimits


class SandboxOptions(BaseModel):
    """What SANDBOX_OPTIONS can hold."""

    model_config = ConfigDict(frozen=True)

    seconds: int = Field(
        default=30, ge=1, le=600, description="Time limit of one run, 1 to 600."
    )
    memory_mb: int = Field(
        default=512,
        ge=64,
        le=16_384,
        description="Memory of one run, for all its processes, 64 to 16384.",
    )
    disk_mb: int = Field(
        default=64,
        ge=1,
        le=1024,
        description="Space for the files of one chat, 1 to 1024.",
    )
    wheels: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        default="",
        description="Folder of wheels whose packages can be imported.",
    )


def build_sandbox_limits(options: SandboxOptions, output: int) -> SandboxLimits:
    """Return the limits of a run; `output` is in bytes."""
    disk = options.disk_mb * MEBIBYTE
    return SandboxLimits(
        seconds=options.seconds,
        memory=options.memory_mb * MEBIBYTE,
        disk=disk,
        file=disk,
        output=output,
    )
