"""Products in bfloat16 with float32 weights, products by packed weights, and dropout from 16-bit draws.

bfloat16 has 8 significant bits: one product is right to about 2⁻⁸ = 0.4 % of its largest term.
"""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from clearhead.model import linear as module
from clearhead.model.linear import Dropout, Linear, multiply_in, pack
from tests.samples import PAPER, VARIANTS, make_model, random_ids, random_source

INPUTS, OUTPUTS = 5, 3


def make_linear(bias: bool = True, product: torch.dtype = torch.bfloat16) -> Linear:
    linear = Linear(INPUTS, OUTPUTS, bias)
    for parameter in linear.parameters():
        nn.init.normal_(parameter)
    multiply_in(linear, product)
    return linear


def gradients(linear: Linear, x: Tensor, outer: Tensor, rows: slice) -> tuple[Tensor, dict[str, Tensor]]:
    """The output, and the gradients of sum(output · outer)."""
    x = x.clone().requires_grad_()
    linear.zero_grad()
    y = linear(x, rows)
    (y.float() * outer).sum().backward()
    found = {"x": x.grad, **{name: parameter.grad for name, parameter in linear.named_parameters()}}
    return y.detach(), {name: gradient for name, gradient in found.items() if gradient is not None}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [slice(None), slice(0, 2), slice(1, None)], ids=["all", "first", "last"])
def test_bfloat16_is_close_to_float32(bias: bool, rows: slice) -> None:
    linear = make_linear(bias)
    x, outer = torch.randn(2, 7, INPUTS), torch.randn(2, 7, len(range(OUTPUTS)[rows]))
    low, low_gradients = gradients(linear, x, outer, rows)
    multiply_in(linear, torch.float32)
    exact, exact_gradients = gradients(linear, x, outer, rows)
    assert (low.dtype, exact.dtype) == (torch.bfloat16, torch.float32)
    assert_close(low.float(), exact, rtol=0.02, atol=0.05)
    assert not torch.equal(low.float(), exact)
    assert list(low_gradients) == list(exact_gradients) == ["x", "weight"] + ["bias"] * bias
    for name, gradient in low_gradients.items():
        assert gradient.dtype == torch.float32
        assert_close(gradient, exact_gradients[name], rtol=0.02, atol=0.1)


def test_gradient_of_the_bias_is_summed_in_float32() -> None:
    """The rows of a large batch: 1021 is not a bfloat16 number."""
    linear, rows = make_linear(), 1021
    linear(torch.randn(rows, INPUTS)).float().sum().backward()
    assert linear.bias.grad is not None
    assert linear.bias.grad.tolist() == [rows] * OUTPUTS


def test_float32_is_nn_linear() -> None:
    ours, theirs = make_linear(product=torch.float32), nn.Linear(INPUTS, OUTPUTS)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 7, INPUTS)
    assert torch.equal(ours(x), theirs(x))
    assert_close(ours(x, slice(1, 3)), theirs(x)[..., 1:3])


def is_fresh(linear: Linear) -> bool:
    return torch.equal(linear.low_weight(), linear.weight.detach().bfloat16())


