"""Make what is logged printable and free of secrets: messages quote files and servers."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .formatting import printable_lines
from .redaction import scrub


@contextmanager
def printable_logs() -> Iterator[None]:
    """Hide secrets and escape control characters in all log records within this block."""
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(_escaping(before))
    try:
        yield
    finally:
        logging.setLogRecordFactory(before)


def make_logs_printable() -> None:
    """Hide secrets and escape control characters in all that this process logs from now on."""
    logging.setLogRecordFactory(_escaping(logging.getLogRecordFactory()))


def _escaping(make: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    def escaped(*args: Any, **more: Any) -> logging.LogRecord:
        record = make(*args, **more)
        _escape(record)
        return record

    return escaped


def _escape(record: logging.LogRecord) -> None:
    try:
        message = record.getMessage()
    except (TypeError, ValueError):
        return  # Its handler says that the message and its values do not match
    text = printable_lines(scrub(message))
    if text != message:
        record.msg = text
        record.args = None
    if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
        # Formatters print it as it is.
        lines = "".join(traceback.format_exception(*record.exc_info))
        record.exc_text = printable_lines(scrub(lines.removesuffix("\n")))
