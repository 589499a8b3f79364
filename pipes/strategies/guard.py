"""Checks calls before they are made: tool, arguments, and no repeated failure.

The error texts are fixed (docs/reference/pipelines-server.md, "Texts for the model"),
and a model that reads one can correct itself.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping
from openai_responses.loop.arguments import check_arguments
from openai_responses.loop.tools import (
    CallableTools,
    CallJudge,
    Judgment,
    ToolResult,
    Verdict,
    is_out_of_time,
    read_arguments,
)

TOOL_FAILED_TEXT = "tool invoke error: failed to execute tool"
"""The first line of what the model reads of a tool that raised; the cause follows."""
_TOOL_REPEATED_TEXT = (
    "tool invoke error: repeated failure detected; skipped duplicate call"
)


class GuardedTools:
    """Tools whose calls are checked; a call that raised is not made again.

    One that returned an error, or took too long, may be: "try again later" is an error
    too.

    These are the tools of a run and the judge of their calls.
    """

    holds_calls = False
    """Nobody is asked before the host may see a call, so calls are shown at once."""

    def __init__(
        self, tools: CallableTools, next_judge: CallJudge | None = None
    ) -> None:
        """Start without failures; `next_judge` decides about the calls left over."""
        self._tools = tools
        self.parameters = tools.parameters
        self.resolve_call = tools.resolve_call
        self.call_kind = tools.call_kind
        self._next_judge = next_judge
        self._failed: set[str] = set()
        """The signatures of the calls that raised."""

    def refusal(self, call: Item) -> str | None:
        """Return the error text of a call that may not be made, or None."""
        name = str(call.get("name") or "")
        schema = self.parameters(name)
        if schema is None:
            return f"there is not a tool named {name}"
        try:
            arguments = parse_arguments(call)
        except ValueError as error:
            return f"tool arguments parse error: {error}"
        _, invalid = check_arguments(arguments, schema)
        problem = _option_error(arguments, schema) or invalid
        if problem:
            return f"tool arguments validation error: {problem}"
        if self._signature(name, arguments) in self._failed:
            return _TOOL_REPEATED_TEXT
        return None

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Refuse the calls that may not be made; all others are made here, or left."""
        refused: dict[str, Verdict] = {}
        for call in calls:
            why = self.refusal(call)
            if why:
                result = ToolResult(why, failed=True)
                refused[call["call_id"]] = Verdict(call, result)
        allowed = [call for call in calls if call["call_id"] not in refused]
        judgment = Judgment([Verdict(call) for call in allowed])
        if self._next_judge:
            judgment = await self._next_judge.judge(allowed)
        judged = iter(judgment.verdicts)
        verdicts = [refused.get(call["call_id"]) or next(judged) for call in calls]
        return Judgment(verdicts, judgment.question)

    def record_failed_call(self, call: Item) -> None:
        """Remember a call that raised in an earlier round."""
        name = str(call.get("name") or "")
        with suppress(ValueError):
            self._failed.add(self._signature(name, parse_arguments(call)))

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool, and remember a call that raised.

        The loop ends a call that takes too long with a CancelledError; a tool's own time
        limit raises a TimeoutError.
        """
        if self._signature(name, arguments) in self._failed:
            return ToolResult(_TOOL_REPEATED_TEXT, failed=True)
        try:
            return await self._tools.call(name, arguments)
        except BaseException as error:
            if not is_out_of_time(error):
                self._failed.add(self._signature(name, arguments))
            raise

    def _signature(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a text that is equal for calls with the same checked arguments."""
        checked, _ = check_arguments(arguments, self.parameters(name) or {})
        return f"{name} {json.dumps(checked, sort_keys=True, default=str)}"


def parse_arguments(call: Item) -> dict[str, Any]:
    """Return the arguments of a call; raises ValueError without a JSON object."""
    arguments = read_arguments(call)
    if arguments is None:  # some models write null for none
        return {}
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments


def _option_error(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the error of the first value that is not an option; empty without one."""
    properties = as_mapping(schema.get("properties"))
    for name, value in arguments.items():
        node = as_mapping(properties.get(name))
        listed = node.get("enum") or node.get("options")  # the latter is no JSON Schema
        options = [_option_text(option) for option in as_list(listed)]
        if not options or value is None:
            continue
        text = _option_text(value)
        if text not in options:
            return f"parameter '{name}' value {text!r} not in options {options}"
    return ""


def _option_text(value: object) -> str:
    """Return a value in the form in which options are compared."""
    if isinstance(value, Mapping) and "value" in value:
        return _option_text(value["value"])
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is 1 in JSON Schema
    return str(value)