def test_low_copy_is_made_once() -> None:
    linear, x = make_linear(), torch.randn(2, INPUTS)
    copied = linear.low_weight()
    assert copied.dtype == torch.bfloat16
    for _ in range(2):
        linear(x).float().sum().backward()
    assert linear.low_weight() is copied
    assert is_fresh(linear)


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
    "adam-loop": lambda model: torch.optim.Adam(model.parameters(), lr=0.1, foreach=False),
    "adam-foreach": lambda model: torch.optim.Adam(model.parameters(), lr=0.1, foreach=True),
    "adam-fused": lambda model: torch.optim.Adam(model.parameters(), lr=0.1, fused=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_low_copy_follows_an_update(name: str) -> None:
    linear, x = make_linear(), torch.randn(2, INPUTS)
    optimizer = OPTIMIZERS[name](linear)
    for _ in range(3):
        before = linear.low_weight()
        linear(x).float().sum().backward()
        optimizer.step()
        assert is_fresh(linear)
        assert linear.low_weight() is not before


CHANGES: dict[str, Callable[[Linear, Tensor], object]] = {
    "load_state_dict": lambda linear, new: linear.load_state_dict({"weight": new, "bias": new[:, 0]}),
    "assign": lambda linear, new: linear.load_state_dict({"weight": new, "bias": new[:, 0]}, assign=True),
    "in place": lambda linear, new: linear.weight.detach().copy_(new),
    "in place under no_grad": lambda linear, new: torch.no_grad()(linear.weight.copy_)(new),
    "initialised": lambda linear, _: nn.init.xavier_uniform_(linear.weight),
}


@pytest.mark.parametrize("name", CHANGES)
def test_low_copy_follows_a_change(name: str) -> None:
    linear = make_linear()
    before = linear.low_weight()
    CHANGES[name](linear, torch.randn(OUTPUTS, INPUTS))
    assert not torch.equal(linear.weight.detach().bfloat16(), before)
    assert is_fresh(linear)


def test_low_copy_follows_another_parameter() -> None:
    """Tying puts another tensor in the weight's place, perhaps changed as often."""
    linear, other = make_linear(), make_linear()
    linear.low_weight()
    linear.weight = other.weight
    assert is_fresh(linear)


def test_low_copy_of_a_copied_module_follows_its_own_weight() -> None:
    linear, other = make_linear(), make_linear()
    linear.low_weight()
    twin = copy.deepcopy(linear)
    twin.load_state_dict(other.state_dict())
    assert is_fresh(twin)
    assert is_fresh(linear)


def test_low_copy_follows_the_type() -> None:
    linear = make_linear()
    for product in (torch.bfloat16, torch.float16):
        multiply_in(linear, product)
        assert linear.low_weight().dtype == product


def test_low_copy_made_while_searching_serves_training_too() -> None:
    linear, x = make_linear(), torch.randn(2, INPUTS)
    with torch.inference_mode():
        linear(x)
        copied = linear.low_weight()
    linear(x).float().sum().backward()
    assert linear.low_weight() is copied
    assert linear.weight.grad is not None


def test_state_dict_knows_nothing_of_bfloat16() -> None:
    model = make_model(PAPER)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    multiply_in(model, torch.bfloat16)
    model(*random_source(2, 3), random_ids(2, 3)).float().sum().backward()
    after = model.state_dict()
    assert list(after) == list(before)
    for name, tensor in after.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, before[name])


def test_multiply_in_reaches_every_linear() -> None:
    model = make_model(PAPER)
    multiply_in(model, torch.bfloat16)
    products = [module.product for module in model.modules() if isinstance(module, nn.Linear)]
    assert len(products) == 3 * 4 + 2 * 6 + 1  # projections, W_O, and two of feed-forward per block; the output
    assert set(products) == {torch.bfloat16}
    assert make_model(PAPER).output.product == torch.float32  # other models are left alone


@pytest.mark.parametrize(
    "name",
    ["paper", "gru-attention", "lstm-context"],
)
def test_bfloat16_model_is_close_to_float32(name: str) -> None:
    model, inputs = make_model(VARIANTS[name]), (*random_source(2, 3), random_ids(2, 3))
    exact = model.logits(model(*inputs))
    multiply_in(model, torch.bfloat16)
    low = model.logits(model(*inputs))
    assert low.dtype == torch.bfloat16
    assert_close(low.float(), exact, rtol=0, atol=0.05 * exact.abs().max().item())


