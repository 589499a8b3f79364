"""Builds the request for a chat, in passes over its parts.

The model, if its name leaves the choice to the pipe; the history as input, with the
prefix as it was sent before; the tools; the settings; default parameters.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from openai_responses.items import (
    ADDED_TOOLS,
    CONFIGURATION,
    Item,
    is_call_output,
    is_compaction,
    text_message,
    tool_kind,
    tool_name,
)
from openai_responses.json_input import as_list, as_mapping, count_entries, value_at
from openai_responses.long_work import run_work
from openai_responses.loop.attempt import Limits
from openai_responses.loop.spending import EarlierSpending
from openai_responses.loop.tools import NOTE_CHARACTERS, Toolset, cap_output
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import ResolvedModel
from openai_responses.repairs.request_repairs import lowered_kinds
from openai_responses.requests.build import (
    ResponsesRequest,
    build_request,
)
from openai_responses.requests.containers import has_new_container
from openai_responses.requests.replay import Origin, origin_at
from openai_responses.requests.turns import append_turns, record_turn
from owui_chat.commands import without_commands
from owui_chat.input.attachments import (
    add_tool_images,
    attach_files,
    fit_input,
    image_length,
    resolve_images,
    svg_notice,
)
from owui_chat.input.directives import take_directive
from owui_chat.input.history import build_input
from owui_chat.input.prefix import (
    SentContext,
    SentInstructions,
    apply_sent_context,
    change_instructions,
    change_notice,
    drop_repeated_context,
    find_injected_context,
    model_turns,
    sent_instructions,
)
from owui_chat.input.summary import (
    SUMMARY_HEADING,
    THREAD_HEADING,
    take_conversation,
)
from owui_chat.messages import (
    ChatPart,
    UserMessage,
    attach_stored_messages,
    cut_notice,
    mark_old_answers,
    parse_messages,
    stored_messages,
    system_text,
    user_messages,
)
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.output_carrier import restore_from_outputs, stored_outputs
from owui_chat.storage.records import Record
from owui_chat.storage.signature import Sign
from owui_host.users import user_model
from owui_manifold.call.config import run_limits
from owui_manifold.call.context import CheckedCall, note_left_out
from owui_manifold.call.research import research_beginning, research_body
from owui_manifold.host.open_webui import (
    model_system_prompt,
    require_floor,
    scale_image,
)
from owui_manifold.prepare.agent import (
    agent_defaults,
    agent_instructions,
    agent_memories,
    agent_toolset,
    check_agent_model,
    remembered_messages,
)
from owui_manifold.prepare.cache_comparison import with_cache_comparison
from owui_manifold.prepare.files import (
    add_documents,
    document_ids,
    load_stored_images,
)
from owui_manifold.prepare.hosted_tools import OfferedTools
from owui_manifold.prepare.python_files import (
    PythonFiles,
    choose_python_files,
    name_python_files,
)
from owui_manifold.prepare.request import (
    PreparedRequest,
    call_toolset,
    image_hint,
    image_notice,
    learned_repairs,
    offered_tools,
    other_allowed_effort,
    request_settings,
    wait_message,
)
from owui_manifold.prepare.retrieved_text import without_retrieved_text
from owui_manifold.store.keys import chat_keys
from owui_manifold.store.stored_chat import StoredChat, read_stored_chat


class _Chat(NamedTuple):
    """A chat between two passes."""

    call: CheckedCall
    model: ResolvedModel
    stored: StoredChat | None
    instructions: str
    parts: list[ChatPart]
    records: Mapping[str, Record]
    tools: OfferedTools
    reason: str = ""
    """Why its model was chosen, if there is anything to say."""
    verbosity: str = ""
    summary: str = ""
    """What Open WebUI tells of the conversation that it leaves out."""
    memory_note: str = ""
    """What the person is told about turns that an agent does not remember."""
    request: ResponsesRequest = ResponsesRequest(model="", input=[])
    """As it would be if the chat began with it, and later as it is sent."""
    python: PythonFiles = PythonFiles()
    sent: SentContext | None = None
    """What this run sends beside the chat; None: what an earlier run sent holds on."""

    @property
    def replaced_id(self) -> str:
        """The message that this answer replaces, or nothing."""
        return str(self.call.host.metadata.get("regeneration_message_id") or "")

    def find_compacted(self) -> set[str]:
        """Return the answers behind which a compaction replaced what came before."""
        compacted: set[str] = set()
        for record in self.records.values():
            if any(is_compaction(item) for item in record.payload):
                compacted.add(record.message_id)
        return compacted

    @property
    def is_stable(self) -> bool:
        """Whether instructions stay as first given (`stable_instructions`)."""
        mode = self.call.config.expert.stable_instructions
        if mode == "auto":
            return self.model.facts.appends_tools
        return mode == "on"


async def build_chat_request(call: CheckedCall) -> PreparedRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    keys = chat_keys(call.valves, call.caller)
    stored = await read_stored_chat(call.caller, keys)
    size = count_entries(call.messages, 2)
    if stored:
        size += stored.size
    heading = _conversation_heading(call)
    model_prompt: str | None = None
    if heading:
        model_prompt = await model_system_prompt(
            call.model_id, call.caller.user_id, call.host.metadata
        )
    read = partial(_read_messages, call, keys.sign, stored, (heading, model_prompt))
    chat = await run_work(size, read)
    chat = await _with_whole_files(chat)
    chat = await run_work(size, partial(_apply_passes, chat))
    origin = origin_at(chat.model.family, call.endpoint)
    tools = chat.tools
    items = await _history_items(chat, origin, size)
    changed = {"input": items, "instructions": chat.instructions or None}
    request = chat.request.model_copy(update=changed)
    return PreparedRequest(
        call=call,
        request=with_cache_comparison(call, request, stored),
        origin=origin,
        limits=_chat_limits(call, chat.model),
        toolset=_chat_toolset(call, tools, stored),
        keys=keys,
        stored=stored,
        sent=chat.sent,
        records=chat.records,
        reason=f"{chat.reason} {wait_message(request)}".strip(),
        notices=(
            tools.notice,
            image_notice(call, chat.model, tools),
            chat.memory_note,
            svg_notice(chat.parts),
            cut_notice(chat.parts),
            chat.python.notice,
        ),
        cites=any(tool_kind(tool).is_cited for tool in tools.items),
        python_files=chat.python.files,
    )


def _chat_limits(call: CheckedCall, model: ResolvedModel) -> Limits:
    """Return the limits of a chat, with what it makes of thoughts in tags.

    The host's parameter *Reasoning Tags* is a pair of tags, or false for none
    (docs/reference/open-webui.md, "Tags in texts").
    """
    limits = run_limits(call.config.expert, model)
    if call.agent and not call.agent.parameters.emit_intermediate_thoughts:
        limits = limits._replace(keeps_tagged_thoughts=False)
    match value_at(call.host.metadata, "params", "reasoning_tags"):
        case False:
            return limits._replace(thought_tags=())
        case [str() as start, str() as end] if _are_tags(start, end):
            return limits._replace(thought_tags=((start, end),))
    return limits


_LONGEST_TAG = 100


def _are_tags(start: str, end: str) -> bool:
    """Say whether two texts can be tags: people choose them, and each piece of an
    answer is compared with all their beginnings."""
    is_short = max(len(start), len(end)) <= _LONGEST_TAG
    return is_short and bool(start.strip() and end.strip())


def _read_messages(
    call: CheckedCall,
    sign: Sign | None,
    stored: StoredChat | None,
    conversation: tuple[str, str | None],
) -> _Chat:
    """Return the chat as the host gives it, with its model and its tools.

    `conversation` is the heading after which the host tells of it in the system prompt,
    if any, and the prompt of the model in front (`take_conversation`).
    """
    messages, memory_note = remembered_messages(call.agent, call.messages)
    system_prompt, parts = parse_messages(messages, call.valves.IMAGE_DETAIL)
    instructions = system_prompt
    summary = ""
    heading, model_prompt = conversation
    if heading:
        instructions, summary = take_conversation(system_prompt, heading, model_prompt)
    parts, records = restore_from_details(parts, sign)
    model, reason = _choose_model(call, parts, stored)
    if call.account:
        forbidden = call.account.limits.forbidden_tools()
        wanted = [kind for kind in forbidden if kind in call.config.tool_kinds]
        note_left_out(call, dict.fromkeys(wanted, "forbidden by limits"))
        lacks = (*model.facts.lacks, *forbidden)
        model = model._replace(facts=model.facts._replace(lacks=lacks))
    tools = offered_tools(call, model)
    if call.agent:
        check_agent_model(call.agent, model)
        instructions = agent_instructions(
            call.agent, model, instructions, tools, call.host
        )
    hint = image_hint(call, model)
    if hint:
        instructions = f"{instructions}\n\n{hint}" if instructions else hint
    chat = _Chat(
        call=call,
        model=model,
        stored=stored,
        instructions=instructions,
        parts=parts,
        records=records,
        tools=tools,
        reason=reason,
        summary=summary,
        memory_note=memory_note,
    )
    return _attach_stored(chat)


def _conversation_heading(call: CheckedCall) -> str:
    """Return the heading after which the host tells of the conversation, if it does.

    It does so in chats of its page and in channels only; other clients write their own
    instructions.
    """
    heading = THREAD_HEADING if call.caller.is_in_channel else SUMMARY_HEADING
    tells = call.caller.is_in_channel or call.caller.host_reads
    are_messages = all(isinstance(message, dict) for message in call.messages[:3])
    if tells and are_messages and heading in system_text(call.messages[:3]):
        return heading
    return ""


def _apply_passes(chat: _Chat) -> _Chat:
    """Return a chat whose messages have their files, after all passes over it."""
    for change in _PASSES:
        chat = change(chat)
    return chat


def _chat_toolset(
    call: CheckedCall, tools: OfferedTools, stored: StoredChat | None
) -> Toolset:
    """Return what runs the calls of a chat.

    Its limits are those of an answer, also if the host has made calls of it that a
    person approved, and goes on with it.
    """
    toolset = call_toolset(call, tools)
    if call.agent:
        toolset = agent_toolset(call.agent, toolset, call.valves.MAX_TOOL_CALLS)
    if stored is None or not call.host.metadata.get("tool_approval_resume"):
        return toolset
    rounds = calls = 0
    before = ""
    for item in as_list(value_at(stored.messages, call.caller.message_id, "output")):
        kind = str(value_at(item, "type"))
        if kind == "function_call":
            calls += 1
            rounds += before != kind
        if kind in ("function_call", "function_call_output"):
            before = kind
    return toolset._replace(earlier=EarlierSpending(rounds, calls))


def _choose_model(
    call: CheckedCall, parts: Sequence[ChatPart], stored: StoredChat | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and the message that says why it was chosen, if any."""
    questions = list(user_messages(parts).values())
    first_item = questions[0].item if questions else None
    records = stored.records.values() if stored else ()
    choice = choose_auto_model(
        call.model_name,
        first_item,
        tools=bool(call.host.metadata.get("tool_ids")),
        earlier={record.origin.family for record in records},
    )
    if choice is None:
        return call.model, research_beginning(call.model)
    name, reason = choice
    model = call.resolve(name)
    return model, f"{model.name} answers: {reason}."


