"""What a run makes is stored before it is shown."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from calls.sample import MODEL, SAVED, call_of, chat, host_context, valves_for
from openai_responses.loop.events import RunDone
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemDone, PartialImage
from owui_chat.events import AnswerEvent, Marker
from owui_chat.render.completions import ChunkRenderer
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.records import read_records
from owui_manifold.call.context import Caller
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import Prepared
from owui_manifold.run.answer import answer_events
from runs.transcripts import transcript
from simulator import Simulator
from simulator.files import TABLE, draw_picture
from stand_in.host import StandInHost, host_request
from stand_in.signing import SIGN
from upstream.server import Answerer, Upstream, in_one_piece, replying

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
ON = {"ENABLE_IMAGE_GENERATION": True, "ENABLE_CODE_INTERPRETER": True}
TEMPORARY = Caller(MODEL, "user-1", "temporary:1", "m-1", streams=True)
IN_CHANNEL = Caller(MODEL, "user-1", "channel:talk", "m-1", streams=True)
PLAIN = Caller(MODEL, "user-1", streams=True)
AT_ONCE = Caller(MODEL, "user-1", streams=False)
FIRST = draw_picture(200)


@dataclass(eq=False)
class Desk:
    """Somebody who asks for pictures and files, and what the host stores then."""

    sim: Simulator
    host: StandInHost
    connections: Connections

    @property
    def files(self) -> list[Any]:
        return [*self.host.files.rows.values()]

    async def prepared(
        self, text: str, caller: Caller = SAVED, **valves: Any
    ) -> Prepared:
        """The request for an answer to `text`."""
        context = host_context(request=host_request())
        given = valves_for(self.sim, **{**ON, **valves})
        return await build_chat_request(
            call_of(chat(text), given, caller, host=context)
        )

    async def answer(self, prepared: Prepared) -> list[AnswerEvent]:
        return [event async for event in answer_events(prepared, self.connections)]

    async def ask(
        self, text: str, caller: Caller = SAVED, **valves: Any
    ) -> list[AnswerEvent]:
        return await self.answer(await self.prepared(text, caller, **valves))

    async def ask_server(
        self, caller: Caller = SAVED, **answers: Answerer
    ) -> list[AnswerEvent]:
        """What an answer tells whose server answers each method like this."""

        async def answer(request: web.Request) -> web.StreamResponse:
            return await answers[request.method](request)

        async with Upstream(answer) as upstream:
            return await self.ask("Count.", caller, BASE_URL=upstream.base_url)

    async def ask_for_file(
        self, stream: bytes, content: bytes, status: int = 200, kind: str = "text/csv"
    ) -> list[AnswerEvent]:
        """What a recorded answer with code tells, if its file is fetched like this."""
        return await self.ask_server(
            POST=replying(stream, content_type="text/event-stream"),
            GET=replying(content, status, kind),
        )

    async def ask_for_image(
        self, result: object, caller: Caller = SAVED, **fields: Any
    ) -> list[AnswerEvent]:
        """What an answer tells in which a server gives this as an image."""
        call = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
        said = saying("There.")
        return await self.ask_server(
            caller, POST=in_one_piece({**call, "result": result, **fields}, said)
        )


@pytest.fixture
def desk(sim: Simulator, host: StandInHost, connections: Connections) -> Desk:
    return Desk(sim, host, connections)


def saying(text: str, *annotations: Json) -> Json:
    part = {"type": "output_text", "text": text, "annotations": annotations}
    return {"type": "message", "role": "assistant", "id": "msg_1", "content": [part]}


def cards(events: list[AnswerEvent]) -> list[Any]:
    return [e.card for e in events if isinstance(e, ItemDone) and e.card]


async def test_picture_is_the_users_file_and_kept_by_its_id(desk: Desk) -> None:
    """Linked with the message, and without its bytes in the chat."""
    events = await desk.ask("sim:draw")

    (card,) = cards(events)
    [row] = desk.files
    assert desk.host.files.content(row.id) == base64.b64decode(FIRST)
    assert (row.user_id, row.filename) == ("user-1", "image.png")
    assert card["files"] == [
        {
            "type": "image",
            "id": row.id,
            "url": f"/api/v1/files/{row.id}/content",
            "name": "image.png",
            "content_type": "image/png",
        }
    ]
    assert desk.host.chats.links == [("chat-1", "m-1", row.id, "user-1")]
    (record,) = read_records(desk.host.kept, SIGN).values()
    assert record.payload[1] == {
        "type": "image_generation_call",
        "output_format": "png",
        "stored": row.id,
    }


async def test_file_of_a_channel_is_for_all_its_members(desk: Desk) -> None:
    """A link in the text is all that they have: no event names the file."""
    await desk.ask("sim:count", IN_CHANNEL)

    assert desk.host.files.in_channels == [("talk", id) for id in desk.host.files.rows]
    assert desk.host.chats.links == []


async def test_without_a_request_of_the_host_nothing_can_be_stored(desk: Desk) -> None:
    context = host_context(request=None)
    call = call_of(chat("sim:draw"), valves_for(desk.sim, **ON), SAVED, host=context)

    events = await desk.answer(await build_chat_request(call))

    assert cards(events) == []
    assert desk.files == []


async def test_temporary_chat_stores_without_a_link(desk: Desk) -> None:
    """And its page, which would add them up, gets no sketches."""
    events = await desk.ask("sim:draw", TEMPORARY)

    assert len(desk.files) == 1
    assert desk.host.chats.links == []
    assert not [event for event in events if isinstance(event, PartialImage)]


async def test_refused_picture_is_reported_and_not_kept(desk: Desk) -> None:
    desk.host.files.most_bytes = 10

    events = await desk.ask("sim:draw")

    (card,) = cards(events)
    assert list(card) == ["notes"]
    assert "could not be stored" in card["notes"][0]
    kept = [r.payload for r in read_records(desk.host.kept, SIGN).values()]
    assert [item["type"] for item in kept[0]] == ["reasoning", "message"]


async def test_files_of_code_are_fetched_and_linked(desk: Desk) -> None:
    events = await desk.ask("sim:count")

    (card,) = cards(events)
    table, chart = desk.files
    assert desk.host.files.content(table.id) == TABLE
    assert table.meta["content_type"] == "text/csv"
    url = f"/api/v1/files/{table.id}/content"
    assert card["links"] == {"sandbox:/mnt/data/people.csv": url}
    assert [file["id"] for file in card["files"]] == [chart.id]
    assert "notes" not in card


async def test_picture_in_the_output_of_code_is_stored(desk: Desk) -> None:
    events = await desk.ask("sim:plot")

    (card,) = cards(events)
    [row] = desk.files
    assert [file["id"] for file in card["files"]] == [row.id]
    assert "base64" not in str(desk.host.kept)


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"{}", 500, "could not be fetched from where the code ran"),
        (b"{}", 404, "could not be fetched: the container"),
        (bytes(33 * 1024**2), 200, "larger than 32 MB"),
        (bytes(20_000), 200, "could not be stored in Open WebUI"),
        (b'{\n "error": {"message": "No."}}', 200, "from where the code ran"),
    ],
    ids=["broken", "expired", "large", "refused by the host", "an error"],
)
async def test_failed_download_leaves_a_note(
    content: bytes, status: int, sentence: str, desk: Desk
) -> None:
    stream = transcript("count-late")
    kind = "application/octet-stream"
    events = await desk.ask_for_file(stream, content, status, kind)

    (card,) = cards(events)
    (note,) = card["notes"]
    assert note.startswith("*people.csv")
    assert sentence in note


@pytest.mark.parametrize("is_refused", [False, True])
async def test_chart_that_is_also_cited_is_stored_and_shown_once(
    is_refused: bool, desk: Desk
) -> None:
    desk.host.files.most_bytes = 10 if is_refused else 10_000
    cited = transcript("count").replace(b"people.csv", b"chart1.png")
    url = f"data:image/png;base64,{draw_picture(90)}"
    logs = json.dumps({"type": "logs", "logs": "14400000\n"}, separators=(",", ":"))
    image = json.dumps({"type": "image", "url": url}, separators=(",", ":"))
    stream = cited.replace(logs.encode(), image.encode())
    picture = base64.b64decode(draw_picture(90))
    events = await desk.ask_for_file(stream, picture, kind="image/png")

    code, message = cards(events)
    if is_refused:
        assert desk.files == []
        assert code == {
            "notes": [
                "The image could not be stored in Open WebUI, for example because of "
                "its size."
            ]
        }
        assert message["notes"][0].startswith("*chart1.png could not be stored")
        return
    [row] = desk.files
    assert [file["id"] for file in code["files"]] == [row.id]
    assert "files" not in message
    assert set(message["links"]) == {"sandbox:/mnt/data/chart1.png"}


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("report.html.gz", "report.html.gz.bin"),
        ("plot.svg", "plot.svg.bin"),
        ("", "file.bin"),
        ("a.htm" + ".htm" * 9_000 + "~x", ("a.htm" + ".htm" * 9_000)[:180]),
    ],
    ids=["gz", "svg", "nameless", "long"],
)
async def test_active_content_is_stored_as_a_download(
    name: str, stored: str, desk: Desk
) -> None:
    """Open WebUI would show an administrator's in its own origin."""
    stream = transcript("count").replace(b"people.csv", name.encode())
    events = await desk.ask_for_file(stream, b"<script>", kind="text/html")

    [row] = desk.files
    assert row.filename.startswith(stored)
    assert row.filename.endswith(".bin")
    assert len(row.filename) <= 204
    assert row.meta["content_type"] == "application/octet-stream"
    (card,) = cards(events)
    if name:
        assert f"sandbox:/mnt/data/{name}" in card["links"]
    else:
        assert card["notes"][0].startswith("[file](")