def test_bfloat16_model_learns() -> None:
    model = make_model(replace(PAPER, encoder_blocks=1, decoder_blocks=1, dropout=0.0)).train()
    multiply_in(model, torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    src, src_mask, tgt = *random_source(2, 3), random_ids(2, 5)
    losses = []
    for _ in range(11):
        logits = model.logits(model(src, src_mask, tgt[:, :-1])).float()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[5] < losses[0]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_at_its_rate_everywhere(rate: float) -> None:
    n = 80_021
    dropped = Dropout(rate)(torch.ones(n)) == 0
    for share in (dropped, dropped[::4], dropped[1::4], dropped[2::4], dropped[3::4]):  # four draws from each number
        deviation = (rate * (1 - rate) / len(share)) ** 0.5
        assert abs(share.float().mean().item() - rate) < 5 * deviation
    both = (dropped[:-1] & dropped[1:]).float().mean().item()  # neighbours are dropped independently
    assert abs(both - rate**2) < 5 * (rate**2 * (1 - rate**2) / n * 3) ** 0.5


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_keeps_the_mean(rate: float) -> None:
    x = torch.rand(80_021) + 1
    y = Dropout(rate)(x)
    kept = y != 0
    assert_close(y[kept], x[kept] / (1 - rate), rtol=1e-4, atol=0)  # the rate is rounded to 1/65,536
    deviation = (rate / (1 - rate) / len(x)) ** 0.5 * x.square().mean().sqrt().item()
    assert abs((y - x).mean().item()) < 5 * deviation


def test_dropout_is_nothing_in_eval_mode_or_at_rate_zero() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (2, 3), (4, 4), (0, 3), ()], ids=str)
def test_dropout_keeps_the_shape_and_at_least_float32(shape: tuple[int, ...]) -> None:
    """What is bfloat16 comes out in float32, the type of the sum that it goes into: 1/(1 - rate) is not rounded."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        y = Dropout(0.5)(torch.ones(shape, dtype=dtype))
        assert (y.shape, y.dtype) == (shape, torch.promote_types(dtype, torch.float32))
        assert set(y.flatten().tolist()) <= {0.0, 2.0}


def test_dropout_of_what_does_not_lie_in_order() -> None:
    x = torch.arange(1.0, 36).view(5, 7)
    torch.manual_seed(3)
    y = Dropout(0.5)(x.t())
    torch.manual_seed(3)
    assert torch.equal(y, Dropout(0.5)(x.t().contiguous()))


def test_gradient_goes_where_the_value_went() -> None:
    x, outer = torch.randn(3, 5, 7, requires_grad=True), torch.randn(3, 5, 7)
    y = Dropout(0.3)(x)
    (gradient,) = torch.autograd.grad(y, x, outer)
    assert 0 < (y == 0).sum() < y.numel()
    assert_close(gradient, outer * (y / x).detach())


def test_dropout_obeys_the_seed() -> None:
    def draw(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return torch.cat([Dropout(0.5)(torch.ones(3, 5, 7)) for _ in range(2)])

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(5))
    first, second = draw(3).chunk(2)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("bias", [True, False])
def test_packed_weights_give_the_same_products(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKED_FROM", 1)
    linear = make_linear(bias, torch.float32)
    for rows in (slice(None), slice(0, 2), slice(1, None)):
        x = torch.randn(2, 7, INPUTS)
        exact = linear(x, rows)
        pack(linear)
        with torch.no_grad():
            assert_close(linear(x, rows), exact)
            linear.weight.mul_(2)  # noticed
            assert_close(linear(x, rows), F.linear(x, linear.weight[rows], linear.bias[rows] if bias else None))
        assert linear(x, rows).requires_grad  # which the packed ones cannot have


@pytest.mark.parametrize("then", [F.relu, F.gelu, None])
def test_what_follows_a_product_is_the_same_however_it_is_computed(
    then: Callable[[Tensor], Tensor] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACKED_FROM", 1)
    linear, x = make_linear(True, torch.float32), torch.randn(2, 7, INPUTS)
    plain = linear(x)
    assert plain.min() < 0
    expected = plain if then is None else then(plain)
    assert_close(linear(x, then=then), expected)
    pack(linear)
    with torch.no_grad():
        assert_close(linear(x, then=then), expected)
    multiply_in(linear, torch.bfloat16)
    assert_close(linear(x, then=then).float(), expected, rtol=0.02, atol=0.05)


@pytest.mark.parametrize(("rows", "packed_for_one", "calls"), [(1, 10**9, 0), (1, 1, 1), (2, 10**9, 1)])
def test_one_row_takes_only_the_largest_packed_weights(
    rows: int, packed_for_one: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACKED_FROM", 1)
    monkeypatch.setattr(module, "PACKED_FOR_ONE", packed_for_one)
    linear, x = make_linear(True, torch.float32), torch.randn(rows, 1, INPUTS)
    exact = linear(x)
    pack(linear)
    taken: list[slice] = []
    packed = module._PACKED[linear].rows

    def noticed(_: object, rows: slice) -> torch.Tensor:
        taken.append(rows)
        return packed(rows)

    monkeypatch.setattr(module._Packed, "rows", noticed)
    with torch.no_grad():
        assert_close(linear(x), exact)
    assert len(taken) == calls


def test_only_large_weights_are_packed() -> None:
    small, large = Linear(7, 11), Linear(700, 1100)
    pack(nn.ModuleList([small, large]))
    assert small not in module._PACKED
    assert large in module._PACKED
    assert "_PACKED" not in copy.deepcopy(large).__dict__
