"""Recent texts are known for a day, and take little memory."""

import pytest

from openai_responses.recent_texts import RecentTexts


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({}, 86_400), ({"seconds": 3600.0}, 3600)],
    ids=["a day", "an hour"],
)
def test_recent_texts_are_known_for_their_time(
    options: dict[str, float], seconds: float
) -> None:
    """Then they are news again."""
    times = [0.0, seconds - 1, seconds]
    texts = RecentTexts(lambda: times[0], **options)

    assert texts.first_time("one")
    times.pop(0)
    assert not texts.first_time("one")
    assert "one" in texts
    assert "other" not in texts
    times.pop(0)
    assert "one" not in texts
    assert texts.first_time("one")


def test_recent_texts_take_no_more_memory_than_five_thousand() -> None:
    """However many come, and however long they are."""
    texts = RecentTexts()

    for number in range(10_000):
        assert texts.first_time(f"{number} " + "x" * 1000)

    assert len(texts._ends) <= 5000
    assert "x" not in str(vars(texts)["_ends"])
