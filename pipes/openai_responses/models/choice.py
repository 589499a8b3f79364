"""Which models are offered, chosen by an automatic name, and retired.

If nobody listed models, the newest of each family is offered. The family is the part of
the id behind the version: `gpt-6.2-sol` and `gpt-5.6-sol` are two versions of sol.
Models for selected customers, retired models and models with a successor are offered
only if an administrator lists them.

An automatic name is resolved by the first rule that fits:

1. A chat stays with the model that began it: its reasoning and cache belong to it.
2. Files, pictures, chosen tools, code and long questions go to the large model.
3. Everything else goes to the small model.

Only the first message of a chat counts, so a chat always gets the same answer.
"""

import re
from collections.abc import Collection
from datetime import date, timedelta

from openai_responses.items import Item, content_parts, part_text
from openai_responses.json_input import JsonObject, as_list, as_mapping, as_text
from openai_responses.models.resolve import CATALOG_FACTS, ResolvedModel, resolve_model

_VERSIONED_ID = re.compile(r"gpt-(\d+(?:\.\d+)?)(?:-([a-z]+))?$")
_NO_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|embedding|moderation|search|live|instruct"
    r"|gpt-3|gpt-4-|gpt-4$|computer|translate"
    r"|^(?:text-|whisper|dall-e|davinci|babbage|sora|omni-)"
)
_CLOSED_CIRCLES = frozenset({"cyber", "rosalind"})


def read_models(answer: object) -> dict[str, str]:
    """Return the ids of `GET /models`, of chat models alone, with their last days.

    The day is an ISO date, or nothing. Ids of other servers, which follow no rule of
    OpenAI's, count as chat models. The list is remembered for an hour, so it has an
    end, and so has each name.
    """
    models: dict[str, str] = {}
    for row in map(as_mapping, as_list(as_mapping(answer).get("data"))):
        name = as_text(row.get("id"))
        is_usable = 0 < len(name) <= _LONGEST_MODEL_ID
        if is_usable and (name in CATALOG_FACTS or not _NO_CHAT.search(name)):
            day = as_text(row.get("shutdown_date"))[:10]
            models[name] = day if _date(day) else ""
        if len(models) >= _MAX_MODELS:
            break
    return models


_LONGEST_MODEL_ID = 200
_MAX_MODELS = 1000


def newest_models(today: str, usable: Collection[str] | None = None) -> list[str]:
    """Return the newest model of each family, newest first.

    `today` is an ISO date; `usable` holds the ids that the key can use, if known.
    """
    known = CATALOG_FACTS if usable is None else usable
    newest: dict[str, re.Match[str]] = {}
    for found in sorted(filter(None, map(_VERSIONED_ID.match, known)), key=_version):
        if _is_offered(found, today):
            newest[found[2]] = found
    return [one[0] for one in sorted(newest.values(), key=_version, reverse=True)]


def _is_offered(found: re.Match[str], today: str) -> bool:
    facts = CATALOG_FACTS.get(found[0])
    if facts and (facts.successor or (facts.shutdown or "9") <= today):
        return False
    return found[2] not in _CLOSED_CIRCLES


def _version(found: re.Match[str]) -> tuple[tuple[int, ...], str]:
    """Return a key that sorts ids by age; a plain name comes after a longer one."""
    return tuple(map(int, found[1].split("."))), found[0]


_NOTICE_DAYS = 30


def retirement_notice(
    model: ResolvedModel, today: date, answering: ResolvedModel | None = None
) -> str:
    """Return a sentence about the end of a model if it is near.

    `answering` is the one that answered, if it was not asked for.
    """
    ending = _date(model.facts.shutdown)
    if ending is None or today < ending - timedelta(days=_NOTICE_DAYS):
        return ""
    when = "is switched off on" if today < ending else "was switched off on"
    sentence = f"{model.name} {when} {ending.isoformat()}."
    if answering and answering.id != model.id:
        return f"{sentence} {answering.name} answers instead."
    if successor := model.facts.successor:
        sentence += f" Use {resolve_model(successor).name} instead."
    return sentence


def replacement(model: ResolvedModel, today: date) -> ResolvedModel | None:
    """Return what answers for a model of the kind pro that was switched off.

    Nobody finds its successor by its name: it is the mode pro of a model without it.
    """
    ending = _date(model.facts.shutdown)
    found = resolve_model(model.facts.successor or "")
    return found if found.pro and ending and ending <= today else None


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


_AUTO_MODELS = {"gpt-5-auto": ("gpt-6.1-terra", "gpt-6.1-sol")}
"""The small and the large model for each automatic name."""

_LONG_QUESTION = 600
_ATTACHED = ("input_file", "input_image")


def choose_auto_model(
    name: str, first: JsonObject | None, tools: bool, earlier: Collection[str]
) -> tuple[str, str] | None:
    """Return the model that an automatic name means, and why; None for other names.

    `first` is the user's first message, `tools` says whether the user chose some,
    `earlier` holds the families of the models that answered in this chat.
    """
    if name not in _AUTO_MODELS:
        return None
    small, large = _AUTO_MODELS[name]
    for model in (small, large):
        if model in earlier:
            return model, "it began this chat"
    if reason := _reason_for_large(first, tools):
        return large, reason
    return small, "the question is short, without files or tools"


def _reason_for_large(first: JsonObject | None, tools: bool) -> str:
    if first is None:
        return "there is no question to judge by"
    parts: list[Item] = content_parts(first.get("content"))
    text = "".join(map(part_text, parts))
    if any(part.get("type") in _ATTACHED for part in parts):
        return "something is attached to the question"
    if tools:
        return "tools are switched on"
    if "```" in text:
        return "the question holds code"
    return "the question is long" if len(text) > _LONG_QUESTION else ""
