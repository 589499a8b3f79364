"""The callback of a caller that wants to hear nothing."""


def ignore_report(_value: object) -> None:
    """Do nothing with what is reported."""
