"""More processes for the native engine: a search is many small steps of Python, which one process cannot do at once.

They are started when there is work for them and end with their input, so also when this process is killed.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.data.features import Source
from clearhead.decoding import DecodingOptions, Demand, Hypothesis

Found = tuple[list[int], list[list[Hypothesis]]]  # places, and their hypotheses
ENOUGH = 8  # processes; beyond that each gets more threads


class Workers:
    """As many processes as there are cores, all with the weights whose SHA-256 is `weights`.

    They multiply in this type, as the engine does that they belong to: a search must not depend on who makes it.
    """

    def __init__(self, folder: Path, weights: str, cores: int, product: str) -> None:
        count = min(cores, ENOUGH)
        command = [sys.executable, "-m", "clearhead.engines.worker", str(folder), str(cores // count), product]
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores // count)}
        self._weights = weights
        self._processes = [self._start(command, environment) for _ in range(count)]
        self._ready: set[int] = set()
        self._lost: set[int] = set()
        for i in range(count):
            threading.Thread(target=self._wait, args=(i,), daemon=True).start()

    @property
    def are_ready(self) -> bool:
        """All that are left of them."""
        return bool(self._ready) and len(self._ready) + len(self._lost) == len(self._processes)

    @property
    def count(self) -> int:
        return len(self._ready)

    def translate(self, batches: "Batches") -> Iterator[Found]:
        """Take batches until none is left; what a worker that dies had begun is put back."""
        results: queue.SimpleQueue[Found | None] = queue.SimpleQueue()
        hired = list(self._ready)
        for i in hired:
            threading.Thread(target=self._serve, args=(i, batches, results), daemon=True).start()
        still = len(hired)
        while still:
            found = results.get()
            if found is None:
                still -= 1
            else:
                yield found

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was not sent any more
                        pipe.close()

    def _start(self, command: list[str], environment: dict[str, str]) -> "subprocess.Popen[str]":
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True, env=environment)

    def _wait(self, i: int) -> None:
        (self._ready if self._read(i) == self._weights else self._lost).add(i)

    def _serve(self, i: int, batches: "Batches", results: "queue.SimpleQueue[Found | None]") -> None:
        while (places := batches.take()) is not None:
            answer = self._ask(i, batches.asked(places))
            if answer is None:
                self._ready.discard(i)
                self._lost.add(i)
                batches.put_back(places)
                break
            results.put((places, [[_hypothesis(**one) for one in some] for some in answer]))
        results.put(None)

    def _ask(self, i: int, batch: dict[str, Any]) -> Any:
        pipe = self._processes[i].stdin
        assert pipe is not None
        try:
            print(json.dumps(batch), file=pipe, flush=True)
        except OSError:
            return None
        return self._read(i)

    def _read(self, i: int) -> Any:
        """One answer; none if the process has died."""
        pipe = self._processes[i].stdout
        assert pipe is not None
        try:
            return json.loads(pipe.readline() or "null")
        except (OSError, ValueError):
            return None


def _hypothesis(tokens: list[int], score: float, alignment: list[list[float]] | None, is_cut: bool) -> Hypothesis:
    return Hypothesis(tokens, score, None if alignment is None else np.array(alignment, np.float32), is_cut)


class Batches:
    """Sources in batches that several may take from."""

    def __init__(
        self,
        batches: Sequence[list[int]],
        sources: Sequence[Source],
        options: DecodingOptions,
        demands: Sequence[Demand] | None,
    ) -> None:
        self._left = list(reversed(batches))
        self._lock = threading.Lock()
        self.sources, self.options, self.demands = sources, options, demands

    def __len__(self) -> int:
        return len(self._left)

    def take(self) -> list[int] | None:
        with self._lock:
            return self._left.pop() if self._left else None

    def put_back(self, places: list[int]) -> None:
        with self._lock:
            self._left.append(places)

    def of(self, places: list[int]) -> tuple[list[Source], list[Demand] | None]:
        demands = None if self.demands is None else [self.demands[place] for place in places]
        return [self.sources[place] for place in places], demands

    def asked(self, places: list[int]) -> dict[str, Any]:
        """For a worker."""
        sources, demands = self.of(places)
        plain = None if demands is None else [asdict(demand) for demand in demands]
        rows = [source if isinstance(source, list) else source.tolist() for source in sources]
        return {"sources": rows, "options": asdict(self.options), "demands": plain}

    def tokens(self, places: Sequence[int]) -> int:
        return sum(len(self.sources[place]) + 1 for place in places)

    def tokens_left(self) -> int:
        with self._lock:
            return sum(self.tokens(places) for places in self._left)
