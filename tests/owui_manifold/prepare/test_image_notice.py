"""Where people learn how images are turned on: from the model, and above the answer."""

from dataclasses import replace
from typing import Any

import pytest

from calls.sample import MODEL, call_of, chat, host_context
from openai_responses.items import message_text
from owui_controls.switch import CONTROLS_KEY, CONTROLS_VERSION
from owui_manifold.call.context import Call, Caller
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.present.notices import notices_of

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
HOSTS_OWN = {"type": "function", "function": {"name": "generate_image"}}
SWITCH = "Images by OpenAI"


def asking(
    *,
    image: bool = True,
    way: str | None = "native",
    body: Json | None = None,
    caller: Json | None = None,
    filters: tuple[str, ...] = (),
    is_on: bool = False,
    **valves: Any,
) -> Call:
    """Somebody asks for a picture."""
    given = {"user_id": "user-1", "chat_id": "chat-1", "message_id": "m-1"}
    who = Caller(MODEL, **{**given, **(caller or {})})
    metadata: Json = {
        "params": {"function_calling": way},
        "features": {"image_generation": image},
        "model": {"id": MODEL, "info": {"meta": {"filterIds": [*filters]}}},
    }
    if is_on:
        metadata[CONTROLS_KEY] = {"version": CONTROLS_VERSION, "image_generation": True}
    context = host_context({}, metadata=metadata)
    settings = Valves(API_KEY="sk-1", **valves)
    return call_of({**chat("Draw"), **(body or {})}, settings, who, host=context)


async def instructions_for(call: Call) -> str:
    first = (await build_chat_request(call)).request.input[0]
    return message_text(first) if first["role"] == "developer" else ""


ATTACHED = ("openai_responses_effort", "openai_responses_images")


@pytest.mark.parametrize("system", ["", " Be brief.\n"])
async def test_model_can_say_where_images_are_turned_on(system: str) -> None:
    """The same words while the switch is on: the prompt cache goes on."""
    messages = chat("Draw")["messages"]
    if system:
        messages = [{"role": "system", "content": system}, *messages]
    body = {"messages": messages}

    told = await instructions_for(asking(filters=ATTACHED, body=body))

    assert told.startswith(f"{system}\n\n" if system else "If people ask")
    assert "turn on Images by OpenAI in the menu next to the chat input" in told
    on = asking(filters=ATTACHED, body=body, is_on=True)
    assert await instructions_for(on) == told
    assert "image_generation" in str((await build_chat_request(on)).request.tools)


@pytest.mark.parametrize(
    "settings",
    [
        {"filters": ATTACHED[:1]},
        {"ENABLE_IMAGE_GENERATION": True},
        {"USER_MAY_CHANGE": "effort"},
        {"MODEL_OVERRIDES_JSON": '{"gpt-5.6-sol": {"lacks": ["image_generation"]}}'},
        {"caller": {"chat_id": "", "message_id": ""}},  # a plain client has no page
    ],
)
async def test_model_sends_nobody_to_a_switch_that_is_not_there(settings: Json) -> None:
    """Or that has no effect."""
    assert await instructions_for(asking(**{"filters": ATTACHED, **settings})) == ""


async def test_administrators_may_always_turn_it_on() -> None:
    """Whatever users may change."""
    for show in (instructions_for, notices_for):
        admin = {"is_admin": True}
        call = asking(filters=ATTACHED, caller=admin, USER_MAY_CHANGE="effort")
        assert SWITCH in str(await show(call))


async def notices_for(call: Call) -> list[str]:
    return await notices_of(await build_chat_request(call))


@pytest.mark.parametrize("admin", [True, False])
async def test_answer_says_where_images_are_turned_on(admin: bool) -> None:
    """Once in each chat, and in the log; the request is as without the switch."""
    call = asking(caller={"is_admin": admin})
    later = asking(caller={"chat_id": "chat-2"})
    later = replace(later, memory=call.memory)

    [notice] = await notices_for(call)

    assert SWITCH in notice
    assert notice in call.log.text()
    assert await notices_for(call) == []
    assert await notices_for(later) == [notice]
    sent = (await build_chat_request(call)).request
    assert sent == (await build_chat_request(asking(image=False))).request


@pytest.mark.parametrize(
    "settings",
    [
        {"image": False},
        {"way": "legacy"},  # the host draws before it asks the model
        {"body": {"tools": [HOSTS_OWN]}},
        {"ENABLE_IMAGE_GENERATION": True},
        {"caller": {"chat_id": "", "message_id": ""}},  # a plain client has no page
    ],
)
async def test_other_chats_have_no_notice_about_images(settings: Json) -> None:
    """No image was asked for, or one can be had."""
    assert await notices_for(asking(**settings)) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"USER_MAY_CHANGE": "effort"},
        {"MODEL_OVERRIDES_JSON": '{"gpt-5.6-sol": {"lacks": ["image_generation"]}}'},
    ],
)
async def test_nobody_is_sent_to_a_switch_without_effect(settings: Json) -> None:
    """The user may not change it, or the model takes no such tool."""
    [notice] = await notices_for(asking(**settings))

    assert notice.startswith("Open WebUI's Image has no effect")
    assert SWITCH not in notice
