"""The only module of the filter that uses `open_webui`; names are looked up at use."""

from importlib import import_module
from typing import Any

from openai_responses.errors import InvalidRequest


def exports_telemetry() -> bool:
    """Say whether the host exports spans or metrics; an older one says nothing."""
    try:
        traces = _host_name("env", "ENABLE_OTEL_TRACES")
        metrics = _host_name("env", "ENABLE_OTEL_METRICS")
        return bool(_host_name("env", "ENABLE_OTEL") and (traces or metrics))
    except InvalidRequest:
        return False


def _host_name(module: str, name: str) -> Any:
    """Return a name of the host; raises InvalidRequest if it does not exist."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise InvalidRequest(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "the filter of the administration needs. An administrator has to update it."
        ) from None
