"""Servers that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiny_model import write_model

from .running import Running, started, with_options


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="module")
def copier(model: Path) -> Iterator[Running]:
    """The real front, and an engine that copies at once."""
    with started(with_options(model, seconds=0.0, limits={"attention_cells": 5_000})) as running:
        yield running
