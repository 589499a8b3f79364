"""Which files need no second upload, and what else a pipe remembers of its accounts."""

from itertools import product

import pytest

from owui_manifold.call.context import PipeMemory
from owui_manifold.call.uploads import UploadKey, UploadMemory

KEY = UploadKey("account", "user-1", "chat-1", "file-1", "/a", 5, "a.csv")
HOUR = 3600


class Clock:

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(account="another"),
        KEY._replace(user_id="user-2"),
        KEY._replace(chat_id="chat-2"),
        KEY._replace(path="/b"),
        KEY._replace(size=6),
        KEY._replace(name="b.csv"),
    ],
)
def test_only_the_same_file_of_the_same_chat_is_known(other: UploadKey) -> None:
    """Files of one container are deleted together; another key cannot read them."""
    memory = UploadMemory(Clock())
    memory.add(KEY, "file-at-api")

    assert memory.find(KEY) == "file-at-api"
    assert memory.find(other) == ""
    memory.forget(KEY)
    memory.forget(other)
    assert memory.find(KEY) == ""


@pytest.mark.parametrize(("hours", "is_known"), [(22.99, True), (23, False)])
def test_file_is_uploaded_again_an_hour_before_its_end(
    hours: float, *, is_known: bool
) -> None:
    """It lives for a day; an answer that is being written still needs it."""
    clock = Clock()
    memory = UploadMemory(clock)
    memory.add(KEY, "file-at-api")

    clock.now += hours * HOUR

    assert bool(memory.find(KEY)) is is_known


def test_the_oldest_of_too_many_uploads_are_forgotten() -> None:
    memory = UploadMemory(Clock())
    keys = [KEY._replace(file_id=str(number)) for number in range(5_002)]
    for key in keys:
        memory.add(key, "x")

    assert [memory.find(key) for key in keys[:3]] == ["", "", "x"]
    assert sum(bool(memory.find(key)) for key in keys) == 5_000

    memory.add(keys[3], "again")  # the newest now: it takes no second place
    for key in keys[:2]:
        memory.add(key, "x")
    assert [memory.find(key) for key in keys[:5]] == ["x", "x", "", "again", ""]


def test_reasons_of_a_server_are_bounded() -> None:
    """Fifty, of 64 characters each; those that are known are counted on."""
    memory = PipeMemory()
    long = "é" * 64
    memory.count_dropped({f"{long}!": 2, f"{long}?": 1})
    for number, _ in product(range(60), range(2)):
        memory.count_dropped({f"reason {number}": 1})

    assert memory.dropped[long] == 3
    assert len(memory.dropped) == 50
    assert memory.dropped["reason 48"] == 2
    assert "reason 49" not in memory.dropped


def test_uploads_of_one_user_push_out_no_others() -> None:
    """Their next request would name other files, which costs its prompt cache."""
    memory = UploadMemory(Clock())
    memory.add(KEY, "x")
    others = [KEY._replace(user_id="u", file_id=str(number)) for number in range(6_000)]
    for key in others:
        memory.add(key, "x")

    assert memory.find(KEY) == "x"
    assert sum(bool(memory.find(key)) for key in others) == 4_999
    assert memory.find(others[-1])


@pytest.mark.asyncio
async def test_uploads_of_one_user_keep_no_other_waiting() -> None:
    memory = UploadMemory()

    async with memory.turn("ada"), memory.turn("ada"):
        assert memory.turn("ada").locked()
        assert not memory.turn("bob").locked()