_LEFT_OUT = "a developer's message in its row was left out"


def _attach_stored(chat: _Chat) -> _Chat:
    """Give the parts what the host stores of them."""
    rows = chat.stored.messages if chat.stored else {}
    call = chat.call
    metadata = call.host.metadata
    given = add_tool_images(chat.parts, rows)
    parts = attach_stored_messages(given, rows, metadata)
    parts = mark_old_answers(parts, rows)
    if len(parts) < len(given):
        call.warn_once(f"chat {call.caller.chat_id}: {_LEFT_OUT}")
    parts = without_commands(parts)
    return chat._replace(parts=attach_files(parts, rows, metadata))


async def _with_whole_files(chat: _Chat) -> _Chat:
    """Choose the files that code gets; leave out what the host retrieved of them.

    The same holds for documents that the model gets whole.
    """
    call = chat.call
    whole = set[str]()
    if _sends_documents(chat):
        whole = document_ids(chat.parts, call.config.file_input)
    if _code_gets_files(chat):
        user = await user_model(call.caller.user_id)
        python = await choose_python_files(chat.parts, user)
        has_row = bool(stored_messages(chat.parts))
        parts = name_python_files(chat.parts, python.files, at_question_only=has_row)
        chat = chat._replace(parts=parts, python=python)
        whole.update(file.file_id for file in python.files)
    parts, instructions = await without_retrieved_text(
        chat.parts, chat.instructions, call.host.metadata, whole
    )
    return chat._replace(parts=parts, instructions=instructions)


