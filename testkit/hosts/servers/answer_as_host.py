"""Open WebUI's own functions, called over lines of JSON.

Run by the interpreter that has Open WebUI: a line is `[name, argument]`, its answer
one line.
"""

import json
import sys
from typing import Any

from open_webui.utils.misc import convert_output_to_messages
from open_webui.utils.response import handle_responses_streaming_event


def convert(output: list[dict[str, Any]]) -> object:
    return convert_output_to_messages(output, raw=True, flatten_tool_images=True)


def reduce(chunks: list[dict[str, Any]]) -> object:
    """The output items after all chunks."""
    output: list[dict[str, Any]] = []
    for chunk in chunks:
        output, _ = handle_responses_streaming_event(chunk, output)
    return output


ANSWERS = {"convert": convert, "reduce": reduce}

if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        name, argument = json.loads(line)
        print(json.dumps(ANSWERS[name](argument)), flush=True)
