"""Builds the request for a chat: `build_chat_request` tells it from top to bottom.

The chat as the host gives it; the model, if its name leaves the choice to the pipe, and
the tools; the fields; the prefix as it was sent before; the history as input.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from manifold.preparation import (
    Chat,
    OfferedTools,
    build_fields,
    fit_history,
    memories,
    parse_chat,
    takes_back_thoughts,
)
from manifold.request_settings import chat_limits, chosen_tags
from openai_responses.items import (
    ADDED_TOOLS,
    CONFIGURATION,
    Item,
    is_compaction,
    text_message,
    tool_kind,
    tool_name,
)
from openai_responses.json_input import JsonObject, as_mapping, as_text
from openai_responses.long_work import count_entries, run_work
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import ResolvedModel
from openai_responses.repairs.request_repairs import Repair, lowered_kinds
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.containers import has_new_container
from openai_responses.requests.replay import Origin, origin_at
from openai_responses.requests.turns import append_turns, record_turn
from owui_chat.commands import without_commands
from owui_chat.input.attachments import (
    add_tool_images,
    attach_files,
    image_length,
    resolve_images,
    svg_notice,
    unread_notice,
)
from owui_chat.input.directives import take_directive
from owui_chat.input.history import build_input
from owui_chat.input.prefix import (
    SentContext,
    SentInstructions,
    apply_sent_context,
    change_instructions,
    change_message,
    drop_repeated_context,
    find_injected_context,
    model_turns,
    sent_instructions,
)
from owui_chat.input.summary import SUMMARY_HEADING, THREAD_HEADING, take_conversation
from owui_chat.messages import (
    ChatPart,
    UserMessage,
    attach_stored_messages,
    check_shown,
    mark_old_answers,
    stored_messages,
    system_text,
    user_messages,
    with_shown_words,
    without_unseen_words,
)
from owui_chat.storage.output_carrier import restore_from_outputs, stored_outputs
from owui_chat.storage.recorder import Carrier, RecordScope
from owui_host.users import user_model
from owui_manifold.call.agent import check_agent_model
from owui_manifold.call.config import run_limits
from owui_manifold.call.context import Call
from owui_manifold.call.research import RESEARCH_BEGINNING, research_body
from owui_manifold.host.open_webui import (
    listed_messages,
    model_system_prompt,
    require_floor,
    shown_messages,
)
from owui_manifold.prepare.files import (
    add_documents,
    document_ids,
    load_stored_images,
    scale_image,
    silent_videos,
)
from owui_manifold.prepare.image_notice import image_hint, image_notice
from owui_manifold.prepare.python_files import (
    PythonFile,
    choose_python_files,
    name_python_files,
)
from owui_manifold.prepare.request import (
    Prepared,
    build_with_allowed_effort,
    learned_repairs,
    offered_tools,
    request_settings,
    wait_message,
    with_cache_comparison,
)
from owui_manifold.prepare.retrieved_text import without_retrieved_text
from owui_manifold.prepare.toolset import chat_toolset
from owui_manifold.store.keys import ChatKeys, chat_keys
from owui_manifold.store.stored_chat import StoredChat, read_stored_chat
from owui_manifold.store.writers import StoredAnswer
from strategies.instructions import build_strategy_instructions
from strategies.policy import choose_style


async def build_chat_request(call: Call) -> Prepared:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent.

    What takes longer for a longer chat is done in `run_work`.
    """
    require_floor()
    keys = chat_keys(call.valves, call.caller)
    stored = await read_stored_chat(call.caller, keys)
    size = count_entries(call.messages, 2) + (stored.size if stored else 0)

    # The chat as the host gives it.
    chat, summary = await _read_chat(call, keys, size)

    # The model, the tools that it is offered, and what is told of them.
    model, reason = await _choose_model(call, chat.parts, stored, size)
    tools = offered_tools(call, model)
    told = chat.instructions
    if call.agent:
        # The policies are instructions like any others: where the switch goes on or off
        # in a chat, `_keep_prefix` keeps what was sent, and tells what has changed.
        check_agent_model(call.agent, model)
        parameters = call.agent.parameters
        style = choose_style(parameters.policy_style, model.family)
        offered = {str(tool.get("name")) for tool in tools.items}
        builtin = {name for name in offered if call.host.is_builtin(name)}
        told = build_strategy_instructions(parameters, style, told, builtin)
    told = "\n\n".join(text for text in (told, image_hint(call, model)) if text)
    chat = chat._replace(instructions=told)

    # What the host stores of the chat: its messages, its files, its earlier answers.
    rows = await _host_messages(call, stored, size)
    is_own = stored is not None
    chat = await run_work(size, lambda: _attach_stored(call, rows, chat, is_own=is_own))
    file_input = call.valves.FILE_INPUT if model.facts.vision else "off"
    chat, python_files = await _with_whole_files(call, tools, file_input, chat)
    chat, verbosity = await run_work(
        size,
        lambda: _read_question_and_answers(call, model, stored, python_files, chat),
    )

    # The fields as if the chat began now, and then as it began, with what has changed.
    request = _first_fields(call, model, tools, verbosity, chat)
    repairs = learned_repairs(call, model.id)
    if stored:
        repairs = (*repairs, *stored.repairs)
    chat, request, sent = await run_work(
        size, lambda: _keep_prefix(call, model, stored, repairs, request, chat)
    )

    # The input, and everything together.
    chat = _place_beginning(call, chat, summary)
    origin = origin_at(model.family, call.endpoint)
    items = await _build_history(call, stored, origin, file_input, chat, size)
    request = request.model_copy(
        update={
            "input": items,
            "instructions": chat.instructions or None,
            "repairs": repairs,
        }
    )
    row: StoredAnswer | None = None
    if stored:
        caller = call.caller
        row = StoredAnswer(caller.chat_id, caller.message_id, stored, keys, sent)
    cites = any(tool_kind(tool).is_cited for tool in tools.items)
    return Prepared(
        call=call,
        request=with_cache_comparison(call, request, stored),
        limits=chat_limits(
            run_limits(call.config.expert, model),
            call.agent_parameters,
            chosen_tags(call.host.metadata),
        ),
        toolset=chat_toolset(call, tools),
        tool_names=tools.names,
        row=row,
        scope=_record_scope(call, keys, row, origin, cites=cites),
        records=chat.records,
        beginning=f"{reason} {wait_message(request)}".strip(),
        notices=(
            tools.notice,
            image_notice(call, model, tools),
            svg_notice(chat.parts),
            *chat.notices,
        ),
        python_files=python_files,
    )