def _sends_documents(chat: _Chat) -> bool:
    """Say whether the model gets documents whole, if the chat has any."""
    return chat.call.config.file_input != "off" and chat.model.facts.vision


def _code_gets_files(chat: _Chat) -> bool:
    """Say whether code runs in a container of OpenAI or Azure, and the chat has files."""
    endpoint = chat.call.endpoint
    if not endpoint.has_own_services or chat.tools.choice == "none":
        return False
    refused_uploads = chat.call.capabilities.refused_uploads
    if refused_uploads.holds(endpoint.account(), chat.call.caller.user_id):
        return False
    if not has_new_container(chat.tools.items):
        return False
    return any(user.attachments for user in user_messages(chat.parts).values())


def _take_directive(chat: _Chat) -> _Chat:
    """Take a wish for the length of this answer out of the question."""
    if not chat.model.facts.verbosity:
        return chat
    is_guided = bool(chat.replaced_id)
    parts, verbosity = take_directive(chat.parts, is_guided=is_guided)
    return chat._replace(parts=parts, verbosity=verbosity)


def _restore_outputs(chat: _Chat) -> _Chat:
    """Put the stored outputs of earlier answers in the place of their text."""
    stored = chat.stored
    if stored is None:
        return chat
    message_id = chat.call.caller.message_id
    outputs = stored_outputs(stored.messages, message_id, chat.replaced_id)
    parts = restore_from_outputs(chat.parts, outputs)
    return chat._replace(parts=parts, records={**chat.records, **stored.records})