@pytest.mark.parametrize(
    ("table", "method"), [("users", "get_user_by_id"), ("chats", "insert_chat_files")]
)
async def test_database_that_is_locked_costs_the_picture_alone(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    table: str,
    method: str,
    desk: Desk,
) -> None:
    """The answer goes on to its end, and says what it lacks; the log says why."""

    async def locked(*_: Any, **__: Any) -> Any:
        raise RuntimeError("database is locked")

    monkeypatch.setattr(getattr(desk.host, table), method, locked)
    events = await desk.ask("sim:draw")

    (card,) = cards(events)
    assert "could not be stored" in card["notes"][0]
    (ended,) = [event for event in events if isinstance(event, RunDone)]
    assert ended.ending.kind == "completed"
    assert "no file stored: RuntimeError at line" in caplog.text


@pytest.mark.parametrize("user_id", ["", "gone@example.com"], ids=["nobody", "gone"])
async def test_file_that_nobody_would_own_is_not_stored(
    user_id: str, desk: Desk
) -> None:
    """The host names no user, or one whom it no longer has."""
    caller = SAVED._replace(user_id=user_id)
    events = await desk.ask("sim:count", caller)

    assert desk.files == []
    (card,) = cards(events)
    assert "could not be stored" in card["notes"][0]


async def test_file_without_a_link_gets_one_below_the_text(desk: Desk) -> None:
    """The model cited it and named no address."""
    address = b"[people.csv](sandbox:/mnt/data/people.csv)"
    stream = transcript("count-late").replace(address, b"people.csv")
    events = await desk.ask_for_file(stream, TABLE)

    [row] = desk.files
    url = f"/api/v1/files/{row.id}/content"
    assert cards(events) == [{"notes": [f"[people.csv]({url})"]}]


