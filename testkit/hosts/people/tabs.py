"""A browser tab without a browser, over a live Socket.IO session.

async with Tab(user) as tab:
    turn = await tab.send("stub.one", "hello")
    turn = await tab.send("stub.one", "and again", chat_id=turn.chat_id)
    stored = await tab.message(turn)
"""

import asyncio
import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import socketio

from hosts.people.client import Json
from hosts.people.questions import Question, Sender, request_body, user_message
from hosts.people.users import User

PATIENCE = 120.0
"""Seconds for what must happen; a busy machine takes many of them."""
LAST_EVENTS = ("chat:tasks:cancel", "chat:message:error")


def is_question(payload: Json) -> bool:
    """Whether the page is to ask before a tool runs."""
    return bool(payload["data"].get("type") == "confirmation")


def waiting_calls(message: Json) -> list[Json]:
    """The calls of an answer whose cards have the buttons to allow or deny them."""
    return [item for item in message["output"] if item.get("status") == "pending"]


@dataclass
class Turn:
    """One question and its answer, as the tab saw it."""

    chat_id: str
    user_message_id: str
    message_id: str
    events: list[Json] = field(default_factory=list)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def of_type(self, *types: str) -> list[Json]:
        return [event for event in self.events if event.get("type") in types]

    @property
    def statuses(self) -> list[Json]:
        """The status lines above the answer, without what hides them for a while."""
        lines = (event["data"] for event in self.of_type("status"))
        return [line for line in lines if not line.get("hidden")]

    @property
    def error(self) -> Any:
        """What the answer's red box says, if it has one."""
        bodies = [event.get("data") for event in self.events]
        errors = (body.get("error") for body in bodies if isinstance(body, dict))
        return next((error for error in errors if error), None)

    @property
    def text(self) -> str:
        """The answer's text as it streamed in."""
        deltas = [event["data"] for event in self.of_type("response:completion")]
        return "".join(
            delta.get("delta", "")
            for delta in deltas
            if delta.get("type") == "response.output_text.delta"
        )

    async def until(
        self, condition: Callable[["Turn"], Any], seconds: float = PATIENCE
    ) -> None:
        """Wait until what was seen fulfils a condition."""
        async with asyncio.timeout(seconds):
            while not condition(self):
                self.changed.clear()
                await self.changed.wait()

    def see(self, event: Json) -> None:
        self.events.append(event)
        body = event.get("data") or {}
        done = event.get("type") == "chat:completion" and body.get("done")
        if done or event.get("type") in LAST_EVENTS:
            self.finished.set()
        self.changed.set()


