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
    """What is inside each tag."""
    return {
        key: text.split(f"<{tag}>\n")[1].split(f"\n</{tag}>", maxsplit=1)[0]
        for key, tag in TAGS.items()
    }


def places_of(text: str, *parts: str) -> list[int]:
    """Where each part begins."""
    return [text.index(part) for part in parts]


def test_r1_instruction_comes_first_then_the_blocks_in_order_then_the_extra() -> None:
    """Blocks are apart by a blank line."""
    text = build_system_instruction("Be brief.", '{"extra_policy": "Use lists."}')

    tags = [f"<{tag}>" for tag in TAGS.values()]
    places = places_of(text, "Be brief.", *tags, "Use lists.")
    assert places == sorted(places)
    assert text.startswith("Be brief.\n\n<persistence>\n")
    assert text.endswith("</tool_preamble>\n\nUse lists.")


@pytest.mark.parametrize("empty", ["", "  \n "])
def test_r1_empty_instruction_has_a_stand_in(empty: str) -> None:
    """There is always a first sentence."""
    text = build_system_instruction(empty)

    assert text.startswith("You are a helpful GPT-5 agent.\n\n<persistence>")


@pytest.mark.parametrize(
    "nothing", ["", " \n", "{}", '{"persistence_policy": null, "extra_policy": " "}']
)
def test_r2_empty_overrides_change_no_byte(nothing: str) -> None:
    """The default is the default, without a blank block after it."""
    default = build_system_instruction("A.")

    assert default.endswith("</tool_preamble>")
    assert build_system_instruction("A.", nothing) == default


@pytest.mark.parametrize(
    "plain",
    [
        "Prefer official sources.",
        "  - indented\n\n",
        '["a", "list"]',
        "42",
        '"quoted"',
        "null",
        '{"persistence_policy": "not closed"',
        "[" * 100_000,
    ],
)
def test_r3_text_that_is_no_json_object_is_added_verbatim(plain: str) -> None:
    """Not a byte of it is changed, and it comes last."""
    default = build_system_instruction("A.")

    assert build_system_instruction("A.", plain) == f"{default}\n\n{plain}"


@pytest.mark.parametrize("key", list(TAGS))
def test_r4_json_object_replaces_only_what_it_names(key: str) -> None:
    """The tag is put around it."""
    before = blocks_of(build_system_instruction("A."))

    after = blocks_of(build_system_instruction("A.", json.dumps({key: "- Own."})))

    assert after == {**before, key: "- Own."}


@pytest.mark.parametrize(("key", "tag"), TAGS.items())
def test_r4_block_with_its_own_tag_is_not_wrapped_again(key: str, tag: str) -> None:
    """A tag at one end alone is no tag around it."""
    whole = f"<{tag}>\n- Own.\n</{tag}>"
    half = f"<{tag}>\n- Own."

    wrapped = build_system_instruction("A.", json.dumps({key: f" {whole}\n"}))
    doubled = build_system_instruction("A.", json.dumps({key: half}))

    assert wrapped.count(f"<{tag}>") == wrapped.count(f"</{tag}>") == 1
    assert f"<{tag}>\n{half}\n</{tag}>" in doubled


def test_r4_unknown_keys_nulls_and_blanks_are_ignored() -> None:
    """So are values that are no text."""
    overrides = {
        "uncertainty_policy": " ",
        "persistence_policy": None,
        "tool_preamble_policy": 7,
        "surprise": "- Never shown.",
        "extra_policy": "  - As it is. ",
    }

    text = build_system_instruction("A.", json.dumps(overrides))

    default = build_system_instruction("A.")
    assert text == f"{default}\n\n  - As it is. "


def test_r4_extra_is_never_wrapped() -> None:
    """It is as it was given."""
    text = build_system_instruction("A.", json.dumps({"extra_policy": "- Last."}))

    assert text.endswith("</tool_preamble>\n\n- Last.")


def test_lean_style_has_the_same_blocks_in_fewer_words() -> None:
    """Overrides change a block there, too."""
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
        ("auto", "gpt-5.2-pro", "full"),
        ("auto", "gpt-5.4-mini", "full"),
        ("auto", "gpt-5.5", "lean"),
        ("auto", "gpt-5.6-sol", "lean"),
        ("auto", "gpt-6-luna", "lean"),
        ("auto", "gpt-35-turbo", "full"),
        ("auto", "gpt-4.1", "full"),
        ("auto", "o3", "full"),
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
