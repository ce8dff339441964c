"""API keys: only their hashes are kept, compared in constant time; and how much a client may ask for."""

import hashlib
import hmac
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clearhead.errors import BAD_DATA, DISK, MISSING, UserError

from .options import Limits
from .refusal import RefusedError

SHORTEST = 16  # characters of a key
HASHED = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Key:
    """A hash, and the name under which its user appears in the log."""

    digest: bytes
    label: str


class Keys:
    """Those of a file."""

    def __init__(self, keys: list[Key]) -> None:
        self._keys = keys

    def label(self, key: str) -> str | None:
        """Whose key this is; every key is compared with, whichever it is."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        found = None
        for one in self._keys:
            if hmac.compare_digest(one.digest, digest):
                found = one.label
        return found


def read_keys(path: Path) -> Keys:
    """A line each: the key or `sha256:` and its hash, and a label. Nobody else may be able to read the file."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        message = f"{path} does not exist; expected a file of API keys, one a line"
        raise UserError("MISSING", message, MISSING) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("API_KEYS", f"cannot read {path}: {error}; check its permissions", DISK) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        message = f"{path} can be read by others (mode {stat.S_IMODE(mode):o}); expected 600; chmod 600 it"
        raise UserError("API_KEYS", message, BAD_DATA)
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), 1)]
    keys = [_key(path, number, words) for number, words in lines if words and not words[0].startswith("#")]
    if not keys:
        raise UserError("API_KEYS", f"{path} has no keys; expected a key and a label on each line; add one", BAD_DATA)
    return Keys(keys)


def _key(path: Path, number: int, words: list[str]) -> Key:
    label = words[1] if len(words) > 1 else f"line-{number}"
    hashed = HASHED.fullmatch(words[0])
    if len(words) > 2 or (not hashed and len(words[0]) < SHORTEST):
        message = (
            f"{path} line {number} is no key of {SHORTEST} characters or more, or sha256: and its hash, with a label "
            "of one word or none; correct it"
        )
        raise UserError("API_KEYS", message, BAD_DATA)
    digest = bytes.fromhex(hashed[1]) if hashed else hashlib.sha256(words[0].encode()).digest()
    return Key(digest, label)


@dataclass
class _Bucket:
    requests: float
    characters: float
    filled: float


class Rates:
    """Requests and characters a minute for each client: a bucket that fills again at that rate."""

    MOST = 10_000  # clients that are remembered

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._buckets: dict[str, _Bucket] = {}

    def spend(self, client: str, characters: int) -> None:
        """A RefusedError if that is more than there is."""
        bucket = self._bucket(client)
        lack = max(
            (1 - bucket.requests) / self._limits.requests_per_minute,
            (min(characters, self._limits.characters_per_minute) - bucket.characters)
            / self._limits.characters_per_minute,
        )
        if lack > 0:
            raise RefusedError(
                429, "too_many_requests", "Slowdown: too many requests or characters a minute", 60 * lack
            )
        bucket.requests -= 1
        bucket.characters -= characters

    def _bucket(self, client: str) -> _Bucket:
        now = self._clock()
        requests, characters = self._limits.requests_per_minute, self._limits.characters_per_minute
        if client not in self._buckets and len(self._buckets) >= self.MOST:
            self._buckets = {name: old for name, old in self._buckets.items() if now - old.filled < 60}
        bucket = self._buckets.setdefault(client, _Bucket(requests, characters, now))
        minutes = (now - bucket.filled) / 60
        bucket.requests = min(requests, bucket.requests + requests * minutes)
        bucket.characters = min(characters, bucket.characters + characters * minutes)
        bucket.filled = now
        return bucket
