"""Where the server listens, and its limits; `GET /v1/info` shows the latter."""

import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from clearhead.errors import USAGE, UserError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes and characters, times in seconds."""

    body: int = 1 << 20
    headers: int = 64
    header_bytes: int = 16 << 10
    characters: int = 5_000  # of one text
    texts: int = 128
    request_characters: int = 50_000
    alternatives: int = 5
    beam: int = 8
    length: int = 512  # tokens that /v1/generate writes
    json_depth: int = 8
    attention_cells: int = 2_000_000  # layers × heads × target tokens × source tokens that /v1/inspect shows
    traces: int = 32  # that are kept to be asked for again
    queue: int = 512  # texts that wait
    queue_seconds: float = 4.0  # that the last of them may have to wait; whoever is refused can try elsewhere
    connections: int = 2_048
    connections_per_address: int = 32  # unless it is this machine
    header_seconds: float = 10.0
    request_seconds: float = 20.0  # for all of it to arrive
    idle_seconds: float = 5.0  # between two requests of a connection
    stall_seconds: float = 30.0  # without reading what was sent
    deadline: float = 30.0  # for an answer
    drain_seconds: float = 25.0
    batch_seconds: float = 0.25  # that a batch should take: cancelling and deadlines act between batches
    beat_seconds: float = 15.0  # without a sign of life, after which the engine is taken for hung
    stuck_seconds: float = 60.0  # that no batch takes
    quarantine_seconds: float = 600.0  # for a text that has killed the engine twice
    requests_per_minute: int = 60  # of one key or address; of this machine as many as it likes
    characters_per_minute: int = 100_000


@dataclass(frozen=True)
class ServeOptions:
    """What the command line says. `engine_command` takes the models' folders as its arguments."""

    models: list[Path]
    host: str = "127.0.0.1"
    port: int = 5000
    api_keys: Path | None = None
    public_hosts: list[str] = field(default_factory=list)  # further names that clients may call this server by
    allow_anonymous: bool = False
    limits: Limits = field(default_factory=Limits)
    engine_command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "clearhead.serve.engine"])

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK


def require_installed() -> None:
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        message = f"{' and '.join(missing)} is not installed, which serve needs. Next: pip install 'clearhead[serve]'"
        raise UserError("NO_SERVE", message, USAGE)
