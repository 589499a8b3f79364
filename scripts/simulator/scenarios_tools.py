"""What the model says when it calls tools."""

from simulator.builders import (
    code_interpreter_call,
    custom_tool_call,
    function_call,
    image_generation_call,
    message,
    reasoning,
)
from simulator.disorder import interleave, whole_arguments
from simulator.scenario import Scenario, incomplete, reply, scenario

LOOKING = reasoning("**Choosing a tool**\n\nThis has to be looked up.")
READING = reasoning("**Reading the output**\n\nThat answers it.")
FOUND = message("I called `$tool`. It said: $output")
CALL = function_call("$tool", "$arguments")
OTHER_CALL = function_call("$tool", "$other")
# A PNG of one pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAA"
    "AElFTkSuQmCC"
)

TOOL_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "tool",
        "a call of the first offered function, then an answer from its output",
        reply(LOOKING, CALL),
        reply(READING, FOUND),
    ),
    scenario(
        "tool-twice",
        "two rounds of one call each, then the answer",
        reply(LOOKING, CALL),
        reply(reasoning("**Once more**\n\nOne output is not enough."), CALL),
        reply(READING, FOUND),
    ),
    scenario(
        "tool-forever",
        "a call in every round",
        reply(LOOKING, CALL),
    ),
    scenario(
        "tool-after-text",
        "commentary with a list, a call, then an answer that starts with a list",
        reply(LOOKING, message("First:\n\n- look it up", phase="commentary"), CALL),
        reply(READING, message("- $output\n\nEnd.", phase="final_answer")),
    ),
    scenario(
        "remarks",
        "commentary in front of each of two rounds of tools, then the answer",
        reply(
            LOOKING,
            message("I look at the first:\n\n- its size", phase="commentary"),
            message("That needs a tool.", phase="commentary"),
            CALL,
        ),
        reply(message("Now for the second.", phase="commentary"), OTHER_CALL),
        reply(READING, message("It said: $output", phase="final_answer")),
    ),
    scenario(
        "parallel",
        "two calls whose deltas arrive mixed, then the answer",
        reply(LOOKING, CALL, OTHER_CALL, disorder=interleave),
        reply(READING, FOUND),
    ),
    scenario(
        "five-calls",
        "five calls of the first function at once, then the answer",
        reply(LOOKING, *[CALL] * 5),
        reply(READING, FOUND),
    ),
    scenario(
        "arguments-only-done",
        "a call whose arguments come in one event",
        reply(LOOKING, CALL, disorder=whole_arguments),
        reply(READING, FOUND),
    ),
    scenario(
        "tool-cut",
        "a body that ends among the arguments of a call",
        reply(CALL),
        options="cut=4",
    ),
    scenario(
        "tool-incomplete",
        "a call that stops at max_output_tokens",
        reply(LOOKING, CALL, ending=incomplete()),
    ),
    scenario(
        "bad-arguments",
        "a call whose arguments are no JSON, then the answer",
        reply(LOOKING, function_call("$tool", '{"city": "Zür')),
        reply(READING, FOUND),
    ),
    scenario(
        "unknown-tool",
        "a call of a function that was never offered, then the answer",
        reply(LOOKING, function_call("no_such_tool", {"x": 1})),
        reply(READING, FOUND),
    ),
    scenario(
        "custom-tool",
        "a call of a free-text tool, then the answer",
        reply(LOOKING, custom_tool_call("$custom", "note: Zürich is at 408 m\n")),
        reply(READING, message("I called `$custom`. It said: $output")),
    ),
    scenario(
        "code",
        "code that the API runs, then the answer",
        reply(
            LOOKING,
            code_interpreter_call("print(6 * 7)", "42\n"),
            message("It is 42."),
        ),
    ),
    scenario(
        "image",
        "a picture, then a sentence",
        reply(LOOKING, image_generation_call(PIXEL, "one dot"), message("A dot.")),
    ),
)
