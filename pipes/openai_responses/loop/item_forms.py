"""Items in the form of the API, whatever form a server gave them.

Gateways and bridges leave fields out, or write them as another API has them. What
follows sees only the API's form: the page, what is stored, and what is sent again.
"""

import json
import re
from contextlib import suppress
from typing import Any

from openai_responses.items import (
    Item,
    content_parts,
    flat_annotation,
    has_encrypted_reasoning,
    image_result,
    is_call,
    is_call_output,
    is_image_call,
    item_type,
    json_digest,
    json_text,
    kind_of,
    part_text,
    text_part,
)
from openai_responses.json_input import as_list, as_mapping, as_text, parse_json_object


def in_api_form(item: Item) -> Item:
    """Return an item as the API writes it; other servers write some fields otherwise."""
    api_item: Item = {}
    for key, value in item.items():
        # Ids are keys here, so those that are not texts go.
        is_odd_id = key.endswith("id") and value is not None and not as_text(value)
        if key not in _EVENT_FIELDS and not is_odd_id:
            api_item[key] = value
    if api_item.get("type") == "function_tool_call":  # SGLang's router
        api_item["type"] = "function_call"
    # A message is the model's, whatever role it has (none in maximhq/bifrost 5149): as a
    # developer's it would be sent again, and instruct each model that answers the chat
    # later, at any server.
    if item_type(api_item) == "message":
        api_item["role"] = "assistant"

    for kind, field in kind_of(api_item).parts:
        content = api_item.get(field)
        if isinstance(content, str | list | dict):
            api_item[field] = _api_parts(kind, content)
    if is_image_call(api_item):
        api_item["result"] = image_result(api_item)
    if has_encrypted_reasoning(api_item):  # it is not taken back without one
        api_item.setdefault("summary", [])

    # Arguments may be an object or null. A name may have spaces around it, and marks of
    # the model's own format after it (gpt-oss at vLLM and Groq, vllm 35906).
    for field in ("arguments", "input"):
        if not isinstance(api_item.get(field, ""), str):
            api_item[field] = json_text(api_item[field])
    name = as_text(api_item.get("name"))
    if name and is_call(api_item):
        api_item["name"] = name.partition("<|")[0].strip() or name.strip()

    if is_call_output(api_item):  # a text, or the API's kinds of parts
        output: list[Item] = []
        for part in content_parts(api_item.get("output")):
            is_text = part.get("type") in ("text", "output_text")
            text = {"type": "input_text", "text": part_text(part)}
            output.append(text if is_text else part)
        api_item["output"] = output or json_text(api_item.get("output"))
    return api_item


_EVENT_FIELDS = ("item_id", "output_index", "sequence_number")
"""Fields of events, which vLLM writes into calls too; other servers refuse them there."""


def without_images(item: Item) -> list[Item]:
    """Return a message without images, then these as the calls that generate them.

    Gateways to models that draw have them as parts of the message, of a type that the API
    lacks. As calls they are shown, stored and sent again like all other images.
    """
    if item_type(item) != "message":
        return [item]
    parts: list[Any] = []
    images: list[Item] = []
    for part in as_list(item.get("content")):
        if "image" not in as_text(as_mapping(part).get("type")):
            parts.append(part)
            continue
        result = image_result(part)
        call_id = f"ig_{json_digest(result)}"
        call = {"type": "image_generation_call", "id": call_id, "status": "completed"}
        images.append({**call, "result": result})
    return [{**item, "content": parts}, *images] if images else [item]


def _api_parts(kind: str, content: str | list[Any] | Item) -> list[Any]:
    """Return a content with each text as a part of its kind.

    A text may have no part around it, or one of SGLang's router, whose type `text` other
    servers refuse when it is sent back. A part may have no list around it. Citations may
    have the form of Chat Completions.
    """
    parts: list[Any] = []
    for row in content if isinstance(content, list) else [content]:
        if isinstance(row, str):
            if row:
                parts.append(text_part(kind, row))
        elif as_mapping(row).get("type") == "text":
            parts.append(text_part(kind, part_text(row)))
        elif as_mapping(row).get("annotations"):
            annotations = content_parts(row["annotations"])
            parts.append({**row, "annotations": [*map(flat_annotation, annotations)]})
        else:
            parts.append(row)
    return parts


def with_plain_arguments(item: Item) -> Item:
    """Return an item whose arguments are one object, if they say one in another way.

    vLLM encodes those of some models twice (its issue 54964). Gateways to Anthropic put
    its empty beginning in front of what follows, `{}{"city": "Rome"}`, others send an
    object twice. Models write line ends into texts as they are, where JSON wants them
    escaped (earendil-works/pi 2981), or marks of their own format, another brace or a
    sentence after the object (mastra-ai/mastra 13185, librefang/librefang 2975), or null
    for none. Whoever makes the call, here, in the host or at a client, would find no
    arguments in them.
    """
    text = as_text(item.get("arguments")).strip()
    if not (is_call(item) and text) or parse_json_object(text) is not None:
        return item
    with suppress(ValueError, RecursionError):
        value, end = json.JSONDecoder(strict=False).raw_decode(text)
        rest = text[end:].strip()
        last = parse_json_object(rest)
        if isinstance(value, str) and not rest:
            plain = value
        elif value is None and not rest:
            plain = "{}"
        elif last is not None and value in ({}, last):
            plain = rest
        elif isinstance(value, dict) and not _MORE_JSON.search(rest):
            plain = text[:end]
            if parse_json_object(plain) is None:
                plain = json.dumps(value, ensure_ascii=False)
        else:
            return item
        if parse_json_object(plain) is not None:
            return {**item, "arguments": plain}
    return item


_MORE_JSON = re.compile(r'["{]')
"""Of another object, or of the rest of one: which of them the model means is unknown."""
