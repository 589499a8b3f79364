"""Which models are offered, chosen by an automatic name, and retired.

If no models are listed, the newest of each family is offered. The family is the part of
the id after the version: `gpt-6.2-sol` and `gpt-5.6-sol` are two versions of sol.
Models for selected customers, retired models and models with a successor are offered
only if an administrator lists them.

An automatic name is resolved by the first rule that fits:

1. A chat stays with the model that began it: its reasoning and cache belong to it.
2. Files, images, chosen tools, code and long questions go to the large model.
3. Everything else goes to the small model.

Only the first message of a chat counts, so a chat always gets the same answer.
"""

import re
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from typing import Any

from openai_responses.endings import ASKED_MODEL
from openai_responses.items import Item, content_parts, part_text
from openai_responses.json_input import JsonObject, as_list, as_mapping, as_text
from openai_responses.models.resolve import (
    AUTO_MODEL,
    CATALOG_FACTS,
    ResolvedModel,
    resolve_model,
    successor_of,
)

_VERSIONED_ID = re.compile(r"gpt-(?P<version>\d+(?:\.\d+)?)(?:-(?P<family>[a-z]+))?")
_NO_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|embedding|moderation|search|live|instruct"
    r"|gpt-3|gpt-4-|gpt-4$|computer|translate"
    r"|^(?:text-|whisper|dall-e|davinci|babbage|sora|omni-)"
)
"""Parts of the ids of models for something else than a chat, and of too old ones."""
_CLOSED_CIRCLES = frozenset({"cyber", "rosalind"})
"""Families for selected customers, whose administrators list them."""


def read_models(answer: object) -> dict[str, str]:
    """Return the ids of `GET /models` with their last days.

    The day is an ISO date, or nothing. The list is remembered for an hour, so it has an
    end, and so has each name. Half a character in one would keep the host from sending
    its whole list.
    """
    days: dict[str, str] = {}
    for entry in _listed_rows(answer):
        row = as_mapping(entry)
        name = as_text(row.get("id"))
        day = as_text(row.get("shutdown_date"))[:_ISO_DATE_LENGTH]
        if 0 < len(name) <= _MAX_MODEL_ID and name.isprintable():
            days[name] = day if _parse_date(day) else ""
        if len(days) >= _MAX_MODELS:
            break
    return days


def read_context_windows(answer: object) -> dict[str, int]:
    """Return the context windows that `GET /models` names, by model.

    llama.cpp's are in `meta.n_ctx`, for one chat even if several share the server's
    memory (recorded, b10434). With one model it ignores the name that it is asked for:
    the empty name has the window of any. vLLM and SGLang say `max_model_len`.
    """
    rows = _listed_rows(answer)[:_MAX_MODELS]
    windows: dict[str, int] = {}
    for entry in rows:
        row = as_mapping(entry)
        name = as_text(row.get("id"))[:_MAX_MODEL_ID]
        tokens = as_mapping(row.get("meta")).get("n_ctx") or row.get("max_model_len")
        if name and isinstance(tokens, int) and tokens > 1:  # `true` is a 1
            windows[name] = tokens
            if len(rows) == 1:
                windows[""] = tokens
    return windows


_ISO_DATE_LENGTH = 10
_MAX_MODEL_ID = 200
_MAX_MODELS = 1000


def _listed_rows(answer: object) -> list[Any]:
    """Return the rows of a list of models; Together and GitHub send nothing around it."""
    return as_list(as_mapping(answer).get("data") or answer)