def _build_flat(chat: _Chat) -> _Chat:
    """Build the request as if the chat began now, without its input."""
    settings = request_settings(chat.call, chat.tools, chat.model)
    # The input follows in a later pass; here it only counts whether there is any.
    items: list[Item] = [{} for _ in chat.parts]
    body = _body(chat)
    stored = chat.stored.repairs if chat.stored else ()
    request = build_request(chat.model, "", items, body, settings)
    effort = other_allowed_effort(chat.call, chat.model.facts, request)
    if effort:
        body["reasoning"] = {**as_mapping(body.get("reasoning")), "effort": effort}
        request = build_request(chat.model, "", items, body, settings)
    unsent = [tool for tool in chat.tools.items if tool not in (request.tools or ())]
    reason = "not with the effort minimal"
    names = [f"the tool {tool_name(tool)}" for tool in unsent]
    note_left_out(chat.call, dict.fromkeys(names, reason))
    repairs = (*learned_repairs(chat.call, request.model), *stored)
    return chat._replace(request=request.model_copy(update={"repairs": repairs}))


def _restore_prefix(chat: _Chat) -> _Chat:
    """Keep the instructions and the chat as they were sent before.

    What is sent for the first time stands in `sent`.
    """
    call = chat.call
    parts = chat.parts
    if chat.stored is None or not stored_messages(parts):
        return chat
    sent = dict(chat.stored.sent)
    if not call.host.continues:
        # An earlier run of the same message does not count: a client chooses the ids.
        sent.pop(call.caller.message_id, None)
        sent_now = _sent_now(chat, sent)
        chat = chat._replace(sent=sent_now)
        if sent_now != SentContext():
            sent[call.caller.message_id] = sent_now
    request, items = _with_turns(chat, sent)
    earlier = _sent_instructions(chat, sent)
    if earlier is None:
        prefix = apply_sent_context(parts, sent, {}, items)
        return chat._replace(parts=prefix, request=request)
    prefix = apply_sent_context(parts, sent, earlier.changes, items)
    # A new question has the change in front of it. If an answer is continued, what has
    # changed since it began is told at its end.
    change = change_instructions(earlier, chat.instructions, call.model_id)
    notice = change_notice(change)
    if notice:
        prefix.append(notice)
    return chat._replace(parts=prefix, request=request, instructions=earlier.first)


def _sent_now(chat: _Chat, earlier: Mapping[str, SentContext]) -> SentContext:
    """Return what this run sends beside the chat, compared with earlier answers."""
    facts = chat.model.facts
    sent = SentContext()
    if chat.is_stable:
        known = _sent_instructions(chat, earlier)
        sent = change_instructions(known, chat.instructions, chat.call.model_id)
    turn = None
    if _appended_kinds(chat):
        turns = model_turns(chat.parts, earlier, chat.request.model)
        turn = record_turn(chat.request, [*turns.values()], facts.default_effort)
    injected = find_injected_context(chat.parts)
    if injected:
        compacted = chat.find_compacted()
        injected = drop_repeated_context(injected, chat.parts, earlier, compacted)
    return sent._replace(injected=injected, turn=turn)


