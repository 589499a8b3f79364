"""Lines in the server's log, from the level of the valve up."""

import logging

_LOGGER = logging.getLogger("openai_responses_manifold")


def log_line(threshold: str, level: str, line: str) -> None:
    """Write `line` if `level` reaches `threshold`; both are names of levels.

    The logger's own level belongs to the server and to other copies of the pipe, so
    it is not touched: the record goes to the handlers as it is.
    """
    number = logging.getLevelNamesMapping()[level]
    if number >= logging.getLevelNamesMapping()[threshold]:
        record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, line, (), None)
        _LOGGER.handle(record)
