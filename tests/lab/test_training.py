"""What training shows: each direction with a wide margin, on one seed and only on the cases that matter."""

from dataclasses import replace

import pytest
import torch

from clearhead.lab import heads, masks, symmetry
from clearhead.lab.catalogue import EXPERIMENTS
from clearhead.lab.learn import SMALL, Lesson, drawn, free_token_accuracy, learned, told_accuracy
from clearhead.lab.recording import dot_products, recorded, silenced, unmasked
from clearhead.lab.recurrence import LSTM
from clearhead.lab.tasks import middle_word, reverse, sort
from clearhead.model.transformer import EncoderBlock, Transformer

pytestmark = pytest.mark.slow


def accuracy(options: object, steps: int = 120, rate: float = 5e-3) -> float:
    model, _ = learned(options, reverse(6), Lesson(steps=steps, rate=rate), seed=1)  # type: ignore[arg-type]
    return told_accuracy(model, drawn(reverse(6), 1))


def test_scaling_helps_a_wide_head() -> None:
    wide = replace(SMALL, width=128, heads=1)
    assert accuracy(wide, 100, 2e-3) > accuracy(replace(wide, scale="none"), 100, 2e-3) + 0.15


def test_order_needs_positions_and_sets_do_not() -> None:
    assert accuracy(SMALL) > 0.9
    assert accuracy(replace(SMALL, positions="none")) < 0.5
    model, _ = learned(replace(SMALL, positions="none"), sort(6), Lesson(steps=140, rate=5e-3), seed=1)
    assert free_token_accuracy(model, drawn(sort(6), 1)) > 0.6


def test_without_mask_the_loss_falls_below_chance() -> None:
    measured = EXPERIMENTS["mask"].measure(1)
    assert measured["masked loss"][-1] > 0.9 * masks.CHANCE
    assert measured["open loss"][-1] < 0.6 * masks.CHANCE


def test_one_head_reads_one_place_and_four_read_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "HEADS", (1, 4))
    measured = EXPERIMENTS["places"].measure(1)
    worse = [min(pair) for pair in zip(measured["back"], measured["ahead"], strict=True)]
    assert worse[1] > worse[0] + 0.25


def test_attention_recalls_what_an_lstm_forgets() -> None:
    found = []
    for options in (SMALL, LSTM):
        model, _ = learned(options, middle_word(31), Lesson(steps=90, rate=4e-3), seed=1)
        found.append(free_token_accuracy(model, drawn(middle_word(31), 1)))
    assert found[0] > found[1] + 0.3


def test_tied_matrices_stay_tied_and_miss_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetry, "CASES", {name: symmetry.CASES[name] for name in ("apart", "tied")})
    measured = EXPERIMENTS["query-key"].measure(1)
    assert measured["apart"][0] > measured["tied"][0] + 0.1


def test_heads_that_align() -> None:
    measured = EXPERIMENTS["align"].measure(1)
    assert max(measured["heads"]) > 0.8
    assert measured["accuracy"][0] > 0.9
    occluded = EXPERIMENTS["occlusion"].measure(1)
    assert occluded["occlusion"][0] > 0.9


def test_tying_gives_both_the_same_weights() -> None:
    torch.manual_seed(1)
    block = Transformer(SMALL).encoder[0]
    assert isinstance(block, EncoderBlock)
    symmetry.tie(block.attention)
    block.attention(torch.randn(2, 5, SMALL.width), torch.randn(2, 3, SMALL.width), None).sum().backward()
    q, k, _ = block.attention.matrices(0)
    assert torch.equal(q, k)
    gradient = block.attention.projections.weight.grad
    assert gradient is not None
    of_q, of_k, _ = gradient.split(block.attention.joined)
    assert torch.equal(of_q, of_k)
    assert of_q.norm() > 0


def test_hooks_are_gone_afterwards() -> None:
    torch.manual_seed(1)
    model = Transformer(SMALL).eval()
    src = torch.randint(4, 20, (2, 7))
    before = model.read(src, src > 0)
    with recorded(model) as weights, silenced(dot_products(model.encoder)[0], 0), unmasked(model.decoder):
        changed = model.read(src, src > 0)
    assert len(weights) == 1
    torch.testing.assert_close(weights[0].sum(dim=-1), torch.ones(2, SMALL.heads, 7))
    assert not torch.allclose(changed, before)
    assert torch.equal(model.read(src, src > 0), before)
    assert len(weights) == 1
