"""Recent texts are known for a day, and take little memory."""

import pytest

from measures.kept_memory import kept_container
from openai_responses.recent_texts import RecentTexts, UserReports


class Clock:
    """A time that a test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("options", "seconds"), [({}, 86_400), ({"seconds": 3600.0}, 3600)]
)
def test_recent_texts_are_known_for_their_time(
    options: dict[str, float], seconds: float
) -> None:
    clock = Clock()
    texts = RecentTexts(now=clock, **options)
    assert texts.first_time("one")

    clock.seconds = seconds - 1
    assert not texts.first_time("one")
    assert "one" in texts
    assert "other" not in texts
    clock.seconds = seconds
    assert "one" not in texts
    assert texts.first_time("one")


def test_recent_texts_take_no_more_memory_than_five_thousand() -> None:
    texts = RecentTexts()

    for number in range(10_000):
        assert texts.first_time(f"{number} " + "x" * 1000)

    kept = kept_container(texts)
    assert len(kept) <= 5000
    assert "x" not in str(kept)


def test_report_of_a_user_holds_for_that_user() -> None:
    """However often it is made: others hear of it from three users."""
    reports = UserReports()

    for _ in range(5):
        reports.add("down", "ada")
    assert reports.holds("down", "ada")
    assert not reports.holds("down", "bob")
    assert not reports.holds("other", "ada")

    reports.add("down", "bob")
    assert not reports.holds("down", "eve")
    reports.add("down", "cyd")
    assert reports.holds("down", "eve")
    assert reports.holds("down", "")
    reports.add("down", "bob")
    assert reports.holds("down", "eve")

    for _ in range(5):  # unknown users would all be one
        reports.add("lost", "")
    assert not reports.holds("lost", "")
    assert not reports.holds("lost", "ada")


def test_report_is_forgotten_in_time() -> None:
    """Three of them must be of the same time; a new one begins its time anew."""
    clock = Clock()
    reports = UserReports(60, clock)
    reports.add("down", "ada")
    clock.seconds = 30
    reports.add("down", "bob")
    clock.seconds = 59.9
    assert reports.holds("down", "ada")

    clock.seconds = 60
    assert not reports.holds("down", "ada")
    reports.add("down", "cyd")
    assert not reports.holds("down", "ada")
    reports.add("down", "ada")
    assert reports.holds("down", "eve")
    clock.seconds = 90
    assert not reports.holds("down", "eve")


def test_reports_are_limited() -> None:
    reports = UserReports()
    for number in range(2000):
        reports.add("all", f"user-{number}")
        reports.add(f"subject-{number}", "ada")

    kept = kept_container(reports)
    assert len(kept) <= 500
    assert max(map(len, kept.values())) == 3
    assert reports.holds("all", "eve")
    assert reports.holds("subject-1999", "ada")
    assert not reports.holds("subject-0", "ada")


@pytest.mark.parametrize("users", [("ada",), ("ada", "eve")])
def test_reports_of_one_user_push_out_no_others(users: tuple[str, ...]) -> None:
    """Whoever may use keys of their own chooses the accounts; some have two names."""
    reports = UserReports()
    reports.add("down", "bob")
    for number in range(1000):
        for user in users:
            reports.add(f"account-{number}", user)

    assert reports.holds("down", "bob")
    assert reports.holds("account-999", "ada")
    assert not reports.holds("account-0", "ada")
    assert len(kept_container(reports)) <= 500


def test_report_that_holds_for_all_is_no_users_own() -> None:
    """Whoever met it too pushes it out no sooner than a stranger's older one.

    It is as old as its last report.
    """
    reports = UserReports()
    reports.add("down", "ada")
    reports.add("old", "bob")
    for user in ("bob", "cyd"):
        reports.add("down", user)
    for number in range(498):
        reports.add(f"account-{number}", f"user-{number}")
    reports.add("new", "ada")

    assert reports.holds("down", "eve")
    assert not reports.holds("old", "bob")
