"""What to say of a model that is switched off, or soon will be."""

from datetime import date, timedelta

from openai_responses.models import ResolvedModel, resolve_model

_NOTICE_DAYS = 30


def retirement_notice(model: ResolvedModel, today: date) -> str:
    """Return a sentence for people, empty when there is nothing to say yet.

    It names the successor, if the catalog knows one.
    """
    ending = _date(model.facts.shutdown)
    if ending is None or today < ending - timedelta(days=_NOTICE_DAYS):
        return ""
    when = "is switched off on" if today < ending else "was switched off on"
    told = f"{model.name} {when} {ending.isoformat()}."
    successor = model.facts.successor
    return f"{told} Use {resolve_model(successor).name} instead." if successor else told


def _date(text: str | None) -> date | None:
    """Return the day of an ISO date; an administrator may have written another text."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
