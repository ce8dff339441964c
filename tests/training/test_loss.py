"""The fused loss against torch's own on all logits, value and gradients; one update; the learning rate.

N target tokens that are not padding, D width, V vocabulary.
"""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.batching import make_batch
from clearhead.data.tokenizer import PAD
from clearhead.decoding import DecodingOptions, search
from clearhead.model import ModelOptions
from clearhead.model.linear import Linear, multiply_in
from clearhead.training import loss as loss_module
from clearhead.training.loss import batch_loss, cross_entropy
from clearhead.training.schedule import inverse_square_root
from clearhead.training.step import make_optimizer, update
from tests.samples import LSTM, PAPER, TARGET_WORDS, make_model

D, V = 11, TARGET_WORDS
TWO_KINDS: dict[str, ModelOptions] = {
    "transformer": replace(PAPER, dropout=0.0),
    "rnn": replace(LSTM, cell="gru", dropout=0.0),
}
PAIRS = [([5, 6, 7], [6, 7]), ([8], [7, 8, 9, 10, 11]), ([], [4]), ([16, 15, 14, 13, 12], [])]

each_kind = pytest.mark.parametrize("kind", TWO_KINDS.values(), ids=TWO_KINDS.keys())
each_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1])
each_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])


def random_output(bias: bool) -> Linear:
    output = Linear(D, V, bias)
    for parameter in output.parameters():
        torch.nn.init.normal_(parameter)
    return output


def random_targets(sentences: int, length: int) -> Tensor:
    """Ids, and padding at the end of every row but the first."""
    lengths = length - torch.arange(sentences) % 5
    return torch.randint(1, V, (sentences, length)).where(torch.arange(length) < lengths[:, None], PAD)


