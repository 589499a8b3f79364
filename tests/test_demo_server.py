"""The demo on a server of one's own: what it needs, what it says, what it sends."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from demo import choose_own_server, choose_upstream
from demo_options import read_demo_options
from demo_server import describe_server

URL = "http://127.0.0.1:9/v1"
# Of llama.cpp b10434, shortened.
LISTED = b'{"object":"list","data":[{"id":"smollm2","meta":{"n_ctx":8192}}]}'


@contextmanager
def server_that_lists(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server's address, and the paths and keys that arrive there."""
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
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--server", URL], "given together"),
        (["--model", "smollm2"], "given together"),
        (["--server", "localhost:8080", "--model", "smollm2"], "no address"),
        (["--server", URL, "--model", "smollm2", "--tour"], "not for --server"),
        (["--server", URL, "--model", "smollm2", "--check"], "not for --server"),
    ],
)
def test_options_that_do_not_fit_end_with_a_sentence(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They end it before anything is started."""
    with pytest.raises(SystemExit):
        read_demo_options([*arguments])

    assert words in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["", "/", "/responses"])
def test_start_says_what_does_not_work(suffix: str) -> None:
    """And whether the server has the model."""
    with server_that_lists(200, LISTED) as (url, seen):
        known = describe_server(url + suffix, "smollm2")
        other = describe_server(url + suffix, "qwen3")

    assert seen == ["/v1/models", "None"] * 2
    assert "web search" in known
    assert "does not list" not in known
    assert "it lists smollm2" in other


@pytest.mark.parametrize(
    ("status", "body"), [(404, b"{}"), (200, b"no json"), (200, b"[]"), (200, b"{}")]
)
def test_server_without_a_list_is_no_error(status: int, body: bytes) -> None:
    with server_that_lists(status, body) as (url, _):
        message = describe_server(url, "smollm2")

    assert message.startswith(f"The pipe talks to smollm2 at {url}")
    assert "does not list" not in message


def test_server_that_is_not_there_is_named() -> None:
    with pytest.raises(OSError, match=r"No server answers at http://127.0.0.1:9/v1"):
        describe_server(URL, "smollm2")


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
