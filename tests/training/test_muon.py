"""Muon: orthogonal steps against the singular value decomposition, the rest against torch's Adam, which is which."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.data.batching import make_batch
from clearhead.model import ModelOptions
from clearhead.training import muon
from clearhead.training.distributed import Team
from clearhead.training.loss import batch_loss
from clearhead.training.muon import FASTER, MOMENTUM, SIZE, Muon, inner_matrices, orthogonal, orthogonal_each
from clearhead.training.options import TrainingOptions
from clearhead.training.step import make_optimizer, set_rate, update
from tests.samples import PAPER, make_model
from tests.training.test_loss import PAIRS, each_kind

MUON = TrainingOptions(optimizer="muon")


def orthogonal_one(matrix: Tensor, product: torch.dtype = torch.float32) -> Tensor:
    return orthogonal(matrix[None], product)[0].float()


@pytest.mark.parametrize(("product", "error"), [(torch.float32, 1e-4), (torch.bfloat16, 0.03)], ids=str)
@pytest.mark.parametrize("shape", [(7, 7), (23, 7), (7, 23)])
def test_an_orthogonal_step_has_the_directions_of_the_gradient_and_one_size_for_all(
    shape: tuple[int, int], product: torch.dtype, error: float
) -> None:
    torch.manual_seed(3)
    matrix = torch.randn(shape)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    found = u.t() @ orthogonal_one(matrix, product) @ v.t()  # diagonal if the directions are the same
    assert found.diagonal().min() > 0.6
    assert found.diagonal().max() < 1.3
    torch.testing.assert_close(found, found.diagonal().diag(), atol=error, rtol=0)


def test_many_of_several_shapes_are_as_each_alone() -> None:
    matrices = [torch.randn(shape) for shape in [(7, 7)] * 6 + [(23, 7), (7, 7), (7, 23), (23, 7)]]
    for matrix, made in zip(matrices, orthogonal_each(matrices), strict=True):
        torch.testing.assert_close(made, orthogonal_one(matrix))


@pytest.mark.parametrize("precision", ["auto", "float32", "bfloat16"])
def test_they_are_made_in_the_precision_of_the_run(precision: str) -> None:
    model = make_model(replace(PAPER, dropout=0.0))
    weight = dict(model.named_parameters())["decoder.0.feed_forward.outer.weight"]
    before = weight.detach().clone()
    optimizer = make_optimizer(model, replace(MUON, precision=precision))
    set_rate(optimizer, 0.01)
    gradient = torch.randn_like(weight)
    weight.grad = gradient.clone()
    optimizer.step()
    product = torch.bfloat16 if precision == "bfloat16" else torch.float32
    step = 0.01 * SIZE * max(weight.shape) ** 0.5 * orthogonal_one(gradient * (1 - MOMENTUM**2), product)
    torch.testing.assert_close(before - weight.detach(), step)


@pytest.mark.parametrize("smallest", [1.0, 1e-3], ids=["all alike", "some far smaller"])
def test_a_wide_matrix_is_as_orthogonal_by_small_squares_as_by_itself(
    smallest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    u, _, v = torch.linalg.svd(torch.randn(7, 23), full_matrices=False)
    matrix = u * torch.logspace(0, math.log10(smallest), 7) @ v
    by_squares = orthogonal_one(matrix), orthogonal_one(matrix.t()).t()
    monkeypatch.setattr(muon, "WIDE", math.inf)
    torch.testing.assert_close(by_squares, (orthogonal_one(matrix),) * 2, atol=1e-4, rtol=0)


def test_the_inner_matrices_are_all_but_embeddings_and_output() -> None:
    model = make_model(replace(PAPER, tied="target"))
    names: dict[Tensor, str] = {weight: name for name, weight in model.named_parameters()}
    rows = {names[weight]: rows for weight, rows in inner_matrices(model).items()}
    matrices = {name for name, weight in model.named_parameters() if weight.ndim == 2 and "embedding" not in name}
    assert set(rows) == matrices
    for name, weight in model.named_parameters():
        if name in rows:
            assert rows[name] == (len(weight) // 3 if name.endswith("projections.weight") else len(weight)), name


def test_stacked_matrices_move_as_each_would_alone() -> None:
    model = make_model(replace(PAPER, dropout=0.0))
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    batch = make_batch(PAIRS)
    batch_loss(model, batch, 0.1, batch.tokens).backward()
    optimizer = Muon(model, (0.9, 0.98), 1e-9)
    set_rate(optimizer, 0.01)
    optimizer.step()
    name = "encoder.0.attention.projections.weight"
    weight = dict(model.named_parameters())[name]
    assert weight.grad is not None
    for old, new, gradient in zip(*(x.chunk(3) for x in (before[name], weight.detach(), weight.grad)), strict=True):
        step = 0.01 * SIZE * max(gradient.shape) ** 0.5 * orthogonal_one(gradient * (1 - MOMENTUM**2))
        torch.testing.assert_close(new, old - step)


def test_the_second_step_remembers_the_first() -> None:
    """By hand: m = 0.95 m + 0.05 g, and the step is along 0.05 g + 0.95 m."""
    model = make_model(replace(PAPER, dropout=0.0))
    weight = dict(model.named_parameters())["decoder.0.feed_forward.outer.weight"]
    optimizer = Muon(model, (0.9, 0.98), 1e-9)
    set_rate(optimizer, 0.01)
    torch.manual_seed(7)
    first, second = torch.randn(2, *weight.shape)
    for gradient in (first, second):
        before = weight.detach().clone()
        weight.grad = gradient.clone()
        optimizer.step()
    momentum = 0.95 * 0.05 * first + 0.05 * second
    wanted = orthogonal_one(0.05 * second + 0.95 * momentum)
    torch.testing.assert_close(before - weight.detach(), 0.01 * SIZE * max(weight.shape) ** 0.5 * wanted)


@each_kind
def test_what_is_no_inner_matrix_moves_as_with_adam_at_a_higher_rate(kind: ModelOptions) -> None:
    ours, theirs = make_model(kind), make_model(kind)
    theirs.load_state_dict(ours.state_dict())
    batch, optimizers = make_batch(PAIRS), (make_optimizer(ours, MUON), make_optimizer(theirs))
    for model, optimizer, rate in zip((ours, theirs), optimizers, (0.01, 0.01 * FASTER), strict=True):
        update(model, [batch], optimizer, rate, 0.1)
    inner = inner_matrices(ours)
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if one in inner:
            assert not torch.equal(one, other), name
        else:
            torch.testing.assert_close(one, other, msg=name)


@each_kind
def test_it_learns(kind: ModelOptions) -> None:
    torch.manual_seed(5)
    model, batch = make_model(kind), make_batch(PAIRS)
    optimizer = make_optimizer(model, MUON)
    losses: list[Tensor] = [update(model, [batch], optimizer, 0.01, 0.0) for _ in range(37)]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("product", [torch.float32, torch.bfloat16])
def test_several_processes_make_the_same_matrices_as_one(product: torch.dtype) -> None:
    """Each makes its share; together, added up, they have what one alone has."""
    matrices = [torch.randn(shape) for shape in [(7, 7), (23, 7), (7, 23), (11, 11), (5, 3)]]
    shares: list[Tensor] = []

    class Recording(Team):
        def add_up(self, tensor: Tensor) -> None:
            shares.append(tensor)

    for rank in range(3):
        Muon(make_model(PAPER), (0.9, 0.98), 1e-9, Recording(rank, 3), product)._orthogonal(matrices)
    alone = Muon(make_model(PAPER), (0.9, 0.98), 1e-9, product=product)._orthogonal(matrices)
    together = torch.cat([matrix.flatten() for matrix in alone])
    assert together.dtype == product
    assert torch.equal(sum(shares, torch.zeros((), dtype=product)), together)
