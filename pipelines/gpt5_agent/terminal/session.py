"""A conversation with one user: what they say, what they allow, what comes of it.

A user interface gives its commands here (`submit_user_input`, `provide_confirmation`),
and gets the agent's events through the methods of `UserInterface`.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from gpt5_agent.agent.answer import MakeProvider, run_agent
from gpt5_agent.events import (
    AgentEvent,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    StateChanged,
    ToolCallRequested,
)
from gpt5_agent.ports import UserInterface
from gpt5_agent.request import AgentRequest
from gpt5_agent.tools.confirmations import (
    compute_confirmation_id,
    find_security_warning,
)
from openai_responses.callbacks import ignore_report
from openai_responses.items import is_call, item_type, message_text
from openai_responses.loop.events import ToolOutput
from openai_responses.loop.tools import AskedCall
from owui_chat.render.completions import chat_tool_call
from owui_chat.storage.details_carrier import write_details
from strategies.memory import Message


class Session:
    """Answers one input after another; `messages` are the conversation so far."""

    def __init__(
        self,
        request: AgentRequest,
        make_provider: MakeProvider,
        interface: UserInterface,
        show: Callable[[AgentEvent], object] = ignore_report,
    ) -> None:
        """Repeat `request` for each input; `show` gets every event."""
        approver = replace(request.own_tools.approver, ask=self._ask_user)
        own = request.own_tools._replace(approver=approver, asks_in_chat=False)
        self.messages: list[Message] = list(request.messages)
        self._request = request._replace(own_tools=own)
        self._interface = interface
        self._show = show
        self._make_provider = make_provider
        self._turn = asyncio.Lock()
        self._waiting: dict[str, asyncio.Future[bool]] = {}

    async def submit_user_input(self, text: str) -> None:
        """Answer what the user said; cancelling it stops the model and the tools."""
        async with self._turn:
            self.messages.append({"role": "user", "content": text})
            request = self._request._replace(messages=tuple(self.messages))
            events = run_agent(request, self._make_provider)
            async with aclosing(events):
                async for event in events:
                    self.messages += self._build_messages(event)
                    self._show(event)
                    match event:
                        case NewMessage():
                            self._interface.on_new_message(event)
                        case StateChanged():
                            self._interface.on_agent_state_change(event.state)
                        case ReadyForInput():
                            self._interface.on_ready_for_input()

    def provide_confirmation(self, confirmation: str, approved: bool) -> bool:
        """Answer a request; returns whether one of that id waited for it.

        An answer counts once: no one waits for a second one.
        """
        waiting = self._waiting.pop(confirmation, None)
        if waiting is None:
            return False
        waiting.set_result(approved)
        return True

    async def _ask_user(self, calls: Sequence[AskedCall]) -> list[bool]:
        """Ask about one call after the other."""
        answers: list[bool] = []
        for call in calls:
            name = call.name
            arguments = call.arguments
            confirmation = compute_confirmation_id(call.call_id, name, arguments)
            answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting[confirmation] = answer
            self._interface.on_agent_state_change("waiting_for_confirmation")
            self._interface.on_tool_call_request(
                ToolCallRequested(
                    name, arguments, confirmation, find_security_warning(name)
                )
            )
            try:
                answers.append(await answer)
            finally:
                self._waiting.pop(confirmation, None)
                self._interface.on_agent_state_change("executing_tool")
        return answers

    def _build_messages(self, event: AgentEvent) -> list[Message]:
        """Return what an event adds to the conversation, as Open WebUI would have it."""
        if isinstance(event, ToolOutput):
            return [
                {
                    "role": "tool",
                    "tool_call_id": event.item["call_id"],
                    "content": event.item["output"],
                }
            ]
        if not isinstance(event, RoundEnded):
            return []
        items = [item for _, item in event.items]
        texts = [message_text(item) for item in items if item_type(item) == "message"]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "\n".join(text for text in texts if text),
            "reasoning_details": write_details(
                event.name,
                [(item, message_text(item)) for item in items],
                self._request.origin,
                event.notes,
                self._request.sign,
            ),
        }
        calls = [chat_tool_call(item) for item in items if is_call(item)]
        if calls:
            message["tool_calls"] = calls
        return [message]
