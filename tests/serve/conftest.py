"""Servers that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tiny_model import write_model

from .running import Running, real, started, with_options

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from .pages import Open


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="session")
def server(model: Path) -> Iterator[Running]:
    """`clearhead serve`, for all that leave it as it was."""
    with started(real(model)) as running:
        yield running


@pytest.fixture(scope="module")
def copier(model: Path) -> Iterator[Running]:
    """The real front, and an engine that copies at once."""
    with started(with_options(model, seconds=0.0, limits={"attention_cells": 5_000})) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    pytest.importorskip("playwright")
    from tests.browsing import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser: "Browser") -> "Iterator[Open]":
    """Open the page of a server; afterwards nothing complained, and no other host was asked for anything."""
    from .pages import opener

    with opener(browser) as open_at:
        yield open_at
