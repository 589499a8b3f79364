"""Leaves the host's retrieved text of a file out, if the file itself is sent.

Open WebUI retrieves text from the files of the whole chat for each question, and puts
it in front of the question, or after the instructions (`RAG_SYSTEM_CONTEXT`). With a
file that the model or its code gets whole, the model would read parts of it a second
time, and answer from them. The text of everything else stays: knowledge, notes, pages,
chats.
"""

from collections.abc import Collection, Sequence

from openai_responses.items import Item, content_parts
from openai_responses.json_input import JsonObject, as_text, value_at
from owui_chat.input.attachments import question_index
from owui_chat.messages import ChatPart, user_messages
from owui_manifold.host.open_webui import RetrievedText, build_retrieved_text


async def without_retrieved_text(
    parts: Sequence[ChatPart],
    instructions: str,
    metadata: JsonObject,
    whole_files: Collection[str],
) -> tuple[list[ChatPart], str]:
    """Return a chat and its instructions without the retrieved text of some files.

    `whole_files` are the host's ids of the files that are sent themselves.
    """
    result = list(parts)
    sources = content_parts(metadata.get("sources"))
    kept: list[Item] = []
    for source in sources:
        # A collection may have the same file; its text stays.
        is_file = value_at(source, "source", "type") == "file"
        if not (is_file and as_text(value_at(source, "source", "id")) in whole_files):
            kept.append(source)
    if len(kept) == len(sources):
        return result, instructions
    # There is one: whole files come with messages of the user.
    index = question_index(parts)
    question = user_messages(parts)[index]
    words = as_text(metadata.get("base_user_prompt"))
    if not words and question.stored:
        words = question.stored.words
    text = await build_retrieved_text(sources, kept, words)
    question_parts: list[Item] = []
    for part in question.content:
        is_text = part.get("type") == "input_text"
        reduced = {"text": _reduce_text(part["text"], text)} if is_text else {}
        question_parts.append({**part, **reduced})
    result[index] = question.with_content(question_parts)
    return result, _reduce_text(instructions, text)


def _reduce_text(words: str, text: RetrievedText) -> str:
    """Return words with what is kept of the retrieved text.

    Around all of it the host has put the administrator's template, which goes with it.
    If the template has changed meanwhile, as one with the time in it does, only the
    sources are replaced.
    """
    if text.with_template and text.with_template in words:
        before, _, after = words.rpartition(text.with_template)
        if text.kept:
            return f"{before}{text.kept_with_template}{after}"
        # The host puts a line break between the text and the question.
        if before.endswith("\n"):
            return before[:-1] + after
        return before + after.removeprefix("\n")
    if text.sources and text.sources in words:
        before, _, after = words.rpartition(text.sources)
        return f"{before}{text.kept}{after}"
    return words
