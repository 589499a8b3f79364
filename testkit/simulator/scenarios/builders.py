"""Functions that build the items of the replies.

Each returns a finished item without its id. Texts may contain placeholders such as
``$turn`` and ``$said`` (see :meth:`simulator.request.ValidRequest.words`).
"""

import json
from collections.abc import Sequence
from typing import Any

from simulator.files import CONTAINER

Item = dict[str, Any]


def build_reasoning(*summary: str, text: str | None = None) -> Item:
    """Return reasoning: the parts of its summary, or the raw text of an open model."""
    item: Item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": part} for part in summary],
    }
    if text is not None:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    return item


def build_message(
    text: str, *, phase: str | None = None, annotations: Sequence[Item] = ()
) -> Item:
    """Return a message of the assistant with one text."""
    part = {
        "type": "output_text",
        "text": text,
        "annotations": list(annotations),
        "logprobs": [],
    }
    item = {"type": "message", "role": "assistant", "content": [part]}
    return item if phase is None else {**item, "phase": phase}


def build_url_citation(
    text: str, cited: str, url: str, title: str, start: int = 0
) -> Item:
    """Return a citation of a page, positioned at the next ``cited`` in ``text``.

    Its end is the index after the last character, which is not what the types say
    (recorded: 148 of 149).
    """
    start = text.index(cited, start)
    return {
        "type": "url_citation",
        "url": url,
        "title": title,
        "start_index": start,
        "end_index": start + len(cited),
    }


def build_function_call(name: str, arguments: str | dict[str, Any]) -> Item:
    """Return a call of one of the client's functions."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return {"type": "function_call", "name": name, "arguments": arguments}


def build_custom_tool_call(name: str, input: str) -> Item:
    return {"type": "custom_tool_call", "name": name, "input": input}


def build_web_search_call(query: str, *urls: str) -> Item:
    """Return a search that the API ran, with the pages it read."""
    return {
        "type": "web_search_call",
        "action": {
            "type": "search",
            "query": query,
            "queries": [query],
            "sources": [{"type": "url", "url": url} for url in urls],
        },
    }


def build_file_search_call(*queries: str) -> Item:
    return {"type": "file_search_call", "queries": list(queries), "results": None}


def build_code_interpreter_call(code: str, logs: str) -> Item:
    """Return code that the API ran."""
    return {
        "type": "code_interpreter_call",
        "code": code,
        "container_id": CONTAINER,
        "outputs": [{"type": "logs", "logs": logs}],
    }


def build_container_citation(
    text: str, cited: str, file: str, name: str | None = None
) -> Item:
    """Return a citation of a container's file, positioned at ``cited`` in ``text``.

    Without ``cited`` it is at the end of the text.
    """
    start = text.index(cited) if cited else len(text)
    return {
        "type": "container_file_citation",
        "container_id": CONTAINER,
        "file_id": file,
        "filename": name or cited.rsplit("/", 1)[-1],
        "start_index": start,
        "end_index": start + len(cited),
    }


def build_image_generation_call(
    result: str, prompt: str, action: str = "generate"
) -> Item:
    """Return an image that the API generated; ``result`` is its base64."""
    return {
        "type": "image_generation_call",
        "result": result,
        "revised_prompt": prompt,
        "output_format": "png",
        "size": "1024x1024",
        "quality": "low",
        "background": "opaque",
        "action": action,
    }


def build_mcp_list_tools(server: str, *names: str) -> Item:
    """Return the tools that a remote server offers."""
    tools = [
        {"name": name, "input_schema": {"type": "object"}, "description": name}
        for name in names
    ]
    return {"type": "mcp_list_tools", "server_label": server, "tools": tools}


def build_mcp_call(server: str, name: str, arguments: str, output: str) -> Item:
    """Return a call of a remote server's tool that the API made."""
    return {
        "type": "mcp_call",
        "server_label": server,
        "name": name,
        "arguments": arguments,
        "output": output,
        "error": None,
        "approval_request_id": None,
    }


def build_mcp_approval_request(server: str, name: str, arguments: str) -> Item:
    """Return the question whether the API may call a remote server's tool."""
    return {
        "type": "mcp_approval_request",
        "server_label": server,
        "name": name,
        "arguments": arguments,
    }
