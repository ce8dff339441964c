"""Which outputs are finished, and of which work: so that `--resume` does not do them again.

It is noted in the user's cache and not beside the output: a translation leaves one file. Where the note is gone
(another machine, a cache that was cleared) a finished job is only done once more.
"""

import contextlib
import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import TEMPORARY
from clearhead.data.folders import default_cache

from .writing import Reached, Work

KEPT = 90 * 86_400  # seconds; then a note is removed


def note_finished(output: Path, partial: Path, work: Work, reached: Reached) -> None:
    """Before `partial` gets the name of the output, so that no kill comes between; the note holds what it will be.

    A cache that cannot be written costs a translation at most, so it is no error.
    """
    path = _note_of(output)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("*.json"):
            if old.stat().st_mtime < time.time() - KEPT:
                old.unlink(missing_ok=True)
        note: dict[str, Any] = {"output": str(output.absolute()), "work": asdict(work), "sha256": _digest(partial)}
        note |= {"lines": reached.lines, "warnings": dict(reached.warnings)}
        scratch = path.with_name(f"{TEMPORARY}{path.name}")
        scratch.write_text(json.dumps(note), encoding="utf-8")
        scratch.replace(path)


def finished_lines(output: Path, work: Work) -> int | None:
    """How many lines a finished output of this work has; none if it is not known to be one, or was changed since."""
    try:
        note = json.loads(_note_of(output).read_bytes())
        if note["work"] == asdict(work) and note["sha256"] == _digest(output):
            return int(note["lines"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _note_of(output: Path) -> Path:
    name = hashlib.sha256(str(output.absolute()).encode(errors="surrogateescape")).hexdigest()
    return default_cache() / "finished" / f"{name}.json"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