async def _read_chat(call: Call, keys: ChatKeys, size: int) -> tuple[Chat, str]:
    """Return the chat, and what the host tells of a conversation that it leaves out.

    The host does so after a heading in its instructions, in chats of its page and in
    channels only; other clients write their own instructions.
    """
    heading = THREAD_HEADING if call.caller.is_in_channel else SUMMARY_HEADING
    may_tell = call.caller.is_in_channel or call.caller.is_open_webui
    first = call.messages[:3]
    are_messages = all(isinstance(message, dict) for message in first)
    tells = may_tell and are_messages and heading in system_text(first)
    model_prompt: str | None = None
    if tells:  # the prompt of the model is in front of the heading
        model_prompt = await model_system_prompt(
            call.model_id, call.caller.user_id, call.host.metadata
        )
    takes_back = takes_back_thoughts(call.caller, call.endpoint)
    parse = partial(
        parse_chat,
        call.messages,
        keys.sign,
        call.agent_parameters,
        call.valves.IMAGE_DETAIL,
        has_wish=bool(call.host.metadata.get("regeneration_message_id")),
        with_thoughts=takes_back and call.valves.remembers_reasoning(),
    )
    chat = await run_work(size, parse)
    if not tells:
        return chat, ""
    instructions, summary = take_conversation(chat.instructions, heading, model_prompt)
    return chat._replace(instructions=instructions), summary


