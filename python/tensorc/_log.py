"""The library's log, as records of the logger "tensorc"."""
from __future__ import annotations

import logging

TRACE = 5  # below DEBUG: each look-up

logger = logging.getLogger("tensorc")
logger.addHandler(logging.NullHandler())  # quiet where nobody asks: warnings too, which the package gives by itself
logging.addLevelName(TRACE, "TRACE") if logging.getLevelName(TRACE).startswith("Level ") else None


def level() -> int:
    """What the logger wants now, by its own level and those above it."""
    for number in (TRACE, logging.DEBUG, logging.INFO, logging.WARNING):
        if logger.isEnabledFor(number):
            return number
    return logging.CRITICAL


def log(number: int, text: str, file: str, line: int, seconds: float) -> None:
    """Handles a message of the library's, with the time at which it was made."""
    record = logger.makeRecord(logger.name, number, file, line, text, (), None)
    record.relativeCreated += (seconds - record.created) * 1000
    record.created, record.msecs = seconds, seconds % 1 * 1000
    logger.handle(record)