def _sent_instructions(
    chat: _Chat, sent: Mapping[str, SentContext]
) -> SentInstructions | None:
    """Return what the chat has told its model; None where it gets all of it anew."""
    if not chat.is_stable:
        return None
    return sent_instructions(
        chat.parts, sent, chat.call.model_id, chat.find_compacted()
    )


def _with_turns(
    chat: _Chat, sent: Mapping[str, SentContext]
) -> tuple[ResponsesRequest, Mapping[str, Sequence[Item]]]:
    """Return the request as its model's first turn had it, and what later ones added."""
    turns = model_turns(chat.parts, sent, chat.request.model)
    if chat.call.caller.message_id not in turns:
        return chat.request, {}
    return append_turns(chat.request, turns, _appended_kinds(chat))


def _appended_kinds(chat: _Chat) -> set[str]:
    """Return the types of items by which later turns can change a request.

    They are those that its model and server take, and did not refuse.
    """
    if not chat.call.endpoint.is_openai:
        return set()
    facts = chat.model.facts
    kinds = set[str]()
    if facts.appends_tools:
        kinds.add(ADDED_TOOLS)
    if facts.appends_configuration:
        kinds.add(CONFIGURATION)
    return kinds - lowered_kinds(chat.request.repairs)


def _place_memories(chat: _Chat) -> _Chat:
    """Let the chat begin with what an agent remembers from before it."""
    agent = chat.call.agent
    if agent is None:
        return chat
    return chat._replace(parts=[*agent_memories(agent), *chat.parts])


def _place_summary(chat: _Chat) -> _Chat:
    """Let the chat begin with what the host tells of the conversation before it."""
    if not chat.summary:
        return chat
    first = UserMessage(text_message("user", chat.summary))
    return chat._replace(parts=[first, *chat.parts])


def _place_instructions(chat: _Chat) -> _Chat:
    """Let the input begin with the instructions, where a server takes that."""
    if not chat.instructions or not chat.call.endpoint.is_openai:
        return chat
    first = UserMessage(text_message("developer", chat.instructions))
    return chat._replace(parts=[first, *chat.parts], instructions="")


_PASSES = (
    _take_directive,
    _restore_outputs,
    _build_flat,
    _restore_prefix,
    _place_summary,
    _place_memories,
    _place_instructions,
)
"""What is done to a parsed chat, in this order; directives are no part of a prefix."""


async def _history_items(chat: _Chat, origin: Origin, size: int) -> list[Item]:
    """Return the input of a chat's history, with its files.

    `size` is that of the chat without its images (`run_work`).
    """
    valves = chat.call.valves
    user_id = chat.call.caller.user_id
    size += sum(image_length(part) for part in chat.parts) // 1024
    parts = await run_work(size, partial(resolve_images, chat.parts, scale_image))
    has_attachments = any(
        part.attachments for part in parts if isinstance(part, UserMessage)
    )
    if _sends_documents(chat) and has_attachments:
        user = await user_model(user_id)
        parts = await add_documents(parts, user, chat.call.config.file_input)
    records = await load_stored_images(chat.records, parts, user_id)

    def build_items() -> list[Item]:
        items = build_input(
            parts,
            records,
            reader=origin if valves.remembers_reasoning() else None,
            with_tools=valves.PERSIST_TOOL_RESULTS,
            repairs=chat.stored.repairs if chat.stored else (),
        )
        return fit_input([capped(item) for item in items])

    def capped(item: Item) -> Item:
        """Return an item; Open WebUI knows no limit for the calls that it makes."""
        if not (chat.call.caller.host_reads and is_call_output(item)):
            return item
        most = valves.TOOL_OUTPUT_CHARACTERS
        return {**item, "output": cap_output(item["output"], most, NOTE_CHARACTERS)}

    return await run_work(size, build_items)


def _body(chat: _Chat) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer has priority over them."""
    given = research_body(chat.call.body, chat.model)
    body = {**given, "tool_choice": chat.tools.choice}
    if chat.call.agent:
        body = {**agent_defaults(chat.call.agent), **body}
    if chat.verbosity:
        body["text"] = {**as_mapping(body.get("text")), "verbosity": chat.verbosity}
    return body