def plain_cross_entropy(hidden: Tensor, output: Linear, targets: Tensor, smoothing: float) -> Tensor:
    logits = F.linear(hidden, output.weight, output.bias).flatten(0, 1)
    return F.cross_entropy(logits, targets.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum")


def gradients(loss: Tensor, hidden: Tensor, output: Linear) -> tuple[Tensor, ...]:
    return torch.autograd.grad(3 * loss, [hidden, *output.parameters()])


@each_smoothing
@each_bias
@pytest.mark.parametrize("logits_per_chunk", [1, loss_module.LOGITS_PER_CHUNK], ids=["chunks", "one chunk"])
def test_the_fused_loss_is_torch_s(
    smoothing: float, bias: bool, logits_per_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "LOGITS_PER_CHUNK", logits_per_chunk)
    torch.manual_seed(1)
    output, hidden, targets = random_output(bias), torch.randn(13, 17, D, requires_grad=True), random_targets(13, 17)
    assert int((targets != PAD).sum()) % 64 > 0  # the last chunk is not full
    assert int((targets != PAD).sum()) > 2 * 64
    ours = cross_entropy(hidden, output, targets, smoothing)
    plain = plain_cross_entropy(hidden, output, targets, smoothing)
    torch.testing.assert_close(ours, plain)
    for of_ours, of_plain in zip(gradients(ours, hidden, output), gradients(plain, hidden, output), strict=True):
        torch.testing.assert_close(of_ours, of_plain, rtol=1e-5, atol=1e-5)


@each_bias
def test_smoothing_is_spread_as_told(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against torch's cross entropy with probabilities as targets."""
    monkeypatch.setattr(loss_module, "LOGITS_PER_CHUNK", 1)
    torch.manual_seed(4)
    output, hidden, targets = random_output(bias), torch.randn(13, 17, D, requires_grad=True), random_targets(13, 17)
    spread = torch.rand(V).softmax(0)
    ours = cross_entropy(hidden, output, targets, 0.3, spread)
    real = targets != PAD
    wanted = 0.7 * F.one_hot(targets[real], V) + 0.3 * spread
    plain = F.cross_entropy(F.linear(hidden[real], output.weight, output.bias), wanted, reduction="sum")
    torch.testing.assert_close(ours, plain)
    for of_ours, of_plain in zip(gradients(ours, hidden, output), gradients(plain, hidden, output), strict=True):
        torch.testing.assert_close(of_ours, of_plain, rtol=1e-5, atol=1e-5)


def test_chunks_are_as_small_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    add_product = loss_module.add_product

    def counted(total: Tensor, p: Tensor, rows: Tensor) -> None:
        sizes.append(len(rows))
        add_product(total, p, rows)

    monkeypatch.setattr(loss_module, "add_product", counted)
    monkeypatch.setattr(loss_module, "LOGITS_PER_CHUNK", 1)
    cross_entropy(torch.randn(2, 73, D), random_output(bias=False), torch.ones(2, 73, dtype=torch.long), 0.1)
    monkeypatch.setattr(loss_module, "LOGITS_PER_CHUNK", 71 * V)
    cross_entropy(torch.randn(2, 73, D), random_output(bias=False), torch.ones(2, 73, dtype=torch.long), 0.1)
    assert sizes == [64, 64, 18, 71, 71, 4]


@each_smoothing
def test_extreme_logits(smoothing: float) -> None:
    """One word at +10,000 and one at -10,000: no overflow, no log of zero."""
    torch.manual_seed(2)
    output, targets = Linear(V, V), torch.arange(1, V)[None].repeat(2, 1)
    with torch.no_grad():
        output.weight.copy_(torch.eye(V))
        output.bias.normal_()
    hidden = torch.randn(2, V - 1, V)
    hidden[0, :, 3], hidden[0, :, 5] = 1e4, -1e4
    hidden[1, :, 7], hidden[1, :, 11] = -1e4, -1e4
    hidden.requires_grad_()
    ours = cross_entropy(hidden, output, targets, smoothing)
    assert ours.isfinite()
    of_ours = gradients(ours, hidden, output)
    exact, exact_hidden = Linear(V, V).double(), hidden.detach().double().requires_grad_()
    exact.load_state_dict(output.state_dict())
    plain = plain_cross_entropy(exact_hidden, exact, targets, smoothing)
    torch.testing.assert_close(ours.double(), plain, rtol=1e-5, atol=0)
    for of_us, of_plain in zip(of_ours, gradients(plain, exact_hidden, exact), strict=True):
        torch.testing.assert_close(of_us.double(), of_plain, rtol=1e-5, atol=2e-5)


def refuse(*_: object) -> None:
    raise AssertionError("a gradient was computed that nobody asked for")


def test_no_gradient_is_computed_for_a_frozen_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "add_product", refuse)
    model, batch = make_model(PAPER).requires_grad_(False), make_batch(PAIRS)
    assert not batch_loss(model, batch, 0.1, batch.tokens).requires_grad


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_computed_without_grad_mode(
    context: type[torch.no_grad] | type[torch.inference_mode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "add_product", refuse)
    model, batch = make_model(PAPER), make_batch(PAIRS)
    with context():
        batch_loss(model, batch, 0.1, batch.tokens)


@each_smoothing
@each_bias
def test_in_bfloat16_the_loss_is_nearly_the_same(smoothing: float, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "LOGITS_PER_CHUNK", 1)  # in several chunks, as many as there can be
    torch.manual_seed(3)
    output, hidden, targets = random_output(bias), torch.randn(13, 17, D, requires_grad=True), random_targets(13, 17)
    exact = cross_entropy(hidden, output, targets, smoothing)
    of_exact = gradients(exact, hidden, output)
    multiply_in(output, torch.bfloat16)
    rough = cross_entropy(hidden, output, targets, smoothing)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=1e-2, atol=0)
    assert rough != exact
    for of_rough, of_same in zip(gradients(rough, hidden, output), of_exact, strict=True):
        assert of_rough.dtype == torch.float32
        assert (of_rough - of_same).norm() < 0.02 * of_same.norm()


@each_kind
def test_the_loss_of_a_batch_is_divided_by_the_tokens_of_its_update(kind: ModelOptions) -> None:
    model, batch = make_model(kind), make_batch(PAIRS)
    hidden = model(batch.src, batch.src_mask, batch.tgt_in)
    expected = plain_cross_entropy(hidden, model.output, batch.tgt_out, 0.1) / 7
    torch.testing.assert_close(batch_loss(model, batch, 0.1, 7), expected)


@each_kind
def test_two_halves_make_the_loss_of_the_whole(kind: ModelOptions) -> None:
    """And padding adds nothing: the halves are padded less."""
    model, whole = make_model(kind), make_batch(PAIRS)
    halves = [make_batch(PAIRS[:1]), make_batch(PAIRS[1:])]
    together = batch_loss(model, whole, 0.1, whole.tokens)
    apart = torch.stack([batch_loss(model, half, 0.1, whole.tokens) for half in halves]).sum()
    torch.testing.assert_close(together, apart)
    weights = list(model.parameters())
    for of_whole, of_halves in zip(
        torch.autograd.grad(together, weights), torch.autograd.grad(apart, weights), strict=True
    ):
        torch.testing.assert_close(of_whole, of_halves)


@each_kind
def test_an_update_is_adam_s(kind: ModelOptions) -> None:
    """Kingma & Ba's algorithm 1 with the paper's β1, β2 and ε, written out."""
    model, by_hand, batch = make_model(kind), make_model(kind), make_batch(PAIRS)
    optimizer, weights = make_optimizer(model), list(by_hand.parameters())
    first, second = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights]
    for step, rate in enumerate([0.01, 0.03, 0.02], start=1):
        update(model, [batch], optimizer, rate, 0.1)
        loss = batch_loss(by_hand, batch, 0.1, batch.tokens)
        for w, m, v, g in zip(weights, first, second, torch.autograd.grad(loss, weights), strict=True):
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.98).add_(0.02 * g**2)
            change = rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.98**step)).sqrt() + 1e-9)
            w.data -= change
    for ours, other in zip(model.parameters(), weights, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-4)