@pytest.mark.parametrize("status", [200, 404])
async def test_name_of_a_file_draws_nothing_and_leads_nowhere(
    status: int, desk: Desk
) -> None:
    """An archive of a stranger has it; without slashes the page fetches it, too."""
    address = b"[people.csv](sandbox:/mnt/data/people.csv)"
    stream = transcript("count-late").replace(address, b"this")
    stream = stream.replace(b"people.csv", b"![a](http:evil.example).csv")
    events = await desk.ask_for_file(stream, TABLE, status=status)

    [card] = cards(events)
    [note] = card["notes"]
    assert note.count("[") == (status == 200)
    assert "!&#91;a&#93;(http:evil.example).csv" in note


@pytest.mark.parametrize("named", [{}, {"filename": "data/"}])
async def test_file_without_a_name_gets_one(named: Json, desk: Desk) -> None:
    cited = {"type": "container_file_citation", "container_id": "c", "file_id": "f"}
    answer = in_one_piece(saying("Here.", {**cited, **named}))

    await desk.ask_server(POST=answer, GET=replying(TABLE, 200, "text/csv"))

    [row] = desk.files
    assert row.filename == "file.bin"


@pytest.mark.parametrize(
    ("text", "caller", "count"),
    [
        pytest.param("sim:count", PLAIN, 2, id="files in a stream"),
        pytest.param("sim:count", AT_ONCE, 0, id="files of a whole answer"),
        pytest.param("sim:draw", PLAIN, 0, id="a picture, which it gets itself"),
    ],
)
async def test_client_gets_files_where_their_address_can_be_told(
    text: str, caller: Caller, count: int, desk: Desk
) -> None:
    await desk.ask(text, caller)

    assert len(desk.files) == count


@pytest_asyncio.fixture
async def drawn(desk: Desk) -> str:
    """The answer's text of a chat with a picture, as the host gives it back."""
    [mark] = [e.text for e in await desk.ask("sim:draw") if isinstance(e, Marker)]
    return f"{mark}Here it is."


def pictures_in(items: list[Json]) -> list[str]:
    parts = [part for item in items for part in item.get("content") or ()]
    return [part["image_url"] for part in parts if part["type"] == "input_image"]


@pytest.mark.parametrize("user", ["user-1", "user-2"])
async def test_picture_is_replayed_only_to_its_owner(
    sim: Simulator, host: StandInHost, drawn: str, user: str
) -> None:
    """In a copy of somebody else's chat it is left out."""
    host.chats.rows["chat-1"].user_id = user
    caller = Caller(MODEL, user, "chat-1", "m-2", streams=True)

    prepared = await build_chat_request(
        call_of(chat("sim:draw", drawn, "Darker."), valves_for(sim, **ON), caller)
    )

    url = f"data:image/png;base64,{FIRST}"
    assert pictures_in(prepared.request.input) == ([url] if user == "user-1" else [])


