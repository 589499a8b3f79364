"""What the model is told first: instruction, policies, overrides (R1 to R4)."""

import json

import pytest

from strategies.policy import PolicyStyle, build_system_instruction, choose_style

TAGS = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
KEYS = (*TAGS, "extra_policy")


def blocks_of(text: str) -> dict[str, str]:
    return {
        key: text.split(f"<{tag}>\n")[1].split(f"\n</{tag}>", maxsplit=1)[0]
        for key, tag in TAGS.items()
    }


def test_r1_instruction_comes_first_then_the_blocks_in_order_then_the_extra() -> None:
    """Blocks are apart by a blank line; the extra is never wrapped (R4)."""
    text = build_system_instruction("Be brief.", '{"extra_policy": " - Last. "}')

    places = [text.index(f"<{tag}>") for tag in TAGS.values()]
    assert places == sorted(places)
    assert text.startswith("Be brief.\n\n<persistence>\n")
    assert text.endswith("</tool_preamble>\n\n - Last. ")


def test_r1_empty_instruction_has_a_stand_in() -> None:
    text = build_system_instruction("  \n ")

    assert text.startswith("You are a helpful GPT-5 agent.\n\n<persistence>")


@pytest.mark.parametrize(
    "nothing",
    [
        *("", " \n", "{}", '{"surprise": "- Never shown."}'),
        '{"persistence_policy": null, "uncertainty_policy": 7, "extra_policy": " "}',
    ],
)
def test_r2_empty_overrides_change_no_byte(nothing: str) -> None:
    default = build_system_instruction("A.")

    assert default.endswith("</tool_preamble>")
    assert build_system_instruction("A.", nothing) == default


@pytest.mark.parametrize(
    "plain",
    [
        "  - indented\n\n",
        '["a", "list"]',
        "null",
        '{"persistence_policy": "not closed"',
        "[" * 100_000,
    ],
)
def test_r3_text_that_is_no_json_object_is_added_verbatim(plain: str) -> None:
    default = build_system_instruction("A.")

    assert build_system_instruction("A.", plain) == f"{default}\n\n{plain}"


@pytest.mark.parametrize(("key", "tag"), TAGS.items())
def test_r4_json_object_replaces_only_what_it_names(key: str, tag: str) -> None:
    """The tag is put around it, unless it has its own; one at one end alone is none."""
    before = blocks_of(build_system_instruction("A."))
    begun, ended = f"<{tag}>\n- Own.", f"- Own.\n</{tag}>"

    for own in ("- Own.", f" {begun}\n</{tag}>\n"):
        text = build_system_instruction("A.", json.dumps({key: own}))
        assert blocks_of(text) == {**before, key: "- Own."}
        assert text.count(f"</{tag}>") == 1
    for own in (begun, ended):
        text = build_system_instruction("A.", json.dumps({key: own}))
        assert f"<{tag}>\n{own}\n</{tag}>" in text
        assert text.count(f"</{tag}>") == 1 + (own == ended)


def test_lean_style_has_the_same_blocks_in_fewer_words() -> None:
    full = build_system_instruction("A.")
    lean = build_system_instruction("A.", style="lean")

    assert blocks_of(lean).keys() == blocks_of(full).keys()
    assert len(lean) < len(full) / 2
    changed = build_system_instruction("A.", '{"uncertainty_policy": "Ask."}', "lean")
    assert blocks_of(changed) == {**blocks_of(lean), "uncertainty_policy": "Ask."}


@pytest.mark.parametrize(
    ("style", "family", "expected"),
    [
        ("auto", "gpt-5", "full"),
        ("auto", "gpt-5.4-mini", "full"),
        ("auto", "gpt-5.5", "lean"),
        ("auto", "gpt-6-luna", "lean"),
        ("auto", "gpt-35-turbo", "full"),
        ("auto", "gpt-4.1", "full"),
        ("auto", "llama-4", "full"),
        ("full", "gpt-6.2-astra", "full"),
        ("lean", "gpt-5", "lean"),
    ],
)
def test_auto_style_depends_on_the_family_alone(
    style: PolicyStyle, family: str, expected: str
) -> None:
    """So it stays the same as long as the model does."""
    assert choose_style(style, family) == expected
