"""The results of reading a schema, and of checking arguments against it, one by one."""

from collections.abc import Mapping
from typing import Any

from openai_responses.json_input import JsonBudget, JsonTooLarge
from openai_responses.loop.arguments import check_arguments
from openai_responses.requests.json_schema import MAX_STRICT_WORK, function_parameters


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form without strict mode."""
    return function_parameters(schema)[0]


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the form for strict mode, None if the schema is not simple.

    A schema that is too large to be sent has no form at all.
    """
    try:
        form, is_strict = function_parameters(schema, JsonBudget(MAX_STRICT_WORK))
    except JsonTooLarge:
        return None
    return form if is_strict else None


def argument_error(arguments: object, schema: Mapping[str, Any]) -> str | None:
    """Return the error in the arguments, None if they are valid."""
    return check_arguments(arguments, schema)[1]


def drop_optional_nulls(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments without the nulls that mean "not given"."""
    return check_arguments(arguments, schema)[0]
