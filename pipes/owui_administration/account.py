"""One call of the pipe, as the administration sees it."""

from typing import NamedTuple

from owui_administration.limits import UserLimits


class Account(NamedTuple):
    """What decides about one call of the pipe. Each method is asked by name."""

    limits: UserLimits
