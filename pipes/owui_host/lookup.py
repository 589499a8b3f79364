"""The only module that imports `open_webui`.

Names are looked up when they are used. If an older host lacks one, whoever needed it
gets a message, and the plugin still loads.
"""

from importlib import import_module
from typing import Any

from openai_responses.errors import InvalidRequest


class HostTooOld(InvalidRequest):
    """This Open WebUI lacks a name that the plugin needs."""


def host_name(module: str, name: str) -> Any:
    """Return a name of a module in `open_webui`; raises HostTooOld without one."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise HostTooOld(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "this plugin needs. An administrator has to update the plugin or Open "
            "WebUI.",
            remedy="setup",
        ) from None
