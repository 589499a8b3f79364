"""An embedding engine on this machine, for the retrieval of Open WebUI.

    async with Embeddings() as engine, OpenWebUI(env=engine.environment) as server: ...

Texts are alike if they share words: enough for a search to find the right passage.
"""

import math
import re
import zlib
from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer

DIMENSIONS = 1024
_SHORTEST_WORD = 5
"""Letters; shorter words say nothing about a text."""


class Embeddings:
    """Answers `/embeddings` as OpenAI does."""

    def __init__(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/embeddings", self._embed)
        self._server = TestServer(app)
        self.texts: list[str] = []
        """What was embedded, in its order."""

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a server that uses this engine, and small passages."""
        return {
            "USE_SLIM_DOCKER": "false",  # which has no vector store of its own
            "VECTOR_DB": "chroma",
            "ANONYMIZED_TELEMETRY": "false",
            "RAG_EMBEDDING_ENGINE": "openai",
            "RAG_EMBEDDING_MODEL": "text-embedding-3-small",
            "RAG_OPENAI_API_BASE_URL": str(self._server.make_url("/v1")),
            "RAG_OPENAI_API_KEY": "sk-embeddings",
            "CHUNK_SIZE": "200",
            "CHUNK_OVERLAP": "0",
            "CHUNK_MIN_SIZE_TARGET": "0",
            "RAG_TOP_K": "1",
            "RAG_EMBEDDING_BATCH_SIZE": "100",
            "ENABLE_RETRIEVAL_QUERY_GENERATION": "false",  # the question is the query
        }

    async def _embed(self, request: web.Request) -> web.Response:
        given = (await request.json())["input"]
        texts = [given] if isinstance(given, str) else given
        self.texts += texts
        rows = [
            {"object": "embedding", "index": index, "embedding": vector_of(text)}
            for index, text in enumerate(texts)
        ]
        return web.json_response({"object": "list", "data": rows})


def vector_of(text: str) -> list[float]:
    """Return the direction of a text: its words, each at a place of its own."""
    weights = [0.0] * DIMENSIONS
    # All texts have something in common, as with real models: an approximate search goes
    # from neighbor to neighbor, and would be lost among texts with nothing in common.
    weights[0] = 0.3
    for word in re.findall(r"\w+", text.lower()):
        if len(word) >= _SHORTEST_WORD:
            weights[zlib.crc32(word.encode()) % DIMENSIONS] = 1.0
    length = math.hypot(*weights)
    return [weight / length for weight in weights]
