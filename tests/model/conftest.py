"""What all tests of the models share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small gain nothing from a second thread, and wait for it whenever the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same random numbers, whether a test runs alone or after others."""
    torch.manual_seed(11)


@pytest.fixture
def in_float64() -> Iterator[None]:
    """Models and input made in this test are exact to 1e-16, so that a small leak is told from rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
