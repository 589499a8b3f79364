"""A signed-in person who uses Open WebUI's REST interface."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any
from uuid import uuid4

from hosts.people.client import Client, Json

COMPLETIONS = "/api/chat/completions"
PERMISSIONS = "/api/v1/users/default/permissions"
EVERYBODY_READS = {
    "principal_type": "user",
    "principal_id": "*",
    "permission": "read",
}


class User(Client):
    """Somebody with an e-mail address, a role and rights."""

    def __init__(self, url: str, email: str, password: str) -> None:
        super().__init__(url)
        self.email = email
        self.password = password
        self.id = self.role = self.name = ""

    async def sign_in(self) -> "User":
        """Log in with an account that exists."""
        form = {"email": self.email, "password": self.password}
        account = await self.call("POST", "/api/v1/auths/signin", form)
        self.token = account["token"]
        self.id = account["id"]
        self.role = account["role"]
        self.name = account["name"]
        return self

    async def add_user(self, email: str, password: str) -> "User":
        """Create an account as in Admin Panel > Users, then log in with it."""
        name = email.split("@", maxsplit=1)[0]
        form = {"name": name, "email": email, "password": password, "role": "user"}
        await self.call("POST", "/api/v1/auths/add", form)
        return await User(self.url, email, password).sign_in()

    async def hide_changelog(self) -> None:
        """Keep the "What's new" dialog, which administrators get, off the page."""
        version = (await self.call("GET", "/api/version"))["version"]
        settings = {"ui": {"version": version}}
        await self.call("POST", "/api/v1/users/user/settings/update", settings)

    # ---- functions

    async def install_function(
        self, function_id: str, source: str, name: str = ""
    ) -> Json:
        """Create or update as the editor's Save button does, then switch it on."""
        form = {
            "id": function_id,
            "name": name or function_id,
            "content": source,
            "meta": {"description": ""},
        }
        installed = await self.call("GET", "/api/v1/functions/")
        exists = any(function["id"] == function_id for function in installed)
        path = f"id/{function_id}/update" if exists else "create"
        await self.call("POST", f"/api/v1/functions/{path}", form)
        return await self.set_active(function_id)

    async def set_active(self, function_id: str) -> Json:
        return await self._toggle(function_id, "toggle", "is_active", True)

    async def set_global(self, function_id: str, on: bool = True) -> Json:
        return await self._toggle(function_id, "toggle/global", "is_global", on)

    async def _toggle(self, function_id: str, path: str, flag: str, on: bool) -> Json:
        address = f"/api/v1/functions/id/{function_id}"
        function: Json = await self.call("GET", address)
        if function[flag] != on:
            function = await self.call("POST", f"{address}/{path}")
        return function

    async def delete_function(self, function_id: str) -> None:
        await self.call("DELETE", f"/api/v1/functions/id/{function_id}/delete")

    async def valves_spec(self, function_id: str) -> Json:
        return await self._valves("GET", function_id, "/spec")

    async def valves(self, function_id: str) -> Json:
        """The stored valves: only what somebody has set."""
        return await self._valves("GET", function_id) or {}

    async def set_valves(self, function_id: str, values: Json) -> Json:
        return await self._valves("POST", function_id, "/update", values)

    async def user_valves(self, function_id: str) -> Json:
        return await self._valves("GET", function_id, "/user") or {}

    async def set_user_valves(self, function_id: str, values: Json) -> Json:
        return await self._valves("POST", function_id, "/user/update", values)

    async def _valves(
        self, method: str, function_id: str, what: str = "", values: Any = None
    ) -> Json:
        path = f"/api/v1/functions/id/{function_id}/valves{what}"
        valves: Json = await self.call(method, path, values)
        return valves

    # ---- models

    async def models(self, refresh: bool = False) -> list[Json]:
        """The models this person may use, or those that the host lists anew."""
        path = "/api/models?refresh=true" if refresh else "/api/models"
        listed: list[Json] = (await self.call("GET", path))["data"]
        return listed

    async def share_model(self, model_id: str, name: str, **meta: Any) -> Json:
        """Let every user see a pipe's model; without this only administrators do."""
        form = {
            "id": model_id,
            "name": name,
            "base_model_id": None,
            "meta": meta,
            "params": {},
            "access_grants": [EVERYBODY_READS],
            "is_active": True,
        }
        shared: Json = await self.call("POST", "/api/v1/models/create", form)
        return shared

    # ---- completions over plain HTTP: no chat, nothing stored

    async def complete(self, model: str, text: str, **extra: Any) -> str:
        answer = await self.completion(model, [_user_message(text)], **extra)
        content: str = answer["choices"][0]["message"]["content"]
        return content

    async def completion(self, model: str, messages: list[Json], **extra: Any) -> Json:
        """A whole answer as the server sends it."""
        body = {"model": model, "messages": messages, "stream": False, **extra}
        answer: Json = await self.call("POST", COMPLETIONS, body)
        return answer

    def chunks(
        self, model: str, messages: str | list[Json], **extra: Any
    ) -> AsyncIterator[Json]:
        asked = [_user_message(messages)] if isinstance(messages, str) else messages
        body = {"model": model, "messages": asked, "stream": True, **extra}
        return self.stream(COMPLETIONS, body)

    # ---- chats

    async def chat(self, chat_id: str) -> Json:
        """A stored chat: its history, and whatever else was written into it."""
        row = await self.call("GET", f"/api/v1/chats/{chat_id}")
        stored: Json = row["chat"]
        return stored

    async def update_chat(self, chat_id: str, chat: Json) -> Json:
        """Save a chat as the page does after an edit."""
        return await self._chat(chat_id, "", {"chat": chat})

    async def clone_chat(self, chat_id: str) -> Json:
        return await self._chat(chat_id, "/clone", {})

    async def fork_chat(self, chat_id: str, message_id: str) -> Json:
        return await self._chat(chat_id, "/fork", {"message_id": message_id})

    async def share_chat(self, chat_id: str, readers: Sequence["User"] = ()) -> Json:
        """Make a link, which these people can open."""
        reading = {"principal_type": "user", "permission": "read"}
        grants = [{**reading, "principal_id": reader.id} for reader in readers]
        address = f"/api/v1/chats/shared/{chat_id}/access/update"
        await self.call("POST", address, {"access_grants": grants})
        return await self._chat(chat_id, "/share", None)

    async def clone_shared_chat(self, share_id: str) -> Json:
        return await self._chat(share_id, "/clone/shared", None)

    async def import_chats(self, chats: list[Json]) -> list[Json]:
        path = "/api/v1/chats/import"
        imported: list[Json] = await self.call("POST", path, {"chats": chats})
        return imported

    async def _chat(self, chat_id: str, what: str, body: Any) -> Json:
        row: Json = await self.call("POST", f"/api/v1/chats/{chat_id}{what}", body)
        return row