async def _choose_model(
    call: Call, parts: Sequence[ChatPart], stored: StoredChat | None, size: int
) -> tuple[ResolvedModel, str]:
    """Return the model, and the message that says why it was chosen, if any.

    What the user's limits forbid counts as what the model lacks.
    """

    def choose() -> tuple[str, str] | None:
        questions = list(user_messages(parts).values())
        # By their ids, which begin with the time.
        records = sorted(stored.records.items()) if stored else ()
        return choose_auto_model(
            call.model_name,
            questions[0].item if questions else None,
            tools=bool(call.host.metadata.get("tool_ids")),
            earlier=[record.origin.family for _, record in records],
        )

    model = call.model
    reason = RESEARCH_BEGINNING if model.research else ""
    choice = await run_work(size, choose)
    if choice:
        name, why = choice
        model = call.resolve(name)
        reason = f"{model.name} answers: {why}."
    if call.account is None:
        return model, reason
    forbidden = call.account.limits.forbidden_tools()
    wanted = [kind for kind in forbidden if kind in call.config.tool_kinds]
    call.note_left_out(dict.fromkeys(wanted, "forbidden by limits"))
    lacks = (*model.facts.lacks, *forbidden)
    return model._replace(facts=model.facts._replace(lacks=lacks)), reason


async def _host_messages(
    call: Call, stored: StoredChat | None, size: int
) -> JsonObject:
    """Return the messages of the chat as the host stores them, by id.

    Raises InvalidRequest for one that the page does not show, in a chat that its owner
    lets others continue.
    """
    is_own = stored is not None
    rows = stored.messages if stored else {}
    # What the host's table has alone matters only where such a message was sent.
    may_be_hidden = not is_own or any(
        as_mapping(message).get("role") not in ("user", "assistant")
        for message in call.messages
    )
    if call.caller.may_have_row and may_be_hidden:
        rows = await listed_messages(call.caller.chat_id, is_own=is_own) or rows
        if rows and not is_own:
            shown = await shown_messages(call.caller.chat_id)
            question_id = as_text(call.host.metadata.get("user_message_id"))
            await run_work(size, lambda: check_shown(rows, shown, question_id))
    return rows


_LEFT_OUT = "a developer's message in its row was left out"


def _attach_stored(call: Call, rows: JsonObject, chat: Chat, *, is_own: bool) -> Chat:
    """Give the parts what the host stores of them: the messages of the chat, by id.

    In a chat that its owner lets others continue, they only tell what is hidden.
    """
    metadata = call.host.metadata
    given = add_tool_images(chat.parts, rows)
    parts = attach_stored_messages(given, rows, metadata)
    if len(parts) < len(given):
        call.warn_once(f"chat {call.caller.chat_id}: {_LEFT_OUT}")
    parts = without_unseen_words(parts, rows, metadata)
    if not is_own:
        question_id = as_text(metadata.get("user_message_id"))
        parts = with_shown_words(parts, rows, question_id, call.caller.user_id)
        rows = {}
        for index, user in user_messages(parts).items():
            parts[index] = user._replace(stored=None)
    parts = mark_old_answers(parts, rows)
    parts = without_commands(parts)
    # Knowledge of the model that answers is among its files.
    metadata = {**metadata, "model": call.host.model}
    return chat._replace(parts=attach_files(parts, rows, metadata))


async def _with_whole_files(
    call: Call, tools: OfferedTools, file_input: str, chat: Chat
) -> tuple[Chat, Sequence[PythonFile]]:
    """Choose the files that code gets; leave out what the host retrieved of them.

    The same holds for documents that the model gets whole (`file_input`).
    """
    parts = chat.parts
    notices = chat.notices
    python_files: Sequence[PythonFile] = ()
    whole = set[str]()
    if file_input != "off":
        whole = document_ids(parts, file_input)
    # Code gets files only in a container of OpenAI or Azure.
    endpoint = call.endpoint
    refused_uploads = call.memory.refused_uploads
    if (
        endpoint.has_own_services
        and tools.choice != "none"
        and not refused_uploads.holds(endpoint.account(), call.caller.user_id)
        and has_new_container(tools.items)
        and any(user.attachments for user in user_messages(parts).values())
    ):
        user = await user_model(call.caller.user_id)
        python_files, notice = await choose_python_files(parts, user)
        notices = (*notices, notice)
        whole.update(file.file_id for file in python_files)
    silent = await silent_videos(parts, call.caller.user_id)
    notices = (*notices, unread_notice(parts, whole, silent))
    parts, instructions = await without_retrieved_text(
        parts, chat.instructions, call.host.metadata, whole
    )
    chat = chat._replace(parts=parts, instructions=instructions, notices=notices)
    return chat, python_files


