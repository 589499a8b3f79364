"""gpt-oss's own server, with a model of two rules behind it.

    python serve_gpt_oss.py PORT      within the environment of scripts/others

It imports nothing of this repository. The model writes Harmony, the format of gpt-oss,
so that the server's parser does all of its work.
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

_MESSAGE = re.compile(
    r"<\|start\|>(?P<head>.*?)<\|message\|>(?P<text>.*?)(?:<\|end\|>|<\|call\|>|\Z)",
    re.DOTALL,
)
_FINAL = (
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant"
    "<|channel|>final<|message|>{}<|return|>"
)
_CALL = (
    "<|channel|>analysis<|message|>I look it up.<|end|><|start|>assistant"
    "<|channel|>commentary to=functions.get_weather <|constrain|>json"
    '<|message|>{"city": "Zürich"}<|call|>'
)


class PretendedModel:
    """Calls `get_weather` when it is asked for the weather, else answers."""

    def __init__(self, encoding: Any) -> None:
        """Write with this encoding of Harmony."""
        self._encoding = encoding
        self._left: Iterator[int] = iter(())

    def __call__(
        self, tokens: list[int], *, new_request: bool = False, **_: object
    ) -> int:
        """Return the next token, as the server asks for it."""
        if new_request:
            text = write_answer(self._encoding.decode_utf8(tokens))
            self._left = iter(self._encoding.encode(text, allowed_special="all"))
        return next(self._left)


def write_answer(prompt: str) -> str:
    """Return what the model says after a prompt."""
    last = [*_MESSAGE.finditer(prompt)][-1]
    if last["head"].startswith("functions."):
        return _FINAL.format("There it is.", f"It said: {last['text']}")
    if "weather" in last["text"] and "type get_weather" in prompt:
        return _CALL
    return _FINAL.format("A greeting, or so.", "Two and two are 4. 🌧\n")


def main() -> None:
    """Serve until ended."""
    harmony = import_module("openai_harmony")
    name = harmony.HarmonyEncodingName.HARMONY_GPT_OSS
    encoding = harmony.load_harmony_encoding(name)
    create = import_module("gpt_oss.responses_api.api_server").create_api_server
    server = create(PretendedModel(encoding), encoding)
    uvicorn = import_module("uvicorn")
    uvicorn.run(server, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
