"""The demo on a server of one's own: what it needs, what it says, what it sends."""

import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from demo import choose_own_server, choose_upstream
from demo_options import read_demo_options
from demo_secrets import PASSWORD, demo_secrets
from demo_server import describe_server
from hosts.servers.pipelines_server import PipelinesServer

URL = "http://127.0.0.1:9/v1"
# Of llama.cpp b10434, shortened.
LISTED = b'{"object":"list","data":[{"id":"smollm2","meta":{"n_ctx":8192}}]}'


@contextmanager
def server_that_lists(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.extend([self.path, str(self.headers.get("Authorization"))])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"--server {URL}", "given together"),
        ("--model smollm2", "given together"),
        ("--server localhost:8080 --model smollm2", "no address"),
        (f"--server {URL} --model smollm2 --tour", "not for --server"),
        (f"--server {URL} --model smollm2 --check", "not for --server"),
        (f"--server {URL} --model smollm2", f"No server answers at {URL}"),
        ("--port 99999", "'99999' is no port: 1 to 65535"),
        (f"--keep-data {__file__}/chats", "is a file: a folder is needed"),
        ("--tour", "only the simulator understands"),
        ("--check --tour", "leave out --tour"),
    ],
)
def test_options_that_do_not_fit_end_with_a_sentence(
    options: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with pytest.raises(SystemExit):
        read_demo_options(options.split())

    assert words in capsys.readouterr().err


def test_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with server_that_lists(200, LISTED) as (url, _), pytest.raises(SystemExit):
        read_demo_options(["--port", url.split(":")[2].removesuffix("/v1")])

    assert "is in use" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["", "/", "/responses"])
def test_start_says_what_does_not_work(suffix: str) -> None:
    with server_that_lists(200, LISTED) as (url, seen):
        known = describe_server(url + suffix, "smollm2")
        other = describe_server(url + suffix, "qwen3")

    assert seen == ["/v1/models", "None"] * 2
    assert "web search" in known
    assert "does not list" not in known
    assert "it lists smollm2" in other


@pytest.mark.parametrize(
    ("status", "body"), [(404, b"{}"), (200, b"no json"), (200, b"[]")]
)
def test_server_without_a_list_is_no_error(status: int, body: bytes) -> None:
    with server_that_lists(status, body) as (url, _):
        message = describe_server(url, "smollm2")

    assert message.startswith(f"The pipe talks to smollm2 at {url}")
    assert "does not list" not in message


def test_key_of_openai_stays_at_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the demo may have one."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")

    with server_that_lists(200, LISTED) as (url, _):
        upstream = choose_own_server(url, "smollm2")

    assert "sk-of-openai" not in str(upstream)
    assert upstream.environment["HTTPS_PROXY"] == "http://proxy:3128"
    assert upstream.simulator is None
    assert upstream.valves["BASE_URL"] == url
    assert upstream.valves["MODEL_ID"] == "smollm2"


def test_each_demo_has_secrets_of_its_own(tmp_path: Path) -> None:
    """No web page knows them; a kept folder has accounts in it, and keeps them."""
    first = demo_secrets(None)
    kept = demo_secrets(tmp_path / "kept")

    assert len(first[PASSWORD]) == 16
    assert first != demo_secrets(None)
    assert kept == demo_secrets(tmp_path / "kept") != first
    [file] = (tmp_path / "kept").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert PipelinesServer().token != PipelinesServer().token


@pytest.mark.asyncio
async def test_key_of_the_environment_leads_to_its_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It reaches the pipe through the environment, and is in no valve."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", URL)

    async with AsyncExitStack() as running:
        upstream = await choose_upstream(running)

    assert "OPENAI_API_KEY is set" in upstream.message
    assert URL in upstream.message
    assert upstream.environment["OPENAI_API_KEY"] == "sk-of-openai"
    assert upstream.simulator is None
    assert upstream.valves["BASE_URL"] == URL
    assert "sk-of-openai" not in str(upstream.valves)