@pytest.mark.parametrize("has_row", [True, False])
async def test_picture_whose_bytes_are_lost_is_left_out(
    sim: Simulator, host: StandInHost, drawn: str, has_row: bool
) -> None:
    (row,) = host.files.rows.values()
    host.files.lose(row.id)
    if not has_row:
        host.files.rows.clear()

    prepared = await build_chat_request(
        call_of(chat("sim:draw", drawn, "Darker."), valves_for(sim, **ON))
    )

    kinds = [item.get("role", item["type"]) for item in prepared.request.input]
    assert kinds == ["user", "reasoning", "assistant", "user"]


@pytest.mark.parametrize(("texts", "most"), [(1, 20), (15, 200)])
async def test_files_of_texts_are_limited(texts: int, most: int, desk: Desk) -> None:
    """A text can name thousands, and no one reads on meanwhile; so can many texts."""
    kind = {"type": "container_file_citation", "container_id": "cntr_1"}
    cited = [
        {**kind, "file_id": f"cfile_{number}", "filename": f"{number}.csv"}
        for number in range(25)
    ]
    fetched = list[str]()

    async def give(request: web.Request) -> web.StreamResponse:
        fetched.append(request.path)
        return await replying(b"1", 200, "text/csv")(request)

    said = [saying(f"Here {number}.", *cited) for number in range(texts)]
    await desk.ask_server(POST=in_one_piece(*said), GET=give)

    assert len(fetched) == most


def lines(events: list[AnswerEvent]) -> str:
    view = NativeRenderer(lambda: 0.0, HostedItems)
    return json.dumps([chunk for event in events for chunk in view.render(event)])


@pytest.mark.parametrize(
    ("label", "form"),
    [
        ("data:image/png", "png"),
        ("data:image/webp", "webp"),
        ("DATA:image/JPG;x=1", "jpeg"),
    ],
)
async def test_picture_in_a_data_url_is_stored(
    label: str, form: str, desk: Desk
) -> None:
    """Like one in base64, with the type that the address names."""
    url = f"{label};base64,{FIRST[:40]}\n{FIRST[40:]}"
    events = await desk.ask_for_image(url)

    (card,) = cards(events)
    [row] = desk.files
    assert desk.host.files.content(row.id) == base64.b64decode(FIRST)
    assert row.filename == f"image.{form}".replace("jpeg", "jpg")
    assert card["files"][0]["content_type"] == f"image/{form}"
    (record,) = read_records(desk.host.kept, SIGN).values()
    stored = record.payload[0]
    assert stored["stored"] == row.id
    assert stored.get("output_format", "png") == form


@pytest.mark.parametrize("caller", [SAVED, TEMPORARY])
async def test_picture_at_an_address_is_shown_from_there(
    caller: Caller, desk: Desk
) -> None:
    """This server fetches nothing, and no later turn names an address that expires."""
    async with Upstream(replying(b"secret")) as inside:
        url = f"{inside.base_url}/picture.png?signature=1"
        events = await desk.ask_for_image(url, caller)

    (card,) = cards(events)
    assert card == {"address": url}
    assert inside.requests == []
    assert desk.files == []
    assert url not in str(desk.host.kept)
    assert f"![Image](<{url}>)" in lines(events)
    assert "Image generated" in lines(events)


@pytest.mark.parametrize(
    "result",
    [
        "file:///etc/passwd",
        "data:text/html;base64,AA",
        "data:image/png;base64,AA!AA=",
        {"url": "x"},
        "no!",
    ],
)
async def test_picture_that_cannot_be_read_says_so(result: object, desk: Desk) -> None:
    """There is no line that it was generated."""
    events = await desk.ask_for_image(result)

    (card,) = cards(events)
    assert card == {"notes": ["The model's server gave an image that cannot be read."]}
    assert desk.files == []
    assert "that cannot be read" in lines(events)
    assert "Image generated" not in lines(events)


@pytest.mark.parametrize(
    ("result", "images"),
    [
        ("https://x.example/1.png", 1),
        ("data:image/png;base64,AAAA", 1),
        ("data:image/gif;base64,AAAA", 1),  # a model could not read it
        ("file:///etc/passwd", 0),
    ],
)
async def test_caller_over_http_gets_what_is_a_picture(
    result: str, images: int, desk: Desk
) -> None:
    """An address on the web or data is passed on; a path on the server is not."""
    events = await desk.ask_for_image(result, PLAIN)
    view = ChunkRenderer("c", 1, "m")
    chunks = [chunk for event in events for chunk in view.render(event)]

    assert json.dumps(chunks).count(result) == images
