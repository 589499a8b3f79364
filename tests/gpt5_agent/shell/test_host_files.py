"""Files of Open WebUI over its API, without a server of it."""

import asyncio
import gzip
import json
import re
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gpt5_agent.ports import HostFileError
from gpt5_agent.shell.host_files import HostFiles
from upstream.server import free_port

pytestmark = pytest.mark.asyncio

KEY = "key-of-an-account"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

OWNER_CHECK = ("account-check.bin", "application/octet-stream", b"-")
"""What shows whose account a key is."""


Respond = Callable[[], web.Response]


class Host:
    """Keeps files as Open WebUI does, for the owner of the key.

    With `respond` it answers any call in that way.
    """

    def __init__(
        self, owner: str = "agent", status: int = 200, respond: Respond | None = None
    ) -> None:
        self.status = status
        self.owner: str | None = owner
        self.respond = respond
        self.checks: list[tuple[str, str, bytes]] = []
        self.uploads: list[tuple[str, str, bytes]] = []
        self.removed: list[str] = []
        self.paths: list[str] = []
        self.content = b"rain"

    async def answer(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        if self.respond:
            return self.respond()
        if request.headers["Authorization"] != f"Bearer {KEY}":
            return web.Response(status=401)
        if request.path.endswith("/content"):
            return web.Response(body=self.content)
        if request.method == "DELETE":
            self.removed.append(request.path)
            return web.json_response({"message": "File deleted successfully"})
        if request.method == "POST":
            assert request.query_string == "process=false"  # nor read into knowledge
            fields = await request.post()
            file = fields["file"]
            assert isinstance(file, web.FileField)
            upload = file.filename, file.content_type, file.file.read()
            is_check = upload == OWNER_CHECK
            (self.checks if is_check else self.uploads).append(upload)
        row = {"id": "f-1", "user_id": self.owner}
        return web.Response(status=self.status, text=json.dumps(row))


@asynccontextmanager
async def files_of(host: Host) -> AsyncIterator[HostFiles]:
    """Lend the files of a user at a server."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", host.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    files = HostFiles(f" {site.name}/ ", KEY, "u-1")
    try:
        yield files
    finally:
        await files.aclose()
        await runner.cleanup()
    # Nothing else is written into anybody's account, such as a note.
    assert all(path.startswith("/api/v1/files/") for path in host.paths)


async def test_file_belongs_to_who_asked() -> None:
    host = Host("u-1")
    content = b"a\r\n--b\0"
    async with files_of(host) as files:
        paths = [await files.store("a b.csv", content) for _ in range(2)]

    assert paths == ["/api/v1/files/f-1/content"] * 2
    assert host.uploads == [("a b.csv", "text/csv", content)] * 2
    assert len(host.checks) == len(host.removed) == 1


async def test_file_of_somebody_else_is_not_sent() -> None:
    """It would lie in the account of the key's owner, usually an administrator's.

    Not even until it is removed: that could fail.
    """
    host = Host()
    async with files_of(host) as files:
        for _ in range(2):
            with pytest.raises(HostFileError, match="belong to the person who asks"):
                await files.store("a.csv", b"my diary")

    assert host.uploads == []
    assert host.checks == [OWNER_CHECK]
    assert host.removed == ["/api/v1/files/f-1"]


async def test_owner_may_change_while_an_answer_runs() -> None:
    host = Host("u-1")
    async with files_of(host) as files:
        await files.store("a.csv", b"a")
        host.owner = "agent"
        with pytest.raises(HostFileError, match="belong to the person who asks"):
            await files.store("b.csv", b"b")

    assert len(host.removed) == 2


async def test_active_content_is_stored_as_a_download() -> None:
    """An administrator's HTML would be shown in the origin of Open WebUI."""
    names = ("a.html", "a.HTM", "a.xhtml", "a.svg", "a.html.gz", "a.htm.bz2", "a.rss")
    host = Host("u-1")
    async with files_of(host) as files:
        for name in names:
            await files.store(name, b"<script>")

    kind = "application/octet-stream"
    assert host.uploads == [(f"{name}.bin", kind, b"<script>") for name in names]


async def test_name_cannot_end_a_header() -> None:
    """It comes from a tool."""
    host = Host("u-1")
    async with files_of(host) as files:
        await files.store('a"\r\nX: é東.xlsx', b"")

    assert host.uploads == [("a___X: é東.xlsx", XLSX, b"")]


async def test_only_the_user_s_own_files_are_read() -> None:
    """Whoever asks names the ids, and the key may read everybody's files."""
    host = Host()
    async with files_of(host) as files:
        others = [await files.read("f-1")]
        host.owner = None
        others.append(await files.read("f-1"))
        host.owner = "u-1"
        own = await files.read("../notes/f-1?a")

    assert others == ["It belongs to someone else."] * 2
    assert own == b"rain"
    assert host.paths[-1] == "/api/v1/files/___notes_f-1_a/content"


async def test_largest_file_is_read_whole() -> None:
    """One byte more is refused (`endless`)."""
    host = Host("u-1")
    host.content = b"x" * (8 * 1024 * 1024)
    async with files_of(host) as files:
        assert await files.read("f-1") == host.content


@pytest.mark.parametrize("status", [400, 413])
async def test_refusal_is_one_sentence(status: int) -> None:
    host = Host("u-1", status)
    told = f"Open WebUI answered with HTTP {status}."
    async with files_of(host) as files:
        with pytest.raises(HostFileError, match=f"^{re.escape(told)}$"):
            await files.store("a", b"")
        assert await files.read("f-1") == told


def packed(content: bytes, encoding: str = "gzip") -> Respond:
    headers = {"Content-Encoding": encoding}
    return lambda: web.Response(body=content, headers=headers)


def redirecting(status: int) -> Respond:
    """What sends the key elsewhere."""
    return lambda: web.Response(status=status, headers={"Location": "/elsewhere"})


NO_HOST = "OPEN_WEBUI_URL is not the address of Open WebUI."


@pytest.mark.parametrize(
    ("respond", "beginning"),
    [
        (redirecting(300), "Open WebUI redirects requests (HTTP 300)"),
        (redirecting(307), "Open WebUI redirects requests (HTTP 307)"),
        (packed(b"\x1f\x9d bomb", "compress"), "Open WebUI sent a compressed answer"),
        (packed(gzip.compress(b"<html>")), NO_HOST),
        (
            lambda: web.Response(body=bytes(8 * 1024 * 1024 + 1)),
            "Open WebUI sent more than 8388608 bytes",
        ),
        (lambda: web.Response(text="<html>"), NO_HOST),
        (lambda: web.json_response({"object": "list"}), NO_HOST),
    ],
    ids=[
        *("choices", "redirection", "compressed in an unknown way", "a packed page"),
        *("endless", "another server", "another API"),
    ],
)
async def test_hostile_answer_is_not_read(respond: Respond, beginning: str) -> None:
    """The key follows no redirection, and no answer fills the memory."""
    host = Host(respond=respond)
    async with files_of(host) as files:
        assert str(await files.read("f-1")).startswith(beginning)

    assert host.paths == ["/api/v1/files/f-1"]


async def test_bomb_is_not_unpacked() -> None:
    """It is left where it is too long: a small piece of it could be anything."""
    bomb = gzip.compress(bytes(100_000_000), 1)

    async with files_of(Host(respond=packed(bomb))) as files:
        tracemalloc.start()
        told = await files.read("f-1")
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert told == "Open WebUI sent more than 8388608 bytes."
    assert peak_bytes < 30_000_000


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, bytes])
async def test_proxy_before_the_host(pack: Callable[[bytes], bytes]) -> None:
    """It packs what it likes, and has long headers of its own."""
    encoding = "deflate" if pack is zlib.compress else "gzip"
    headers = {
        "Content-Encoding": encoding,
        "Content-Security-Policy": "x" * 60_000,
        **{f"X-{number}": "x" for number in range(400)},
    }

    class BehindProxy(Host):
        async def answer(self, request: web.Request) -> web.Response:
            plain = await super().answer(request)
            assert isinstance(plain.body, bytes)
            return web.Response(body=pack(plain.body), headers=headers)

    host = BehindProxy("u-1")
    host.content = b"rain" * 1_000_000
    async with files_of(host) as files:
        assert await files.read("f-1") == host.content
        assert await files.store("a.csv", b"a") == "/api/v1/files/f-1/content"


