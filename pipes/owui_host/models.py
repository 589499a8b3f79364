"""The models of Open WebUI, as it lists them."""

from typing import Any

from openai_responses.json_input import JsonObject, as_mapping


def model_entry(metadata: JsonObject, request: Any) -> JsonObject:
    """Return the host's entry of the model that answers; empty if it says nothing of one.

    `metadata["model"]` is the first one where a question goes to several models, and the
    arena where it goes to one of those. Whoever asks chooses both, so what an
    administrator says of a model is read from its own entry (docs/reference/open-webui.md,
    "Parameters and switches of a call").
    """
    model = as_mapping(metadata.get("model"))
    chosen = metadata.get("model_id")
    if not model or request is None or chosen in (None, model.get("id")):
        return model
    return as_mapping(request.app.state.MODELS.get(chosen)) or model
