"""
title: Log tap
version: 0.1.0

Writes every line of our pipe's logger into a file next to the server's database.

Open WebUI itself drops what is below its GLOBAL_LOG_LEVEL; at DEBUG it would write
prompts of its own accord, so that no one could tell who wrote them.
"""

import logging
import os
from pathlib import Path

TAPPED = "openai_responses_manifold"
FILE = "pipe.log"


class Pipe:
    """A pipe without an answer: loading it is what counts."""

    def __init__(self) -> None:
        """Tap the logger once, however often the host loads this file."""
        path = Path(os.environ["DATA_DIR"]) / FILE
        logger = logging.getLogger(TAPPED)
        if not any(
            isinstance(handler, logging.FileHandler) for handler in logger.handlers
        ):
            tap = logging.FileHandler(path, encoding="utf-8")
            tap.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
            logger.addHandler(tap)

    async def pipe(self, body: dict[str, object]) -> str:
        return ""
