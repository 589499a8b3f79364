"""What a user may choose for themselves."""

from collections.abc import Mapping

from owui_manifold.valves import UserValves, Valves

_CHOICES: Mapping[str, str] = {
    "effort": "REASONING_EFFORT",
    "summary": "REASONING_SUMMARY",
    "verbosity": "VERBOSITY",
    "web_search": "WEB_SEARCH",
    "code_interpreter": "CODE_INTERPRETER",
    "image_generation": "IMAGE_GENERATION",
    "service_tier": "SERVICE_TIER",
    "show_cost": "SHOW_COST",
    "log_level": "LOG_LEVEL",
}
"""The words of USER_MAY_CHANGE, with the valve that each allows."""


def permitted_valves(user: UserValves, valves: Valves, is_admin: bool) -> UserValves:
    """Return a user's settings without those that are not theirs to change.

    An administrator may change them all.
    """
    words = _words_of(valves)
    if is_admin or "all" in words:
        return user
    kept = {valve for word, valve in _CHOICES.items() if word in words}
    fields = UserValves.model_fields
    reset = {v: fields[v].default for v in _CHOICES.values() if v not in kept}
    return user.model_copy(update=reset)


def permission_complaint(valves: Valves) -> str:
    """Return what is wrong with USER_MAY_CHANGE, or nothing."""
    unknown = sorted(_words_of(valves) - {*_CHOICES, "all", "nothing"})
    if not unknown:
        return ""
    return (
        f"USER_MAY_CHANGE holds {unknown[0][:40]}, which is no setting of users. Choose "
        f"from {', '.join(_CHOICES)}, all, nothing."
    )


def _words_of(valves: Valves) -> set[str]:
    return {word.strip().lower() for word in valves.USER_MAY_CHANGE.split(",")} - {""}