def _read_question_and_answers(
    call: Call,
    model: ResolvedModel,
    stored: StoredChat | None,
    python_files: Sequence[PythonFile],
    chat: Chat,
) -> tuple[Chat, str]:
    """Put the stored outputs of earlier answers in the place of their text.

    A wish for the length of this answer is taken out of the question, as a verbosity:
    it is no part of the prefix.
    """
    replaced_id = str(call.host.metadata.get("regeneration_message_id") or "")
    parts = chat.parts
    verbosity = ""
    if model.facts.verbosity:
        parts, verbosity = take_directive(parts, is_guided=bool(replaced_id))
    # Only now is the last message the question, and not a wish that was taken out.
    has_row = bool(stored_messages(parts))
    parts = name_python_files(parts, python_files, at_question_only=has_row)
    if stored is None:
        return chat._replace(parts=parts), verbosity
    outputs = stored_outputs(stored.messages, call.caller.message_id, replaced_id)
    parts = restore_from_outputs(parts, outputs)
    records = {**chat.records, **stored.records}
    return chat._replace(parts=parts, records=records), verbosity


def _first_fields(
    call: Call,
    model: ResolvedModel,
    tools: OfferedTools,
    verbosity: str,
    chat: Chat,
) -> ResponsesRequest:
    """Return the request as if the chat began now, without instructions and input.

    A wish for the length of this one answer has priority over the caller's keys.
    """
    body = {**research_body(call.body, model), "tool_choice": tools.choice}
    if verbosity:
        body["text"] = {**as_mapping(body.get("text")), "verbosity": verbosity}
    settings = request_settings(call, tools, model)
    agent = call.agent_parameters

    def build(given: JsonObject) -> ResponsesRequest:
        return build_fields(model, given, settings, agent, is_empty=not chat.parts)

    request = build_with_allowed_effort(call, model.facts, body, build)
    unsent = [tool for tool in tools.items if tool not in (request.tools or ())]
    reason = "not with the effort minimal"
    names = [f"the tool {tool_name(tool)}" for tool in unsent]
    call.note_left_out(dict.fromkeys(names, reason))
    return request


def _keep_prefix(
    call: Call,
    model: ResolvedModel,
    stored: StoredChat | None,
    repairs: Sequence[Repair],
    request: ResponsesRequest,
    chat: Chat,
) -> tuple[Chat, ResponsesRequest, SentContext | None]:
    """Return the chat and its request as they were sent before, and what this run adds.

    It adds None where there is no row, or where what an earlier run sent holds on.
    """
    parts = chat.parts
    if stored is None or not stored_messages(parts):
        return chat, request, None
    message_id = call.caller.message_id
    mode = call.config.expert.stable_instructions
    keeps_first = model.facts.appends_tools if mode == "auto" else mode == "on"
    # The types of items by which a turn can change a request: those that the model and
    # its server take, and did not refuse.
    appended = set[str]()
    if call.endpoint.is_openai and model.facts.appends_tools:
        appended.add(ADDED_TOOLS)
    if call.endpoint.is_openai and model.facts.appends_configuration:
        appended.add(CONFIGURATION)
    appended -= lowered_kinds(repairs)
    # After a compaction the model has nothing of what came before it.
    compacted: set[str] = set()
    for record in chat.records.values():
        if any(is_compaction(item) for item in record.payload):
            compacted.add(record.message_id)

    # What this run sends in addition; an answer that goes on has sent it before.
    sent = dict(stored.sent)
    new: SentContext | None = None
    if not call.host.continues:
        # An earlier run of the same message does not count: a client chooses the ids.
        sent.pop(message_id, None)
        new = SentContext()
        if keeps_first:
            before = sent_instructions(parts, sent, call.model_id, compacted)
            new = change_instructions(before, chat.instructions, call.model_id)
        turn = None
        if appended:
            turns = model_turns(parts, sent, request.model)
            turn = record_turn(
                request, list(turns.values()), model.facts.default_effort
            )
        injected = find_injected_context(parts)
        if injected:
            injected = drop_repeated_context(injected, parts, sent, compacted)
        new = new._replace(injected=injected, turn=turn)
        if new != SentContext():
            sent[message_id] = new

    # The fields that its model was first asked with, and what later turns changed.
    items: Mapping[str, Sequence[Item]] = {}
    turns = model_turns(parts, sent, request.model)
    if message_id in turns:
        request, items = append_turns(request, turns, appended)

    # The instructions as the chat began with them, and as they were changed since.
    told: SentInstructions | None = None
    if keeps_first:
        told = sent_instructions(parts, sent, call.model_id, compacted)
    if told is None:  # it gets all of its instructions anew
        prefix = apply_sent_context(parts, sent, {}, items)
        return chat._replace(parts=prefix), request, new
    prefix = apply_sent_context(parts, sent, told.changes, items)
    # A new question has the change in front of it. If an answer is continued, what has
    # changed since it began is told at its end.
    change = change_instructions(told, chat.instructions, call.model_id)
    message = change_message(change)
    if message:
        prefix.append(UserMessage(message))
    return chat._replace(parts=prefix, instructions=told.first), request, new


