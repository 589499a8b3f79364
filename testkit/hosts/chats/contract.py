"""What the pipe counts on in a chat of Open WebUI: events, stored forms, what comes back.

Each supported version takes the same walk. What it asks is what a version could change:
how an answer is streamed and stored, how rounds, files and errors are written, which
routes of the host reach the pipe. What the pipe does with it is shown without a host.
"""

import base64
import json
from dataclasses import dataclass

from hosts.people.client import Json, OpenWebUIError
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User, download
from hosts.sent import (
    assert_each_continues,
    chat_bodies,
    host_items,
    is_task,
    outputs,
    stored_value,
    stripped,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE, PLUGINS, valves_changed
from openai_responses.items import message_text
from simulator import Simulator
from simulator.files import draw_picture

FILTERS = ("editing_filter", "choices_filter")
"""One changes what it finds in an event, one reads what Chat Completions have."""


@dataclass(frozen=True)
class Asked:
    """Who asks, where, and what is behind it."""

    admin: User
    tab: Tab
    server: OpenWebUI
    simulator: Simulator


async def walk(asked: Asked) -> None:
    """Take every step; each leaves the simulator's record empty."""
    for step in STEPS:
        asked.simulator.forget()
        await step(asked)


async def _answer_streams_and_is_stored(asked: Asked) -> None:
    """Native events; encrypted reasoning lies in the answer's output and nowhere else."""
    tab = asked.tab
    turn = await tab.send(MODEL, "sim:chat hello")
    for word in ("commentary", "chat"):
        later = await tab.send(MODEL, f"sim:{word} again", chat_id=turn.chat_id)
        assert turn.error is later.error is None
    native = {e["data"].get("type") for e in turn.of_type("response:completion")}
    assert "response.reasoning_summary_text.delta" in native
    assert "response.output_text.delta" in native
    assert_each_continues(asked.simulator)
    chat = asked.server.stored_chat(turn.chat_id)
    stored = chat["history"]["messages"][turn.message_id]
    assert stored["done"]
    assert [item["type"] for item in host_items(stored)] == ["reasoning", "message"]
    records = stored_value(chat, turn.message_id)["items"].values()
    kept = [item for record in records for item in record["payload"]]
    assert stripped(outputs(asked.simulator)[0][0]) in kept
    for message in chat["history"]["messages"].values():
        if message["role"] == "assistant":
            message["output"] = host_items(message)
    assert "encrypted_content" not in json.dumps(chat)
    assert not [key for key in chat if key.startswith(PIPE)]


async def _rounds_are_cards(asked: Asked) -> None:
    """Stored as Open WebUI stores them, and nothing of that once more in our records."""
    body = calling("get_weather", "toolkit")
    turn = await asked.tab.send(MODEL, "sim:tool weather?", body=body)
    later = await asked.tab.send(MODEL, "sim:chat thanks", chat_id=turn.chat_id)

    assert turn.error is later.error is None
    output = host_items(await asked.tab.message(turn))
    assert [item["type"] for item in output] == [
        *("reasoning", "function_call", "function_call_output"),
        *("reasoning", "message"),
    ]
    assert output[1]["status"] == "completed"
    assert_each_continues(asked.simulator)
    assert tool_outputs(chat_bodies(asked.simulator)[-1])[0].startswith("Sunny in")
    chat = asked.server.stored_chat(turn.chat_id)
    ours = json.dumps(stored_value(chat, turn.message_id))
    assert "function_call_output" not in ours
    for words in ("Sunny in", "I called"):
        assert words in json.dumps(output)
        assert words not in ours


async def _page_is_asked_about_a_call(asked: Asked) -> None:
    """In a dialog of its own, whose answer reaches the pipe."""
    tab = asked.tab
    body = calling("get_weather", "toolkit")
    async with valves_changed(asked.admin, PIPE, TOOL_APPROVAL="get_weather=ask"):
        for answer, words in ((True, "Sunny in"), (False, "did not approve")):
            questions = tab.answer_questions(answer)
            turn = await tab.send(MODEL, "sim:tool weather?", body=body)
            assert turn.error is None
            assert [q["tool_call"]["name"] for q in questions] == ["get_weather"]
            assert words in tool_outputs(chat_bodies(asked.simulator)[-1])[-1]
    tab.answer = lambda _: None


async def _answers_beside_each_other_have_items_of_their_own(asked: Asked) -> None:
    """Another answer to the same message sees what was before it alone."""
    tab = asked.tab
    first = await tab.send(MODEL, "sim:short hello")
    other = await tab.regenerate(MODEL, first)

    bodies = chat_bodies(asked.simulator)
    assert bodies[0]["input"] == bodies[1]["input"]
    chat = await tab.user.chat(first.chat_id)
    assert all(stored_value(chat, t.message_id)["items"] for t in (first, other))


async def _stop_keeps_the_text(asked: Asked) -> None:
    """The upstream work ends, what was shown stays, and the chat goes on."""
    tab = asked.tab
    turn = await tab.begin(MODEL, "sim:slow,delay=10")
    await turn.until(lambda seen: len(seen.text) > 60)
    await tab.stop(turn)
    await asked.simulator.closed_early()
    await tab.settle(turn)

    stored = await tab.message(turn)
    assert len(stored["content"]) > 60
    assert not stored.get("error")
    after = await tab.send(MODEL, "sim:chat go on", chat_id=turn.chat_id)
    assert "I was given 1 reasoning item back" in after.text


async def _whole_answers_are_stored(asked: Asked) -> None:
    """The page can ask without a stream; the next turn gets what came."""
    tab = asked.tab
    whole: Json = {"body": {"stream": False}}
    first = await tab.send(MODEL, "hello", **whole)
    await tab.send(MODEL, "again", chat_id=first.chat_id, **whole)

    stored = await tab.message(first)
    assert [item["type"] for item in host_items(stored)] == ["reasoning", "message"]
    bodies = chat_bodies(asked.simulator)
    assert [body["stream"] for body in bodies] == [False, False]
    assert stripped(outputs(asked.simulator)[0][0]) in bodies[1]["input"]


async def _temporary_chats_have_no_row(asked: Asked) -> None:
    """They get the same events, and nothing is stored."""
    before = len(await asked.tab.user.call("GET", "/api/v1/chats/"))
    turn = await asked.tab.send(MODEL, "hello", temporary=[])

    assert "This is turn 1." in turn.text
    assert "[openai_responses" not in turn.text
    assert len(await asked.tab.user.call("GET", "/api/v1/chats/")) == before


async def _tasks_are_known(asked: Asked) -> None:
    """A title is asked for in a small request, and read as the host reads it."""
    tasks = {"title_generation": True, "tags_generation": True}
    turn = await asked.tab.send(MODEL, "hello", background_tasks=tasks)

    requests = asked.simulator.requests
    jobs = [request.body for request in requests if is_task(request)]
    [chat] = chat_bodies(asked.simulator)
    assert "reasoning.encrypted_content" in chat["include"]
    assert jobs
    for job in jobs:
        assert job["stream"] is False
        assert not {"tools", "include"} & job.keys()
    row = await asked.tab.user.call("GET", f"/api/v1/chats/{turn.chat_id}")
    assert row["title"] == "Talking to a Stand-in"


async def _merged_answers_are_text(asked: Asked) -> None:
    """The host asks for them in a stream of its own."""
    path = "/api/v1/tasks/moa/completions"
    body = {"model": MODEL, "prompt": "sim:short", "responses": [], "stream": True}
    deltas = [
        choice["delta"]
        async for chunk in asked.tab.user.stream(path, body)
        for choice in chunk.get("choices", ())
    ]
    assert "".join(delta.get("content") or "" for delta in deltas).strip()


async def _failures_are_the_messages_error(asked: Asked) -> None:
    """What the page shows is what is stored; what can be continued has no error."""
    tab = asked.tab
    async with valves_changed(asked.admin, PIPE, API_KEY=""):
        refused = await tab.send(MODEL, "sim:short hello")
    broken = await tab.send(MODEL, "sim:failed")
    cut = await tab.send(MODEL, "sim:chat,cut=60")

    stored = [await tab.message(turn) for turn in (refused, broken, cut)]
    assert stored[0]["error"]["content"] == refused.error
    assert "no API key yet" in refused.error["message"]
    assert "This is turn 1." in stored[1]["content"]
    assert stored[1]["error"]
    assert "This is turn 1." in stored[2]["content"]
    assert "error" not in stored[2]
    assert stored[2]["statusHistory"][-1]["description"]


async def _pictures_and_sources_are_the_messages(asked: Asked) -> None:
    """A picture is a file of the user, which comes back; sources are listed."""
    tab = asked.tab
    async with valves_changed(asked.admin, PIPE, ENABLE_IMAGE_GENERATION=True):
        drawn = await tab.send(MODEL, "sim:draw a disc")
        await tab.send(MODEL, "sim:short darker", chat_id=drawn.chat_id)
    [file] = (await tab.message(drawn))["files"]
    cited = await tab.send(MODEL, "sim:annotations hello")

    picture = draw_picture(200)
    wanted = (200, base64.b64decode(picture))
    assert await download(tab.user, file["url"]) == wanted
    assert picture in json.dumps(chat_bodies(asked.simulator)[1]["input"])
    names = [s["source"]["name"] for s in (await tab.message(cited))["sources"]]
    assert "The chronicle" in names


async def _attached_documents_reach_the_pipe(asked: Asked) -> None:
    """Whole, where the chat asks for it: the host's files, and who may read them."""
    user = asked.tab.user
    content = b"Bern,3\n"
    files = [await attach(user, "rain.csv", content, "text/csv")]
    async with valves_changed(asked.admin, PIPE, ENABLE_CODE_INTERPRETER=True):
        turn = await asked.tab.send(
            MODEL, "sim:count the rain", files=files, body={"files": files}
        )

    assert turn.error is None
    [uploaded] = asked.simulator.uploads.files.values()
    assert (uploaded.name, uploaded.content) == ("rain.csv", content)


async def _filters_read_the_stream(asked: Asked) -> None:
    """The host shows and stores the native text; what else is in an event it ignores."""
    tab, admin = asked.tab, asked.admin
    plain = await tab.send(MODEL, "sim:list hello")
    [text] = await _texts(tab, plain)
    for name in FILTERS:
        await admin.install_function(name, (PLUGINS / f"{name}.py").read_text())
        try:
            await admin.set_global(name, True)
            filtered = await tab.send(MODEL, "sim:list hello")
        finally:
            await admin.delete_function(name)

        assert filtered.text.count("- three") == plain.text.count("- three") == 1
        assert await _texts(tab, filtered) == [text], name


async def _texts(tab: Tab, turn: Turn) -> list[str]:
    stored = host_items(await tab.message(turn))
    return [message_text(item) for item in stored if item["type"] == "message"]


async def _programs_get_chunks_and_statuses(asked: Asked) -> None:
    """Over plain HTTP: one end, a status where it failed, and Anthropic's form."""
    user = asked.tab.user
    chunks = [chunk async for chunk in user.chunks(MODEL, "sim:chat hello")]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    reasons = [choice["finish_reason"] for choice in choices]
    assert [reason for reason in reasons if reason] == ["stop"]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text.endswith("That is all for now.")
    status = 0
    try:
        await user.complete(MODEL, "sim:quota")
    except OpenWebUIError as error:
        status = error.status
    assert status == 429
    messages = [{"role": "user", "content": "sim:short"}]
    body = {"model": MODEL, "max_tokens": 100, "messages": messages}
    answer = await user.call("POST", "/api/v1/messages", body)
    assert answer["stop_reason"] == "end_turn"


STEPS = (
    _answer_streams_and_is_stored,
    _rounds_are_cards,
    _page_is_asked_about_a_call,
    _answers_beside_each_other_have_items_of_their_own,
    _stop_keeps_the_text,
    _whole_answers_are_stored,
    _temporary_chats_have_no_row,
    _tasks_are_known,
    _merged_answers_are_text,
    _failures_are_the_messages_error,
    _pictures_and_sources_are_the_messages,
    _attached_documents_reach_the_pipe,
    _filters_read_the_stream,
    _programs_get_chunks_and_statuses,
)