def _user_message(text: str) -> Json:
    return {"role": "user", "content": text}


async def download(user: User, address: str) -> tuple[int, bytes]:
    """The status and the bytes that a user gets for an address of the server."""
    async with user.http.get(user.url + address, headers=user.headers) as answer:
        return answer.status, await answer.read()


async def make_group(admin: User, name: str, *members: User) -> str:
    """Make a group with these members; return the path of its routes."""
    form = {"name": name, "description": "tests"}
    group = await admin.call("POST", "/api/v1/groups/create", form)
    path = f"/api/v1/groups/id/{group['id']}"
    ids = {"user_ids": [member.id for member in members]}
    await admin.call("POST", f"{path}/users/add", ids)
    return path


@asynccontextmanager
async def new_user(admin: User) -> AsyncIterator[User]:
    address = f"{uuid4().hex}@example.com"
    async with await admin.add_user(address, "stranger") as added:
        yield added


@asynccontextmanager
async def settings_changed(
    admin: User, path: str, changes: Json, *, update: str = ""
) -> AsyncIterator[None]:
    """Other settings of the server for a while.

    `update` is what the path of the change has after that of the settings.
    """
    before = await admin.call("GET", path)
    await admin.call("POST", path + update, {**before, **changes})
    try:
        yield
    finally:
        await admin.call("POST", path + update, before)


@asynccontextmanager
async def permissions(admin: User, kind: str, **changes: bool) -> AsyncIterator[None]:
    """Other permissions of all users for a while."""
    before = await admin.call("GET", PERMISSIONS)
    changed = deepcopy(before)
    changed[kind] |= changes
    await admin.call("POST", PERMISSIONS, changed)
    try:
        yield
    finally:
        await admin.call("POST", PERMISSIONS, before)
