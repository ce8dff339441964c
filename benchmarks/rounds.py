"""Peers in turn: each once per round, so that a slow minute slows all of them; one that fails drops out."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks.environments import python_of
from benchmarks.peers import Peer, PeerError

Answered = TypeVar("Answered")


@dataclass(frozen=True)
class Start:
    """How a peer is started: its script, what it is given, and the environment that it lives in (else ours)."""

    script: str
    arguments: list[str]
    environment: str = ""

    def __call__(self) -> Peer:
        python: Path | None = python_of(self.environment) if self.environment else None
        return Peer(self.script, self.arguments, python)


@dataclass
class Field:
    """Those that run, and the errors of those that do not."""

    peers: dict[str, Peer] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def each_round(self, rounds: int, ask: Callable[[str, Peer, int], Answered | None]) -> dict[str, list[Answered]]:
        """What `ask` gave of each peer in each round; round 0 is to warm up, and None is not counted."""
        found: dict[str, list[Answered]] = {name: [] for name in self.peers}
        for turn in range(rounds + 1):
            for name, peer in list(self.peers.items()):
                try:
                    value = ask(name, peer, turn)
                except PeerError as error:
                    self.errors[name] = str(error)
                    del self.peers[name], found[name]
                    continue
                if turn and value is not None:
                    found[name].append(value)
        return {name: values for name, values in found.items() if values}


@contextmanager
def started(starts: dict[str, Start]) -> Iterator[Field]:
    """All that can be installed and started."""
    with ExitStack() as stack:
        running = Field()
        for name, start in starts.items():
            try:
                running.peers[name] = stack.enter_context(start())
            except PeerError as error:
                running.errors[name] = str(error)
        yield running
