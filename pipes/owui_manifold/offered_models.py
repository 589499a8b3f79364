"""The models that the pipe lists, answered from memory: every page load asks."""

from openai_responses.clock import utc_today
from openai_responses.errors import ResponsesError
from openai_responses.model_list import newest_models
from openai_responses.models import ResolvedModel
from openai_responses.overrides import Overrides, read_overrides, resolve_overridden
from openai_responses.transport import Connections
from owui_manifold.listing import Listing
from owui_manifold.settings import endpoint_of
from owui_manifold.valves import Valves

_AUTO = "auto"


def offered_models(
    valves: Valves, listing: Listing, connections: Connections
) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_ID by the names that are listed, in their order.

    `auto` stands for the newest of each family that the key can use. A name that an
    administrator wrote stays, whatever the server says: it fails at use.
    """
    overrides = _overrides(valves)
    names: list[str] = []
    for entry in valves.MODEL_ID.split(","):
        name = entry.strip()
        names += _newest(valves, listing, connections) if name == _AUTO else [name]
    listed = dict.fromkeys(name for name in names if name)
    return {name: resolve_overridden(name, overrides) for name in listed}


def listed_models(valves: Valves, overrides: Overrides) -> list[ResolvedModel]:
    """Return the models that the administrator wrote into MODEL_ID."""
    names = [name.strip() for name in valves.MODEL_ID.split(",")]
    written = dict.fromkeys(name for name in names if name not in ("", _AUTO))
    return [resolve_overridden(name, overrides) for name in written]


def _newest(valves: Valves, listing: Listing, connections: Connections) -> list[str]:
    today = utc_today().isoformat()
    usable = None
    if valves.FETCH_MODELS:
        try:
            usable = listing.usable(endpoint_of(valves), connections)
        except ResponsesError:
            usable = None  # without a key there is nothing to ask
    # A server whose list holds none of ours, as Azure's, does not tell what it serves.
    return newest_models(today, usable) or newest_models(today)


def _overrides(valves: Valves) -> Overrides:
    """Return what the administrator says of models; the chat tells of a mistake."""
    try:
        return read_overrides(valves.MODEL_OVERRIDES_JSON)
    except ResponsesError:
        return {}
