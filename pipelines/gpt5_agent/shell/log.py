"""The agents' lines in the server's log."""

import logging

from shells.answer_log import LOG_LEVELS, AnswerLog, LogLevel

_LOGGER = logging.getLogger("gpt5_agent_strategies")


class AgentLog(AnswerLog):
    """The log of one answer of the agents."""

    def _write(self, level: LogLevel, one_line: str) -> None:
        _LOGGER.log(LOG_LEVELS[level], "%s %s", self.run_id, one_line)

    def _write_audit(self, line: str) -> None:
        _LOGGER.handle(
            _LOGGER.makeRecord(_LOGGER.name, logging.INFO, "audit", 0, line, (), None)
        )