class Tab:
    """Sends what the web client of Open WebUI 0.12 sends."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.turns: dict[str, Turn] = {}
        self.stray: list[Json] = []  # events of no turn of this tab
        self.answer: Callable[[Json], Any] = lambda _: None  # to an event call
        self._listed: dict[str, Json] = {}
        self._socket = socketio.AsyncClient(reconnection=False)

    async def __aenter__(self) -> Self:
        """Connect, and join as the page does."""
        self._socket.on("events", self._see)
        auth = {"token": self.user.token}
        await self._socket.connect(
            self.user.url,
            socketio_path="/ws/socket.io",
            auth=auth,
            transports=["websocket"],
        )
        await self._socket.call("user-join", {"auth": auth})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.disconnect()

    @property
    def session_id(self) -> str:
        return str(self._socket.get_sid())

    async def _see(self, payload: Json, *_: Any) -> Any:
        turn = self.turns.get(payload.get("message_id") or "")
        if turn:
            turn.see(payload.get("data") or {})
        else:
            self.stray.append(payload)
        answer = self.answer(payload)
        return await answer if inspect.isawaitable(answer) else answer

    def answer_questions(self, answer: Any) -> list[Json]:
        """Answer alike whenever the page asks before a tool runs; the questions."""
        asked: list[Json] = []

        def reply(payload: Json) -> Any:
            if not is_question(payload):
                return None
            asked.append(payload["data"]["data"])
            return answer

        self.answer = reply
        return asked

    # ---- asking

    async def send(
        self, model: str, text: str, *, seconds: float = PATIENCE, **more: Any
    ) -> Turn:
        """Ask, then wait for the end of the answer; `more` is `Question`'s."""
        turn = await self.begin(model, text, **more)
        await asyncio.wait_for(turn.finished.wait(), seconds)
        await self.settle(turn)
        return turn

    async def regenerate(self, model: str, turn: Turn, **more: Any) -> Turn:
        message_id = turn.user_message_id
        more |= {"chat_id": turn.chat_id, "regenerate": message_id}
        return await self.send(model, "", **more)

    async def continue_answer(self, model: str, turn: Turn) -> Turn:
        """Press the button that continues an answer, and wait for its end."""
        chat = await self.user.chat(turn.chat_id)
        asked = chat["history"]["messages"][turn.user_message_id]
        question = Question(model, chat_id=turn.chat_id)
        sender = Sender(self.session_id, self.user.id, self.user.name)
        answers = {turn.message_id: model}
        body = request_body(question, sender, asked, answers, None)
        body |= {"assistant_message_id": turn.message_id}
        again = Turn(turn.chat_id, turn.user_message_id, turn.message_id)
        self.turns[turn.message_id] = again
        await self.user.call("POST", "/api/chat/completions", body)
        await again.until(lambda seen: seen.finished.is_set())
        await self.settle(again)
        return again

    async def begin(self, model: str, text: str, **more: Any) -> Turn:
        """Ask, and return as soon as the server has taken the question."""
        [turn] = await self.begin_each([model], text, **more)
        return turn

    async def begin_each(
        self, models: Sequence[str], text: str, **more: Any
    ) -> list[Turn]:
        """Ask several models at once, whose answers are then side by side."""
        question = await self._placed(Question(models[0], text, **more))
        sender = Sender(self.session_id, self.user.id, self.user.name)
        answers = {str(uuid.uuid4()): model for model in models}
        message = await self._message(question, sender, answers)
        shown = await self._shown(models[0])
        body = request_body(question, sender, message, answers, shown)
        turns = [Turn(question.chat_id or "", message["id"], id) for id in answers]
        self.turns |= {turn.message_id: turn for turn in turns}
        reply = await self.user.call("POST", "/api/chat/completions", body)
        for turn in turns:
            turn.chat_id = reply["chat_id"]
        return turns

    async def _shown(self, model: str) -> Json | None:
        """A model as the menu knows it, which the page reads when it is opened."""
        if model not in self._listed:
            self._listed = {row["id"]: row for row in await self.user.models()}
        return self._listed.get(model)

    async def _placed(self, question: Question) -> Question:
        if question.temporary is not None:
            return replace(question, chat_id=f"temporary:{self.session_id}")
        if not question.chat_id or question.parent_id or question.regenerate:
            return question
        chat = await self.user.chat(question.chat_id)
        return replace(question, parent_id=chat["history"]["currentId"])

    async def _message(
        self, question: Question, sender: Sender, answers: Mapping[str, str]
    ) -> Json:
        if not question.regenerate or not question.chat_id:
            return user_message(question, sender, answers)
        chat = await self.user.chat(question.chat_id)
        asked: Json = chat["history"]["messages"][question.regenerate]
        return {key: asked[key] for key in asked if key != "childrenIds"}

    async def decide(
        self, turn: Turn, action: str = "approve", **more: Any
    ) -> list[str]:
        """Answer each call that waits at its card; their names, in this order."""
        asked: list[str] = []
        await self.settle(turn)
        while waiting := waiting_calls(await self.message(turn)):
            asked.append(waiting[0]["name"])
            path = f"/api/v1/chats/{turn.chat_id}/messages/{turn.message_id}/resolve"
            body = {"call_id": waiting[0]["call_id"], "action": action, **more}
            await self.user.call("POST", path, body)
            await self.settle(turn)
        return asked

    async def stop(self, turn: Turn) -> None:
        await self.user.call("POST", f"/api/tasks/chat/{turn.chat_id}/stop")

    async def settle(self, turn: Turn, seconds: float = PATIENCE) -> None:
        """Wait until no task runs for the chat: saving, title, follow-ups."""
        path = f"/api/tasks/chat/{turn.chat_id}"
        async with asyncio.timeout(seconds):
            while (await self.user.call("GET", path))["task_ids"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # no event says that the saving is over

    async def ended_message(self, turn: Turn, seconds: float = PATIENCE) -> Json:
        """The answer as stored at its end.

        Of several servers the one that is told to stop forgets the task at once; the
        one that runs it stores the answer later (`stop_task` in tasks.py, 0.12.4).
        """
        async with asyncio.timeout(seconds):
            stored = await self.message(turn)
            while not stored.get("done"):
                await asyncio.sleep(0.05)  # no event says that the saving is over
                stored = await self.message(turn)
        return stored

    async def message(self, turn: Turn) -> Json:
        chat = await self.user.chat(turn.chat_id)
        answer: Json = chat["history"]["messages"][turn.message_id]
        return answer
