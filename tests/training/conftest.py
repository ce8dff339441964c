"""The toy corpus, and undisturbed runs on it for the disturbed ones to be compared with."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .toy import Toy

Straight = Callable[..., Path]


@pytest.fixture(scope="package")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEARHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("WORLD_SIZE", raising=False)
        yield Toy(tmp_path_factory.mktemp("corpus")).write()


@pytest.fixture(scope="package")
def straight(toy: Toy, tmp_path_factory: pytest.TempPathFactory) -> Straight:
    """A function of --set options: the folder of a run with them that nothing disturbed."""
    runs: dict[tuple[str, ...], Path] = {}

    def run(*sets: str) -> Path:
        if sets not in runs:
            runs[sets] = tmp_path_factory.mktemp("straight") / "run"
            assert toy.train(runs[sets], *sets) == 0
        return runs[sets]

    return run


@pytest.fixture
def fail_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that sets the failpoints; "" for none."""

    def set_failpoints(points: str) -> None:
        monkeypatch.setenv("CLEARHEAD_TESTING", "1")
        monkeypatch.setenv("CLEARHEAD_FAILPOINT", points)

    return set_failpoints
