"""F45: Schemathesis reads /spec and tries what it allows and forbids; no answer may be one that it does not name."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiny_model import write_generator

from .running import Running, started, with_options

SOAK = bool(os.environ.get("CLEARHEAD_SOAK"))


@pytest.fixture(scope="module")
def copier(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One that copies, and one that continues texts."""
    writer = write_generator(tmp_path_factory.mktemp("writes") / "writer")
    limits = {"attention_cells": 5_000, "length": 19}
    with started(with_options(model, models=[str(model), str(writer)], seconds=0.0, limits=limits)) as running:
        yield running


@pytest.mark.slow
def test_F45_the_server_keeps_to_its_own_document(copier: Running, tmp_path: Path) -> None:
    """Two of its checks are not ours: some languages are no pair, and a timeout of a millisecond is a 503."""
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{copier.url}/spec", "--no-color", "--seed", "7",
        "--exclude-checks", "positive_data_acceptance,not_a_server_error",
        "--phases", "examples,coverage,fuzzing,stateful" if SOAK else "coverage,fuzzing",
        "--max-examples", "300" if SOAK else "3", "--request-timeout", "30",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=3_000 if SOAK else 300, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
    assert not copier.events("library")
    assert not copier.events("engine_lost")
    assert not [entry for entry in copier.events("request") if entry["status"] == 500]
