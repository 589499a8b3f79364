"""Open WebUI's Image is on, and no tool for images is offered."""

from typing import Any

import pytest

from calls.sample import MODEL, call_of, chat, host_context
from owui_manifold.call.context import Caller, CheckedCall
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
    **valves: Any,
) -> CheckedCall:
    """Somebody asks for a picture."""
    given = {"user_id": "user-1", "chat_id": "chat-1", "message_id": "m-1"}
    who = Caller(MODEL, **{**given, **(caller or {})})
    metadata = {
        "params": {"function_calling": way},
        "features": {"image_generation": image},
    }
    context = host_context({}, metadata=metadata)
    settings = Valves(API_KEY="sk-1", **valves)
    return call_of({**chat("Draw"), **(body or {})}, settings, who, host=context)


async def notices_for(call: CheckedCall) -> list[str]:
    """What is shown above the answer."""
    return await notices_of(await build_chat_request(call))


@pytest.mark.parametrize("admin", [True, False])
async def test_answer_says_where_images_are_turned_on(admin: bool) -> None:
    """Once in each chat, and in the log; the request is as without the switch."""
    call = asking(caller={"is_admin": admin})
    later = asking(caller={"chat_id": "chat-2"})
    later = later._replace(capabilities=call.capabilities)

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
