"""Annotations of an answer, in the form of Chat Completions."""

from openai_responses.items import Item, content_parts, part_text
from owui_chat.links import place_without_tracking, without_tracking


def chat_annotations(item: Item, before: int) -> list[Item]:
    """Return the pages that a message cites, with their places in the answer.

    The message begins `before` characters behind the answer's beginning; its links do
    not tell who searched.
    """
    annotations: list[Item] = []
    for part in content_parts(item.get("content")):
        text = part_text(part)
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") == "url_citation":
                annotations.append(_url_citation(annotation, text, before))
        before += len(without_tracking(text))
    return annotations


def _url_citation(annotation: Item, text: str, before: int) -> Item:
    cited: Item = {
        "url": without_tracking(str(annotation.get("url") or "")),
        "title": str(annotation.get("title") or ""),
    }
    for key in ("start_index", "end_index"):
        place = annotation.get(key)
        place = place if isinstance(place, int) else len(text)
        cited[key] = before + place_without_tracking(text, place)
    return {"type": "url_citation", "url_citation": cited}
