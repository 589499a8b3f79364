"""One completion: the pipeline is asked, its answer put into the API's words."""

import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

Json = dict[str, Any]


class Message(BaseModel):
    """A message of a chat; `null` is no content."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[Any]


class ChatForm(BaseModel):
    """The body of a completion; whatever else is in it reaches the pipeline."""

    model_config = ConfigDict(extra="allow")

    stream: bool = True
    model: str
    messages: list[Message]


def asked(form: ChatForm, model_id: str) -> Json:
    """The arguments of `pipe()`, by name."""
    messages = [message.model_dump() for message in form.messages]
    return {
        "user_message": _last_user_text(messages),
        "model_id": model_id,
        "messages": messages,
        "body": form.model_dump(),
    }


def _last_user_text(messages: list[Json]) -> Any:
    contents = [message["content"] for message in messages if message["role"] == "user"]
    if not contents:
        return None
    parts = contents[-1] if isinstance(contents[-1], list) else []
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return texts[0] if texts else contents[-1]


def streamed(pipe: Callable[..., Any], form: ChatForm, model_id: str) -> Iterator[str]:
    """The lines of a stream; only a text or a true generator gets an ending."""
    answer = pipe(**asked(form, model_id))
    if isinstance(answer, str):
        yield _line(_chunk(form.model, {"content": answer}))
    if isinstance(answer, Iterator):
        for piece in answer:
            yield _piece(form.model, piece)
    if isinstance(answer, str | Generator):
        yield _line(_chunk(form.model, {}, "stop"))
        yield "data: [DONE]"


def whole(pipe: Callable[..., Any], form: ChatForm, model_id: str) -> Json:
    """A result in one piece, which the log gets too; a generator becomes text."""
    answer = pipe(**asked(form, model_id))
    logging.info("stream:false:%s", answer)
    if isinstance(answer, BaseModel):
        return answer.model_dump()
    if isinstance(answer, dict):
        return answer
    text = answer if isinstance(answer, str) else ""
    if isinstance(answer, Generator):
        text = "".join(str(piece) for piece in answer)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_head(form.model, "chat.completion"), "choices": [choice]}


def _piece(model: str, piece: Any) -> str:
    if isinstance(piece, BaseModel):
        piece = f"data: {piece.model_dump_json()}"
    elif isinstance(piece, dict):
        piece = f"data: {json.dumps(piece)}"
    with contextlib.suppress(AttributeError, UnicodeDecodeError):
        piece = piece.decode()
    if isinstance(piece, str) and piece.startswith("data:"):
        return f"{piece}\n\n"
    return _line(_chunk(model, {"content": piece}))


def _line(chunk: Json) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def _chunk(model: str, delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_head(model, "chat.completion.chunk"), "choices": [choice]}


def _head(model: str, kind: str) -> Json:
    made = int(time.time())
    return {
        "id": f"{model}-{uuid.uuid4()}",
        "object": kind,
        "created": made,
        "model": model,
    }
