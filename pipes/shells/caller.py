"""Who asks, as Open WebUI says it to both shells, and what callers may not set."""

from collections.abc import Mapping
from typing import NamedTuple

from openai_responses.json_input import JsonObject, as_list, as_mapping, value_at
from openai_responses.recent_texts import RecentTexts
from shells.answer_log import AnswerLog, LogLevel

HOST_TASKS = frozenset(
    {
        "title_generation",
        "tags_generation",
        "follow_up_generation",
        "emoji_generation",
        "query_generation",
        "image_prompt_generation",
        "autocomplete_generation",
        "function_calling",
        "moa_response_generation",
        "context_compaction",
        "memory_review",
    }
)
"""The names of Open WebUI's tasks (docs/reference/open-webui.md, "Tasks")."""

CHANNEL = "channel:"
"""How the chat id of a model that was mentioned in a channel begins."""


def is_program(task: str) -> bool:
    """Say whether a task is none of the host's.

    Other functions put names of their own where the host names its tasks, such as a
    sub-agent with tools. They get an answer with calls, in the form for programs.
    """
    return bool(task) and task not in HOST_TASKS


def uses_older_calls(body: JsonObject) -> bool:
    """Say whether a program offers functions as Chat Completions first had them."""
    return bool(as_list(body.get("functions"))) and not body.get("tools")


def wants_format(body: JsonObject) -> bool:
    """Say whether a body asks for JSON, as the text or as the arguments of one function."""
    if value_at(body, "tool_choice", "type") == "function":
        return True
    for form in (body.get("response_format"), value_at(body, "text", "format")):
        kind = form if isinstance(form, str) else as_mapping(form).get("type")
        if kind not in (None, "text"):
            return True
    return False


def wants_usage_chunk(body: JsonObject) -> bool:
    """Say whether a body asks for the usage as OpenAI's Chat Completions give it."""
    return value_at(body, "stream_options", "include_usage") is True


class ChatCaller(NamedTuple):
    """Who asks, and for which chat and message; empty ids are unknown."""

    host_model: str = ""
    """The host's id of the model, `{function or pipeline id}.{model}`."""
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    """The name of a task of the host, or empty."""
    streams: bool = False
    """Whether the host reads a stream. It takes any true value of `stream` for true
    (functions.py, 0.12.4); the administration's filter makes it a bool."""
    is_admin: bool = False
    is_in_others_chat: bool = False
    """Whether an administrator asks in a chat of somebody else, as the pipe knows."""
    wants_usage_chunk: bool = False
    """Whether a program asks for the usage in a chunk of its own, the last one."""
    reads_older_calls: bool = False
    """Whether a program knows no `tool_calls`, but one `function_call`."""
    wants_format: bool = False
    """Whether a program reads the JSON that it asked for, and no free text."""

    @property
    def is_open_webui(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer.

        True exactly if the request has a chat id and a message id. A session id only
        decides whether a dialog can be answered (docs/reference/open-webui.md, "Ids of
        a call").
        """
        return bool(self.chat_id and self.message_id)

    @property
    def name_in_log(self) -> str:
        """What the log calls whoever asks."""
        return f"user {self.user_id[:40]}" if self.user_id else "a plain client"

    @property
    def is_in_channel(self) -> bool:
        """Whether the model was mentioned in a channel."""
        return self.chat_id.startswith(CHANNEL)

    @property
    def reads_reasons(self) -> bool:
        """Whether the answer tells what only administrators may read.

        The members of a channel read what is said to an administrator there, and the
        owner of a chat reads it in the chat.
        """
        return self.is_admin and not (self.is_in_channel or self.is_in_others_chat)

    @property
    def drops_errors(self) -> bool:
        """Whether the reader of a stream shows its text alone.

        While the page merges answers, it stops at an error without a word, and looks as
        if it still waited (`mergeResponses` in Chat.svelte of 0.12.4). In a channel Open
        WebUI drops errors of a stream, and the answer would be empty
        (socket/main.py:1369 of 0.12.4).
        """
        return self.is_in_channel or self.task == "moa_response_generation"


MAY_SET_KEY = "EXPERT_JSON, caller_may_set,"
"""How a message about its unknown words begins. The words differ: in the pipe they open
what is otherwise the administrator's, in the agents any key of a request."""
_LONGEST_LEFT_OUT = 60
_MAX_LEFT_OUT = 50
"""Callers choose names, and how many they send."""

PERMISSION_ADVICE = " (caller_may_set in EXPERT_JSON says what a request may set)"


def log_left_out(
    log: AnswerLog,
    caller: ChatCaller,
    left_out: Mapping[str, str],
    logged: RecentTexts,
    advice: str = "",
) -> None:
    """Log what a request lost, a warning if an administrator can follow an `advice`.

    `left_out` has the reason of each name, if the advice does not say it. Each name is
    logged once per caller: a client sends the same settings again and again.
    """
    who = caller.name_in_log
    new: list[str] = []
    for name, reason in left_out.items():
        shown = name[:_LONGEST_LEFT_OUT]
        if logged.first_time(f"{who}: {shown}"):
            new.append(f"{shown} ({reason})" if reason else shown)
    if new:
        names = ", ".join(new[:_MAX_LEFT_OUT])
        level: LogLevel = "WARNING" if advice else "INFO"
        log.line(level, f"left out of requests of {who}: {names}{advice}")