def _place_beginning(call: Call, chat: Chat, summary: str) -> Chat:
    """Let the chat begin with its instructions and with what was before it.

    Instructions in the input are for servers that take a developer's message there.
    The `summary` is what Open WebUI tells of the conversation that it leaves out.
    """
    beginning: list[ChatPart] = []
    instructions = chat.instructions
    if instructions and call.endpoint.is_openai:
        beginning.append(UserMessage(text_message("developer", instructions)))
        instructions = ""
    if call.agent:
        beginning += memories(call.agent.parameters)
    if summary:
        beginning.append(UserMessage(text_message("user", summary)))
    return chat._replace(instructions=instructions, parts=[*beginning, *chat.parts])


async def _build_history(
    call: Call,
    stored: StoredChat | None,
    origin: Origin,
    file_input: str,
    chat: Chat,
    size: int,
) -> list[Item]:
    """Return the input of a chat, with its files.

    `size` is that of the chat without its images (`run_work`).
    """
    valves = call.valves
    user_id = call.caller.user_id
    size += sum(image_length(part) for part in chat.parts) // 1024
    parts = await run_work(size, lambda: resolve_images(chat.parts, scale_image))
    has_attachments = any(
        part.attachments for part in parts if isinstance(part, UserMessage)
    )
    if file_input != "off" and has_attachments:
        parts = await add_documents(parts, await user_model(user_id), file_input)
    records = await load_stored_images(chat.records, parts, user_id)

    def build_items() -> list[Item]:
        items = build_input(
            parts,
            records,
            reader=origin if valves.remembers_reasoning() else None,
            with_tools=valves.PERSIST_TOOL_RESULTS,
            repairs=stored.repairs if stored else (),
        )
        most = valves.TOOL_OUTPUT_CHARACTERS if call.caller.is_open_webui else None
        return fit_history(items, most)

    return await run_work(size, build_items)


def _record_scope(
    call: Call,
    keys: ChatKeys,
    row: StoredAnswer | None,
    origin: Origin,
    *,
    cites: bool,
) -> RecordScope | None:
    """Return what is recorded of an answer.

    Without a row only reasoning can be stored, in the details of an answer that the
    host stores.
    """
    remembers = call.valves.remembers_reasoning()
    carrier: Carrier = "details"
    if row:
        is_in_output = call.valves.HISTORY_CARRIER == "output"
        carrier = "output" if is_in_output else "markers"
    elif not (remembers and call.caller.has_page):
        return None
    return RecordScope(
        message_id=call.caller.message_id,
        origin=origin,
        keeps_reasoning=remembers,
        cites=cites or call.agent is not None,
        carrier=carrier,
        sign=keys.sign,
    )
