"""Replies that call functions, custom tools and a few hosted tools."""

from simulator.scenarios.builders import (
    build_code_interpreter_call,
    build_custom_tool_call,
    build_function_call,
    build_image_generation_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import (
    Scenario,
    interleave_calls,
    make_reply,
    make_scenario,
)

LOOKING = build_reasoning("**Choosing a tool**\n\nThis has to be looked up.")
READING = build_reasoning("**Reading the output**\n\nThat answers it.")
FOUND = build_message("I called `$tool`. It said: $output")
CALL = build_function_call("$tool", "$arguments")
OTHER_CALL = build_function_call("$tool", "$other")
OTHER_SPELLING = build_function_call("functions.users.list", "$arguments")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAA"
    "AElFTkSuQmCC"
)
"""A PNG of one pixel."""


TOOL_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "tool",
        "a call of the first offered function, then an answer from its output",
        make_reply(LOOKING, CALL),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "tool-twice",
        "two rounds of one call each, then the answer",
        make_reply(LOOKING, CALL),
        make_reply(build_reasoning("**Once more**\n\nOne output is not enough."), CALL),
        make_reply(READING, FOUND),
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
    make_scenario(
        "parallel",
        "two calls whose deltas arrive mixed, then the answer",
        make_reply(LOOKING, CALL, OTHER_CALL, fault=interleave_calls),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "five-calls",
        "five calls of the first function at once, then the answer",
        make_reply(LOOKING, *[CALL] * 5),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "tool-cut",
        "a stream that ends in the middle of a call's arguments",
        CALL,
        options="cut=4",
    ),
    make_scenario(
        "long-arguments",
        "a call whose arguments fill more than a page, then the answer",
        make_reply(LOOKING, build_function_call("$tool", {"city": "Zürich, " * 500})),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "hidden-arguments",
        "a call with characters that nobody sees in its arguments, then the answer",
        make_reply(
            LOOKING,
            # Turns the line around, takes no room, is a letter of a tag.
            build_function_call("$tool", {"city": "Bern\u202egpj.exe\u200b\U000e0041"}),
        ),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "bad-arguments",
        "a call whose arguments are not valid JSON, then the answer",
        make_reply(LOOKING, build_function_call("$tool", '{"city": "Zür')),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "unknown-tool",
        "a call of a function that was never offered, then the answer",
        make_reply(LOOKING, build_function_call("no_such_tool", {"x": 1})),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "hidden-tool",
        "a call of get_weather, offered or not, then the answer",
        make_reply(LOOKING, build_function_call("get_weather", "$arguments")),
        make_reply(READING, FOUND),
    ),
    make_scenario(
        "own-spelling",
        "calls of users.list by names and with ids that no request may contain",
        make_reply(
            LOOKING,
            # Codex's backend gave such ids (hermes-agent 72006).
            OTHER_SPELLING | {"call_id": f"call_{'x' * 80}"},
            build_function_call("Users.List", "$arguments"),
        ),
        make_reply(READING, FOUND),
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
