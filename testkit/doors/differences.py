"""What the doors do differently on purpose, each with its reason.

A test that asks it looks here, so that neither door changes unseen.
"""

from collections.abc import Mapping
from typing import Any

PIPE = "Open WebUI"
PIPELINE = "Pipelines server"
DIFFERENCES: Mapping[str, Mapping[str, Any]] = {
    # The Pipelines server gets every round of a plain client anew, and counts them from
    # the chat; to the pipe each of its requests is an answer of its own.
    "rounds of a client's calls": {PIPE: 1, PIPELINE: 2},
    # The pipe tells users what an answer costs only where SHOW_COST is on; the agents'
    # line always had the price.
    "price in the last line": {PIPE: False, PIPELINE: True},
    # The pipe shows commentary while the answer is not there yet; Open WebUI shows the
    # rounds of a pipeline as answers of their own, where a thought stays readable.
    "commentary is a thought": {PIPE: False, PIPELINE: True},
    # `context` is a parameter of a question by the plugins' specification (P9), and open
    # to callers of the agents' server; in the pipe it belongs to the rules.
    "a request replaces the context": {PIPE: False, PIPELINE: True},
    # A caller of the pipe may ask for less; a pipeline's parameters are its valves.
    "a request may lower a limit": {PIPE: True, PIPELINE: False},
    # The pipe leaves all calls of a client's functions to it, as without an agent; a
    # pipeline goes on by itself where a call cannot be made.
    "a client's calls are checked": {PIPE: False, PIPELINE: True},
    # The pipe tells a mistake until it is corrected; the agents once an hour, and the
    # log at their start: an administrator is not in front of their valves.
    "a wrong valve is told again": {PIPE: True, PIPELINE: False},
    # The pipe asks in a dialog of its own. A pipeline has Open WebUI's card alone, which
    # needs a stream, and nobody sits in front of a program.
    "page can be asked": {PIPE: True, PIPELINE: True},
    "page-whole can be asked": {PIPE: True, PIPELINE: False},
    "plain can be asked": {PIPE: False, PIPELINE: False},
    # Open WebUI says who a program is, and the Pipelines server does not.
    "a program is somebody": {PIPE: True, PIPELINE: False},
    # Programs of 2023 know `functions` alone. They ask Open WebUI's API, whose models have
    # changed below them; who asks a pipeline has begun with it since.
    "functions of 2023 are tools": {PIPE: True, PIPELINE: False},
    # A pipeline offers none of OpenAI's tools, so it has nothing to search with.
    "a name may ask for research": {PIPE: True, PIPELINE: False},
}
