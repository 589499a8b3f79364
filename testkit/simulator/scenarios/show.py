"""Replies for demonstrations: real images, and texts as a model writes them.

The tests use the other scenarios, whose texts say what the request contained.
"""

from simulator.files import TEMPERATURES_FILE, read_picture
from simulator.scenarios.builders import (
    build_code_interpreter_call,
    build_container_citation,
    build_image_generation_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import (
    Reply,
    Scenario,
    make_reply,
    make_scenario,
    send_partial_images,
)

CODE = """\
import csv
import matplotlib.pyplot as plt

with open("/mnt/data/temperatures.csv") as file:
    months, degrees = zip(*((row[0], int(row[1])) for row in csv.reader(file)))
plt.bar(months, degrees)
plt.xlabel("month")
plt.ylabel("°C")
plt.title("Water temperature at Zürich, 2026")
plt.show()
print("warmest:", months[degrees.index(max(degrees))])"""
CHART_LINK = "[temperatures.csv](sandbox:/mnt/data/temperatures.csv)"
CHART_TEXT = (
    "The lake is warmest in **August**, with 23 °C, and above 18 °C from June to "
    f"September. The numbers are in {CHART_LINK}."
)
ANSWER = """\
Ice floats because it is **less dense than water**: its molecules form a lattice that \
takes more room than the liquid.

| | Density at 0 °C |
| --- | --- |
| Ice | 917 kg/m³ |
| Water | 1,000 kg/m³ |

So about 8% of a floating block stands above the surface, and a lake freezes from the \
top: the ice keeps the water below it from freezing.
"""
HELLO = """\
Good day. I am a **simulator** of OpenAI's API on this machine, and my answers are made \
up. Send one of the words that `scripts/demo` has printed, for example `sim:chart`, and \
I do what the word says.
"""


def _build_postcard() -> Reply:
    picture = read_picture("postcard")
    return make_reply(
        build_reasoning(
            "**Choosing the scene**\n\nA lake before mountains in the evening: few "
            "colours, a low sun, one boat that gives the distance."
        ),
        build_image_generation_call(picture, "A lake before mountains in the evening"),
        build_message("Here is the lake in the evening, with one sail on it."),
        fault=send_partial_images([picture]),
    )


def _build_chart() -> Reply:
    call = build_code_interpreter_call(CODE, "warmest: Aug\n")
    url = f"data:image/png;base64,{read_picture('chart')}"
    call["outputs"].append({"type": "image", "url": url})
    citation = build_container_citation(
        CHART_TEXT, "sandbox:/mnt/data/temperatures.csv", TEMPERATURES_FILE
    )
    return make_reply(
        build_reasoning(
            "**Choosing a chart**\n\nEleven months and one value each: bars, with the "
            "unit at the axis."
        ),
        call,
        build_message(CHART_TEXT, annotations=[citation]),
    )


SHOW_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "hello",
        "reasoning, then a text about what can be asked here",
        build_reasoning("**Greeting**\n\nSay who answers, and what can be tried."),
        build_message(HELLO),
    ),
    make_scenario(
        "explain",
        "reasoning, then an answer with a table",
        build_reasoning(
            "**Comparing densities**\n\nThe reason must be the density: water has "
            "its maximum at 4 °C, and ice lies well below it.",
            "**Choosing the form**\n\nTwo numbers carry the argument, so a small "
            "table, then what follows for a lake.",
        ),
        build_message(ANSWER),
    ),
    make_scenario(
        "postcard",
        "a picture of a lake, then a sentence",
        _build_postcard(),
        tool="image_generation",
    ),
    make_scenario(
        "chart",
        "code that draws a chart with axes, then an answer with the table",
        _build_chart(),
        tool="code_interpreter",
    ),
)