async def test_empty_blocks_of_a_packed_file_have_a_limit() -> None:
    """They become nothing, however many there are."""
    packer = zlib.compressobj(wbits=31)
    begin = packer.compress(b"{}") + packer.flush(zlib.Z_SYNC_FLUSH)
    blocks = b"\x00\x00\x00\xff\xff" * 2_000_000

    async with files_of(Host(respond=packed(begin + blocks))) as files:
        assert "more than 8388608 bytes" in str(await files.read("f-1"))


async def test_silent_host_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt5_agent.shell.host_files._ANSWER_SECONDS", 0.05)
    has_answered = asyncio.Event()

    class SilentHost(Host):
        async def answer(self, request: web.Request) -> web.Response:
            await has_answered.wait()
            return await super().answer(request)

    async with files_of(SilentHost()) as files:
        told = await files.read("f-1")
        has_answered.set()

    assert told == "Open WebUI did not answer within 0.05 s."


async def test_host_that_is_down_is_one_sentence() -> None:
    files = HostFiles(f"http://127.0.0.1:{free_port()}", KEY, "u-1")

    assert await files.read("f-1") == (
        "Open WebUI cannot be reached, or its answer was interrupted."
    )
    await files.aclose()


@pytest.mark.parametrize(
    ("url", "key", "user", "told"),
    [
        ("", KEY, "u", "set OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY"),
        ("http://a", "", "u", "set OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY"),
        ("http://a", KEY, "", "to a person, and who asks is unknown"),
    ],
)
async def test_missing_setting_refuses_the_upload(
    url: str, key: str, user: str, told: str
) -> None:
    files = HostFiles(url, key, user)

    with pytest.raises(HostFileError, match=told):
        await files.store("a", b"")
    assert told in str(await files.read("f-1"))
