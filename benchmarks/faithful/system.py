"""The code that is judged, in a process of its own: one tree with one model."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

WORKER = Path(__file__).with_name("worker.py")
AT_ONCE = 500  # texts in one call


@dataclass(frozen=True)
class Said:
    """One translation, as the public interface gives it."""

    text: str
    confidence: float | None
    warnings: list[str]
    details: dict[str, list[str]] = field(default_factory=dict)


class System:
    """`with System(tree, model) as system:` a translator of that tree."""

    def __init__(self, tree: Path, model: Path) -> None:
        self.tree, self.model = tree.resolve(), model.resolve()

    def __enter__(self) -> "System":
        # -P: nothing but the tree is on the path, not this folder.
        command = [sys.executable, "-P", str(WORKER), str(self.model)]
        environment = {**os.environ, "PYTHONPATH": str(self.tree)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment
        )
        about = self._answer()
        if Path(about["home"]).parents[1] != self.tree:
            raise SystemExit(f"{about['home']} was loaded; expected the package in {self.tree}")
        self.source_language, self.target_language = about["languages"]
        self.engine = about["engine"]
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(60)
        if self.process.stdout:
            self.process.stdout.close()

    def translate(self, texts: Sequence[str], glossary: Sequence[tuple[str, str]] = ()) -> list[Said]:
        """With everything that the package does around its model."""
        said = []
        for first in range(0, len(texts), AT_ONCE):
            some = list(texts[first : first + AT_ONCE])
            said += [Said(**one) for one in self._ask("guarded", texts=some, glossary=list(glossary))]
        return said

    def timed(self, texts: Sequence[str]) -> tuple[float, list[str]]:
        """Seconds and translations, without scores."""
        found = self._ask("timed", texts=list(texts))
        return found["seconds"], found["texts"]

    def whole(self, texts: Sequence[str]) -> list[str]:
        """Each text as one source of the engine."""
        return self._ask("whole", texts=list(texts))

    def _ask(self, what: str, **more: Any) -> Any:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"what": what, **more}, ensure_ascii=False) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the code of {self.tree} ended with {self.process.wait(60)}; its error stands above")
        return json.loads(line)