@each_kind
def test_an_update_returns_the_loss_before_it_and_lowers_it(kind: ModelOptions) -> None:
    model, batch = make_model(kind), make_batch(PAIRS)
    optimizer = make_optimizer(model)
    before = batch_loss(model, batch, 0.1, batch.tokens)
    returned = update(model, [batch], optimizer, 0.001, 0.1)
    assert not returned.requires_grad
    torch.testing.assert_close(returned, before.detach())
    assert batch_loss(model, batch, 0.1, batch.tokens) < before


@each_kind
def test_an_update_in_two_halves_is_that_of_the_whole(kind: ModelOptions) -> None:
    whole, halves = make_model(kind), make_model(kind)
    of_whole = update(whole, [make_batch(PAIRS)], make_optimizer(whole), 0.01, 0.1)
    of_halves = update(halves, [make_batch(PAIRS[:1]), make_batch(PAIRS[1:])], make_optimizer(halves), 0.01, 0.1)
    torch.testing.assert_close(of_halves, of_whole)
    # Not the weights: Adam's first step is ± the rate, even for a gradient that is nothing but rounding.
    after_whole, after_halves = (batch_loss(model, make_batch(PAIRS), 0.1, 7) for model in (whole, halves))
    torch.testing.assert_close(after_halves, after_whole, rtol=1e-3, atol=0)


def test_updates_do_not_add_up_gradients() -> None:
    model, batch = make_model(PAPER), make_batch(PAIRS)
    update(model, [batch], make_optimizer(model), 0.001, 0.1)
    assert all(weight.grad is None for weight in model.parameters())


def test_a_rate_of_zero_changes_nothing() -> None:
    model, other, batch = make_model(PAPER), make_model(PAPER), make_batch(PAIRS)
    update(model, [batch], make_optimizer(model), 0.0, 0.1)
    torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


@each_kind
def test_updates_in_bfloat16_follow_those_in_float32(kind: ModelOptions) -> None:
    """If the product kept on using the weights of the first step, the loss would hardly fall."""
    losses = []
    for product in (torch.float32, torch.bfloat16):
        model, batch = make_model(kind), make_batch(PAIRS)
        multiply_in(model, product)
        optimizer = make_optimizer(model)
        losses.append(torch.stack([update(model, [batch], optimizer, 0.01, 0.0) for _ in range(11)]))
    exact, rough = losses
    torch.testing.assert_close(rough, exact, rtol=0.05, atol=0)


def test_the_product_uses_the_weights_of_the_last_update() -> None:
    model, batch = make_model(PAPER), make_batch(PAIRS)
    multiply_in(model, torch.bfloat16)
    update(model, [batch], make_optimizer(model), 0.01, 0.1)
    torch.testing.assert_close(model.output.low_weight(), model.output.weight.detach().bfloat16(), rtol=0, atol=0)


def test_training_goes_on_after_a_search() -> None:
    """A validation between two updates must not leave behind what autograd cannot use."""
    model, batch = make_model(PAPER), make_batch(PAIRS)
    multiply_in(model, torch.bfloat16)
    search(model, batch.src, batch.src_mask, DecodingOptions(beam=1, max_length=3))
    update(model, [batch], make_optimizer(model), 0.01, 0.1)


@pytest.mark.parametrize(("width", "warmup"), [(512, 4000), (31, 7)])
def test_the_learning_rate_is_the_paper_s(width: int, warmup: int) -> None:
    peak = (width * warmup) ** -0.5
    for step in [1, 2, warmup - 1, warmup, warmup + 1, 10 * warmup, 100_003]:
        paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)  # 5.3
        assert inverse_square_root(step, peak, warmup) == pytest.approx(paper)


def test_the_learning_rate_is_highest_when_warmed_up() -> None:
    rates = [inverse_square_root(step, 0.003, 37) for step in range(1, 149)]
    assert max(rates) == rates[37 - 1] == 0.003
    assert rates[:37] == sorted(rates[:37])
    assert rates[36:] == sorted(rates[36:], reverse=True)
    assert rates[4 * 37 - 1] == pytest.approx(0.003 / 2)
