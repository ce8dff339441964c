"""One JSON object a line on stderr: what happened, with numbers and ids. No text, no address, no key ever gets here."""

import json
import logging
import sys
import time
import traceback
from types import TracebackType


def log(event: str, **facts: object) -> None:
    """`facts` are sizes, times, ids and codes of our own."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(json.dumps({"time": now, "event": event, **facts}), file=sys.stderr, flush=True)


class OursToo(logging.Handler):
    """What libraries log: the place and the kind of an exception, and none of the words, which may quote a text."""

    def emit(self, record: logging.LogRecord) -> None:
        facts: dict[str, object] = {"logger": record.name, "level": record.levelname.lower()}
        if record.exc_info and record.exc_info[0] is not None:
            facts |= {"exception": record.exc_info[0].__name__, "frames": _frames(record.exc_info[2])}
        log("library", **facts)


def take_over_logging() -> None:
    logging.basicConfig(level=logging.ERROR, handlers=[OursToo()], force=True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate, logger.level = [], True, logging.ERROR


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
