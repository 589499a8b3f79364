"""A valid request, as the scenarios see it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.checks.items import ANSWER_TYPES, read_item_type
from simulator.configuration import Configuration
from simulator.models import ModelFacts
from simulator.tokens import REASONING_TOKENS

Item = Mapping[str, Any]
MAX_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class ValidRequest:
    """One request that passed all checks."""

    body: Mapping[str, Any]
    items: Sequence[Item]
    model: ModelFacts
    configuration: Configuration
    reasoning_given: int = 0
    authorization: str = ""

    @property
    def effort(self) -> str | None:
        return self.configuration.effort

    @property
    def reasoning_tokens(self) -> int:
        """How long the model thinks: in pro mode about twice as long.

        Source: reports (inspect_ai 5254).
        """
        mode = (self.body.get("reasoning") or {}).get("mode")
        return 2 * REASONING_TOKENS if mode == "pro" else REASONING_TOKENS

    @property
    def turn(self) -> int:
        """Which turn of the chat this is, counted by user messages."""
        return len([item for item in self.items if _is_user_text(item)])

    @property
    def reasons(self) -> bool:
        return self.effort not in (None, "none")

    @property
    def wants_summary(self) -> bool:
        return bool((self.body.get("reasoning") or {}).get("summary"))

    @property
    def last_user_text(self) -> str:
        questions = [item for item in self.items if _is_user_text(item)]
        return read_message_text(questions[-1]) if questions else ""

    @property
    def outputs(self) -> list[Item]:
        items = self._items_after_question()
        return [item for item in items if read_item_type(item) in ANSWER_TYPES]

    @property
    def rounds(self) -> int:
        """How many times a client answered calls since the last user message."""
        answers = [_is_answer(item) for item in self._items_after_question()]
        begun = zip(answers, [False, *answers], strict=False)
        return sum(is_answer and not was_answer for is_answer, was_answer in begun)

    def tools(self, kind: str) -> list[Item]:
        """Return the allowed tools of one type; one that must be called comes first."""
        choice = self.configuration.choice
        required = choice.get("name") if isinstance(choice, dict) else None
        tools = [tool for tool in self.configuration.allowed if tool["type"] == kind]
        return sorted(tools, key=lambda tool: tool.get("name") != required)

    def _items_after_question(self) -> Sequence[Item]:
        questions = [at for at, item in enumerate(self.items) if _is_user_text(item)]
        return self.items[questions[-1] + 1 if questions else 0 :]

    def words(self) -> dict[str, str]:
        """Return the values of the placeholders that scenarios write as ``$name``."""
        functions = self.tools("function")
        customs = self.tools("custom")
        question = self.last_user_text
        named = [tool for tool in functions if tool["name"] in question]
        function = [*named, *functions, {"name": "get_weather"}][0]
        invented = invent_arguments(functions[0] if functions else {})
        arguments = find_arguments(question) or invented
        noun = "reasoning item" if self.reasoning_given == 1 else "reasoning items"
        outputs = [shorten_line(read_output_text(item)) for item in self.outputs]
        return {
            "turn": str(self.turn),
            "given": f"{self.reasoning_given} {noun}",
            "said": shorten_line(question),
            "output": " | ".join(outputs),
            "tool": str(function["name"]),
            "arguments": arguments,
            "other": arguments.replace("Zürich", "東京").replace("example", "another"),
            "custom": customs[0]["name"] if customs else "apply_note",
        }


def _is_answer(item: Item) -> bool:
    """Tell whether an item is the client's answer to a call or to an approval request.

    The output of a remote call is its server's.
    """
    kind = read_item_type(item)
    if kind == "mcp_approval_response":
        return True
    return kind in ANSWER_TYPES and not item["call_id"].startswith("mcp")


def _is_user_text(item: Item) -> bool:
    """Tell whether an item is a user message with a text.

    A generated picture comes back in a user message without one.
    """
    return item.get("role") == "user" and bool(read_message_text(item))


def read_message_text(message: Item) -> str:
    """Return the text of a message whose content is a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if "text" in part)


def read_output_text(item: Item) -> str:
    output = item["output"]
    if isinstance(output, str):
        return output
    return " ".join(part.get("text", part["type"]) for part in output)


def shorten_line(text: str) -> str:
    """Return one line of at most two hundred characters."""
    line = " ".join(text.split())
    if len(line) <= MAX_SHOWN_CHARACTERS:
        return line
    return f"{line[:MAX_SHOWN_CHARACTERS]}…"


def find_arguments(question: str) -> str:
    """Return the first JSON object in a question, as arguments; empty without one."""
    try:
        start = question.index("{")
        _, end = json.JSONDecoder().raw_decode(question, start)
    except ValueError:
        return ""
    return question[start:end]


def invent_arguments(tool: Item) -> str:
    """Return plausible arguments for a function tool as JSON."""
    schema = tool.get("parameters") or {}
    if "properties" not in schema:
        return "{}" if tool else '{"city":"Zürich"}'
    return json.dumps(
        dict(_invent_object(schema)), ensure_ascii=False, separators=(",", ":")
    )


def _invent_object(schema: Item) -> Iterator[tuple[str, Any]]:
    required = schema.get("required", list(schema["properties"]))
    for name, inner in schema["properties"].items():
        if name in required:
            yield name, _invent_value(name, inner)


def _invent_value(name: str, schema: Item | bool) -> Any:
    if isinstance(schema, bool):
        return "example"
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return dict(_invent_object(schema)) if schema.get("properties") else {}
    samples = {"integer": 3, "number": 1.5, "boolean": True, "array": [], "null": None}
    texts = {"city": "Zürich", "location": "Zürich", "query": "weather", "a": "1"}
    return samples.get(kind, texts.get(name, "example"))