def newest_models(today: str, usable: Collection[str] | None = None) -> list[str]:
    """Return the newest model of each family, newest first.

    `today` is an ISO date; `usable` holds the ids that the key can use, if known.
    """
    if usable is None:
        usable = CATALOG_FACTS.keys()
    versioned: list[re.Match[str]] = []
    for name in usable:
        match = _VERSIONED_ID.fullmatch(name)
        if match is None or match["family"] in _CLOSED_CIRCLES:
            continue
        facts = CATALOG_FACTS.get(name)
        if facts is None and _NO_CHAT.search(name):
            continue
        is_replaced = facts is not None and bool(facts.successor)
        last_day = facts.shutdown if facts else None
        if not is_replaced and (last_day is None or today < last_day):
            versioned.append(match)
    # A newer one replaces an older one.
    newest = {match["family"]: match for match in sorted(versioned, key=_age_key)}
    newest_first = sorted(newest.values(), key=_age_key, reverse=True)
    return [match.string for match in newest_first]


def _age_key(match: re.Match[str]) -> tuple[tuple[int, ...], str]:
    """Return a key that sorts ids by age; a plain name comes after a longer one."""
    numbers = [int(number) for number in match["version"].split(".")]
    return tuple(numbers), match.string


_NOTICE_DAYS = 30
"""Before the last day of a model, from which on its answers say so."""


def retirement_notice(
    model: ResolvedModel, today: date, answering: ResolvedModel
) -> str:
    """Return a message about the end of a model if it is near."""
    last_day = _parse_date(model.facts.shutdown)
    if last_day is None or today < last_day - timedelta(days=_NOTICE_DAYS):
        return ""
    verb = "is" if today < last_day else "was"
    message = f"{model.name} {verb} switched off on {last_day.isoformat()}."
    if answering.id != model.id:
        return f"{message} {answering.name} answers instead."
    successor = model.facts.successor
    if successor:
        message += f" Use {resolve_model(successor).name} instead."
    return message


def replacement(model: ResolvedModel, today: date) -> ResolvedModel | None:
    """Return what answers for a pro model that was switched off, None for any other.

    Its successor is the pro mode of another model, which users would not find in
    the list of models by the name that they used.
    """
    last_day = _parse_date(model.facts.shutdown)
    if last_day is None or today < last_day:
        return None
    successor = resolve_model(model.facts.successor or "")
    return successor if successor.pro else None


def name_asked_model(message: str, model_id: str) -> str:
    """Return a message with the id that was asked for in the place of ASKED_MODEL.

    If OpenAI has switched that model off, the message names the successor, too.
    """
    if ASKED_MODEL not in message:
        return message
    named = message.replace(ASKED_MODEL, model_id)
    successor = successor_of(model_id)
    if successor is None:
        return named
    return f"{named} OpenAI has shut it down and recommends {successor.name}."


def _parse_date(text: str | None) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


_SMALL_MODEL = "gpt-6.1-terra"
_LARGE_MODEL = "gpt-6.1-sol"
"""What the automatic name may mean."""

_LONG_QUESTION = 600
"""Characters from which on the large model answers."""
_ATTACHED = ("input_file", "input_image")


def choose_auto_model(
    name: str, first: JsonObject | None, tools: bool, earlier: Iterable[str]
) -> tuple[str, str] | None:
    """Return the model that an automatic name means, and why; None for other names.

    `first` is the user's first message, `tools` says whether the user chose some,
    `earlier` has the families of the models that answered in this chat, in order.
    """
    if name != AUTO_MODEL:
        return None
    for model in earlier:
        if model in (_SMALL_MODEL, _LARGE_MODEL):
            return model, "it began this chat"
    reason = _reason_for_large(first, tools)
    if reason:
        return _LARGE_MODEL, reason
    return _SMALL_MODEL, "the question is short, without files or tools"


def _reason_for_large(first: JsonObject | None, tools: bool) -> str:
    """Return why the large model answers; empty if the small one is enough."""
    if first is None:
        return "there is no question to judge by"
    parts: list[Item] = content_parts(first.get("content"))
    if any(part.get("type") in _ATTACHED for part in parts):
        return "something is attached to the question"
    if tools:
        return "tools are switched on"
    text = "".join(part_text(part) for part in parts)
    if "```" in text:
        return "the question holds code"
    if len(text) > _LONG_QUESTION:
        return "the question is long"
    return ""
