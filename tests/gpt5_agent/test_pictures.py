"""Which pictures stay in memory while the host continues an answer."""

from typing import Any

import pytest

from gpt5_agent import pictures
from gpt5_agent.pictures import PictureMemory, seen_pictures
from measures.kept_memory import kept_container

ANSWER = "u-1/c-1/m-1"


def output_of(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def drawn(call_id: str, address: str = "data:,x") -> dict[str, Any]:
    return output_of(call_id, [{"type": "input_image", "image_url": address}])


def test_only_the_own_answer_gets_its_pictures() -> None:
    """A call keeps its arguments; texts alone are not kept."""
    memory = PictureMemory()
    memory.keep(ANSWER, drawn("call_1"))
    memory.keep(ANSWER, output_of("call_2", "text"))
    memory.keep("", drawn("call_3"))
    memory.keep(ANSWER, output_of("call_4", [{"type": "input_text", "text": "all"}]))
    call = {"type": "function_call", "call_id": "call_1", "arguments": "{}"}
    sent_back = [call, *(output_of(f"call_{n}", "text") for n in (1, 2, 3, 4))]

    assert memory.restore(ANSWER, sent_back) == [call, drawn("call_1"), *sent_back[2:]]
    # Clients without a chat are all the same one.
    for other in ("u-2/c-1/m-1", "u-1/c-1/m-2", ""):
        assert memory.restore(other, sent_back) == sent_back
    memory.forget(ANSWER)
    assert memory.restore(ANSWER, sent_back) == sent_back


@pytest.mark.parametrize(
    ("limit", "value", "left"),
    [
        ("_MAX_OUTPUTS", 2, ["call_2", "call_3"]),
        ("_MAX_CHARACTERS", 20, ["call_3"]),
    ],
)
def test_oldest_pictures_go_first(
    limit: str, value: int, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, limit, value)
    memory = PictureMemory()
    for number in range(3):
        memory.keep(ANSWER, drawn(f"call_{number}", "data:image"))

    sent_back = [output_of(f"call_{number}", "text") for number in range(3)]

    assert memory.restore(ANSWER, sent_back) == [
        sent_back[0],
        drawn("call_1", "data:image"),
        drawn("call_2", "data:image"),
    ]
    memory.keep(ANSWER, drawn("call_3", "data:image" * 2))
    assert [kept.call_id for kept in kept_container(memory)] == left


@pytest.mark.parametrize(
    ("limit", "value"), [("_MAX_OUTPUTS", 3), ("_MAX_CHARACTERS", 30)]
)
def test_pictures_of_one_user_push_out_no_others(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though those of the others are older."""
    monkeypatch.setattr(pictures, limit, value)
    memory = PictureMemory()
    memory.keep(ANSWER, drawn("call_1", "data:image"), "u-1")
    for number in range(5):
        memory.keep(f"u-2/c-{number}/m-1", drawn("call_1", "data:image"), "u-2")

    assert [kept.answer for kept in kept_container(memory)] == [
        ANSWER,
        "u-2/c-3/m-1",
        "u-2/c-4/m-1",
    ]


def test_pictures_of_an_answer_that_never_goes_on_go() -> None:
    """Nobody tells that it was stopped; each round of another one begins the hour again."""
    clock = [0.0]
    memory = PictureMemory(lambda: clock[0])
    sent_back = [output_of("call_1", "text")]
    for answer in ("stopped", ANSWER):
        memory.keep(answer, drawn("call_1"))

    for hour in (0.9, 1.8):
        clock[0] = hour * 3600
        assert memory.restore(ANSWER, sent_back) == [drawn("call_1")]
    memory.keep(ANSWER, drawn("call_2"))

    assert [kept.answer for kept in kept_container(memory)] == [ANSWER, ANSWER]


def test_only_pictures_of_the_current_answer_are_seen() -> None:
    """Those of an earlier one were shown there."""
    question = {"type": "message", "role": "user", "content": "And now?"}
    items = [drawn("call_1", "data:,old"), question, drawn("call_2", "data:,new")]
    assert seen_pictures(items) == ["data:,new"]
