"""What a draft leaves open is filled, and its citations stay at their words."""

from simulator.scenarios.builders import build_message, build_url_citation
from simulator.wire.response import fill_placeholders


def test_citations_follow_the_filled_text() -> None:
    """Their offsets are those of the text that is sent."""
    draft = "They said: $output It rains (a link)."
    page = build_url_citation(draft, "(a link)", "https://a.example", "A")
    file = {"type": "file_citation", "file_id": "f", "index": draft.index(" It")}
    drafted = build_message(draft, annotations=[page, file])

    [part] = fill_placeholders(drafted, {"output": "Sunshine, all day."})["content"]

    text = part["text"]
    page, file = part["annotations"]
    assert text[page["start_index"] : page["end_index"]] == "(a link)"
    assert text[: file["index"]].endswith("all day.")
