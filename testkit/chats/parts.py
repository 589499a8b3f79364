"""Messages of people, and their parts, in the API's form."""

from chats.pictures import data_url
from openai_responses.items import Item
from owui_chat.messages import UserMessage


def text_part(words: str) -> Item:
    return {"type": "input_text", "text": words}


def image_part(url: str, detail: str = "auto") -> Item:
    return {"type": "input_image", "detail": detail, "image_url": url}


def file_part(name: str, content: bytes, kind: str = "application/pdf") -> Item:
    """A file as the model gets it."""
    data = data_url(content, kind)
    return {"type": "input_file", "filename": name, "file_data": data}


def input_message(*parts: str | Item, role: str = "user") -> UserMessage:
    """A message that no model wrote; texts stand for parts of words."""
    content = [text_part(part) if isinstance(part, str) else part for part in parts]
    return UserMessage({"type": "message", "role": role, "content": content})
