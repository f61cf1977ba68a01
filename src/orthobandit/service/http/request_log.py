"""What the server writes of each request and of each error: JSON for machines, a line for people."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from orthobandit._foundation.checks import check_choice

STYLES = ("json", "text", "none")
REQUEST: ContextVar[str] = ContextVar("request", default="")  # the id of the request that is being answered
REQUESTS = logging.getLogger("orthobandit.requests")
TOKEN = re.compile(rb"bearer ob_([0-9a-f]{12})_", re.IGNORECASE)


class JSONLines(logging.Formatter):
    """One JSON object a record: when, how bad, who, what, the request's id, and the trace of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        if fields is not None:
            return json.dumps(line | fields)
        line["message"] = record.getMessage()
        if REQUEST.get():
            line["request"] = REQUEST.get()
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the trace of an error below it."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        if fields is not None:
            said = " ".join(str(value) for value in fields.values() if value is not None)
            return f"{at} {said}"
        request = f" [{REQUEST.get()}]" if REQUEST.get() else ""
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{at} {record.levelname}{request} {record.getMessage()}{trace}"


def configure(style: str, where: TextIO | None = None) -> None:
    """Let this process write requests and errors to `where`, stderr by default.

    Parameters
    ----------
    style : {"json", "text", "none"}
        With "none", errors alone, for people.
    where : file, optional
    """
    check_choice("log", style, STYLES)
    handler = logging.StreamHandler(where or sys.stderr)
    handler.setFormatter(JSONLines() if style == "json" else TextLines())
    for name in ("orthobandit", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING)
    REQUESTS.setLevel(logging.WARNING if style == "none" else logging.INFO)


def token_id(authorization: bytes) -> str | None:
    """Return the part of a token that is no secret, if the header has one.

    Examples
    --------
    >>> token_id(b"Bearer ob_93f1c2a07be4_secret"), token_id(b"Basic YTpi")
    ('93f1c2a07be4', None)
    """
    match = TOKEN.match(authorization)
    return match[1].decode() if match else None
