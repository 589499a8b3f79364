"""The system instruction: an instruction and four policy blocks, which can be replaced.

Models from GPT-5.5 on follow short policies better.
"""

from collections.abc import Mapping
from typing import Literal

from openai_responses.json_input import as_text, parse_json_object
from openai_responses.models.facts import read_gpt_version

PolicyStyle = Literal["full", "lean", "auto"]
ChosenStyle = Literal["full", "lean"]

_DEFAULT_INSTRUCTION = "You are a helpful GPT-5 agent."

_POLICY_TAGS: Mapping[str, str] = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
"""The blocks in their order, each with the tag around it."""

_FULL_POLICIES: Mapping[str, str] = {
    "persistence_policy": """\
- You are an agent: go on until the request is answered in full, then end your turn.
- Where something is open that does not change the outcome much, take the most \
reasonable assumption, go on, and name the assumption in the answer.
- When a step fails, try another way before you report that it cannot be done.
- Reading and searching need no permission. Do not delete, buy, send or publish \
anything that the user did not ask for.""",
    "context_gathering_policy": """\
- Find out what you need, then act: look as widely as the question asks, no wider.
- Begin broad, then ask a few focused questions side by side; do not repeat a search.
- Stop as soon as you can name the answer or the exact change, or when most sources \
agree.
- If a result contradicts another one, look once more at that point, then decide.""",
    "uncertainty_policy": """\
- Never make up numbers, names, quotations, addresses or sources. Say what you do not \
know.
- If a request has several meanings that lead to different results, and no tool can \
tell which is meant, ask one to three precise questions, or answer the two or three \
likeliest readings, each under its own heading.
- Tell what you found apart from what you conclude from it.""",
    "tool_preamble_policy": """\
- Before the first tool, say in one or two sentences what the goal is and how you will \
reach it.
- Between tools, say in one sentence what you learned and what comes next.
- Give the result as an answer of its own: it must be complete for a reader who has \
seen none of these notes.""",
}

_LEAN_POLICIES: Mapping[str, str] = {
    "persistence_policy": "Go on until the request is fulfilled; do not stop to "
    "propose a next step that you can take yourself.",
    "context_gathering_policy": "Gather only what decides the answer, several things "
    "at once, then act.",
    "uncertainty_policy": "Never invent facts or sources. Ask only if the answer "
    "changes the result and no tool can find it; else name your assumption.",
    "tool_preamble_policy": "Before the first tool, say in one sentence what you do.",
}

_FIRST_LEAN_VERSION = (5, 5)
"""From this version on short policies work better (docs/reference/responses-api.md,
"Short policies")."""


def build_system_instruction(
    base_instruction: str,
    prompt_policy_overrides: str = "",
    style: ChosenStyle = "full",
) -> str:
    """Return the instruction, the four blocks, then what the overrides add.

    Overrides are a JSON object that replaces blocks by their keys, or another text,
    which is added unchanged.
    """
    texts = dict(_FULL_POLICIES if style == "full" else _LEAN_POLICIES)
    overrides = parse_json_object(prompt_policy_overrides)
    if overrides is None:
        overrides = {"extra_policy": prompt_policy_overrides}
    for key in (*_POLICY_TAGS, "extra_policy"):
        if as_text(overrides.get(key)).strip():
            texts[key] = overrides[key]
    parts = [base_instruction.strip() or _DEFAULT_INSTRUCTION]
    for key, tag in _POLICY_TAGS.items():
        inner = texts[key].strip()
        brings_tag = inner.startswith(f"<{tag}>") and inner.endswith(f"</{tag}>")
        parts.append(inner if brings_tag else f"<{tag}>\n{inner}\n</{tag}>")
    parts.append(texts.get("extra_policy", ""))
    return "\n\n".join(part for part in parts if part)


def choose_style(style: PolicyStyle, family: str) -> ChosenStyle:
    """Return the style for a family of models; only newer GPTs get `lean`."""
    if style != "auto":
        return style
    version = read_gpt_version(family)
    if version is None or version < _FIRST_LEAN_VERSION:
        return "full"
    return "lean"
