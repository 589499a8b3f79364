"""Replies that call functions, custom tools and a few hosted tools."""

from simulator.scenarios.builders import (
    Item,
    build_code_interpreter_call,
    build_custom_tool_call,
    build_function_call,
    build_image_generation_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import (
    Scenario,
    StreamFault,
    interleave_calls,
    make_reply,
    make_scenario,
)

LOOKING = build_reasoning("**Choosing a tool**\n\nThis has to be looked up.")
READING = build_reasoning("**Reading the output**\n\nThat answers it.")
ANSWERED = make_reply(READING, build_message("I called `$tool`. It said: $output"))
CALL = build_function_call("$tool", "$arguments")
OTHER_CALL = build_function_call("$tool", "$other")
OTHER_SPELLING = build_function_call("functions.users.list", "$arguments")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAA"
    "AElFTkSuQmCC"
)
"""A PNG of one pixel."""


def _calling(
    name: str, summary: str, *calls: Item, fault: StreamFault | None = None
) -> Scenario:
    """Return a scenario of some calls, then an answer from their outputs."""
    asked = make_reply(LOOKING, *calls, fault=fault)
    return make_scenario(name, f"{summary}, then the answer", asked, ANSWERED)


TOOL_SCENARIOS: tuple[Scenario, ...] = (
    _calling("tool", "a call of the first offered function", CALL),
    make_scenario(
        "tool-twice",
        "two rounds of one call each, then the answer",
        make_reply(LOOKING, CALL),
        make_reply(build_reasoning("**Once more**\n\nOne output is not enough."), CALL),
        ANSWERED,
    ),
    make_scenario(
        "tool-forever",
        "a call in every round",
        LOOKING,
        CALL,
    ),
    make_scenario(
        "tool-after-text",
        "commentary with a list, a call, then an answer that starts with a list",
        make_reply(
            LOOKING, build_message("First:\n\n- look it up", phase="commentary"), CALL
        ),
        make_reply(READING, build_message("- $output\n\nEnd.", phase="final_answer")),
    ),
    make_scenario(
        "remarks",
        "commentary in front of each of two rounds of tools, then the answer",
        make_reply(
            LOOKING,
            build_message("I look at the first:\n\n- its size", phase="commentary"),
            build_message("That needs a tool.", phase="commentary"),
            CALL,
        ),
        make_reply(
            build_message("Now for the second.", phase="commentary"), OTHER_CALL
        ),
        make_reply(READING, build_message("It said: $output", phase="final_answer")),
    ),
    _calling(
        "parallel",
        "two calls whose deltas arrive mixed",
        *(CALL, OTHER_CALL),
        fault=interleave_calls,
    ),
    _calling("five-calls", "five calls of the first function at once", *[CALL] * 5),
    make_scenario(
        "tool-cut",
        "a stream that ends in the middle of a call's arguments",
        CALL,
        options="cut=4",
    ),
    _calling(
        "long-arguments",
        "a call whose arguments fill more than a page",
        build_function_call("$tool", {"city": "Zürich, " * 500}),
    ),
    _calling(
        "hidden-arguments",
        "a call with characters that nobody sees in its arguments",
        # Turns the line around, takes no room, is a letter of a tag.
        build_function_call("$tool", {"city": "Bern\u202egpj.exe\u200b\U000e0041"}),
    ),
    _calling(
        "bad-arguments",
        "a call whose arguments are not valid JSON",
        build_function_call("$tool", '{"city": "Zür'),
    ),
    _calling(
        "unknown-tool",
        "a call of a function that was never offered",
        build_function_call("no_such_tool", {"x": 1}),
    ),
    _calling(
        "hidden-tool",
        "a call of get_weather, offered or not",
        build_function_call("get_weather", "$arguments"),
    ),
    _calling(
        "own-spelling",
        "calls of users.list by names and with ids that no request may contain",
        # Codex's backend gave such ids (hermes-agent 72006).
        OTHER_SPELLING | {"call_id": f"call_{'x' * 80}"},
        build_function_call("Users.List", "$arguments"),
    ),
    make_scenario(
        "custom-tool",
        "a call of a free-text tool, then the answer",
        make_reply(
            LOOKING, build_custom_tool_call("$custom", "note: Zürich is at 408 m\n")
        ),
        make_reply(READING, build_message("I called `$custom`. It said: $output")),
    ),
    make_scenario(
        "code",
        "code that the API runs, then the answer",
        LOOKING,
        build_code_interpreter_call("print(6 * 7)", "42\n"),
        build_message("It is 42."),
    ),
    make_scenario(
        "image",
        "a picture, then a sentence",
        LOOKING,
        build_image_generation_call(PIXEL, "one dot"),
        build_message("A dot."),
    ),
)
