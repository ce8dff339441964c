"""Positions against the paper's formula, and the properties for which it was chosen.

B sentences, H heads, T tokens, D model width, K head width.
"""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from clearhead.model import build
from clearhead.model.positions import angles, rotate, sinusoidal, sinusoidal_half
from clearhead.model.transformer import Transformer
from tests.samples import PAPER, VARIANTS, make_model, random_ids, random_source

WIDTHS = [1, 2, 7, 14]


def paper_formula(position: int, channel: int, width: int) -> float:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) the cosine of the same."""
    angle = position / 10000 ** (2 * (channel // 2) / width)
    return math.cos(angle) if channel % 2 else math.sin(angle)


@pytest.mark.parametrize("width", WIDTHS)
def test_sinusoidal_is_the_papers_formula(width: int) -> None:
    loop = [[paper_formula(position, channel, width) for channel in range(width)] for position in range(53)]
    assert_close(sinusoidal(torch.arange(53), width), torch.tensor(loop), rtol=0, atol=1e-5)


@pytest.mark.parametrize("width", WIDTHS)
def test_half_and_half_are_the_same_channels_in_another_order(width: int) -> None:
    positions = torch.arange(53)
    order = [*range(0, width, 2), *range(1, width, 2)]
    assert torch.equal(sinusoidal_half(positions, width), sinusoidal(positions, width)[:, order])


@pytest.mark.parametrize("distance", [1, 5, 31])
def test_a_step_is_one_linear_map_everywhere(distance: int) -> None:
    """Paper 3.5: PE(pos + k) is a linear function of PE(pos), the same for all pos."""
    positions, width = torch.arange(47), 14
    step = torch.zeros(width, width)
    for channel in range(0, width, 2):
        angle = distance / 10000 ** (channel / width)
        turn = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        step[channel : channel + 2, channel : channel + 2] = torch.tensor(turn)
    assert_close(sinusoidal(positions + distance, width), sinusoidal(positions, width) @ step, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_rotation_turns_each_pair_by_its_angle(kind: torch.dtype) -> None:
    x, turns = torch.randn(2, 3, 5, 14).to(kind), angles(torch.arange(5), 14)
    cos, sin, (even, odd) = turns.cos(), turns.sin(), x.double().unflatten(-1, (7, 2)).unbind(-1)
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
    assert_close(rotate(x, turns), turned.to(kind))


def test_rotated_scores_depend_on_the_distance_only() -> None:
    q, k, width = torch.randn(14), torch.randn(14), 14

    def score(q_position: int, k_position: int) -> Tensor:
        turns = angles(torch.tensor([q_position, k_position]), width)
        return rotate(q.view(1, 1, 1, width), turns[:1]).flatten() @ rotate(k.view(1, 1, 1, width), turns[1:]).flatten()

    for distance in (0, 1, 5, 17):
        for start in (1, 7, 101):
            assert_close(score(start + distance, start), score(distance, 0), rtol=1e-4, atol=1e-4)
    assert_close(score(3, 3), q @ k)
    assert abs(score(5, 0) - score(0, 5)) > 1e-2  # but before is not after
    assert abs(score(1, 0) - score(2, 0)) > 1e-2


def moved(model: Transformer, places: int) -> tuple[Tensor, Tensor]:
    """Hidden states of a target, and of the same target read `places` later."""
    src, src_mask = random_source(2, 5)
    tgt = random_ids(2, 7)
    at_start = model.encode(src, src_mask)
    later = model.encode(src, src_mask)
    later.cache.length = places  # nothing in it, but the next token is token number `places`
    return model.decode(tgt, at_start), model.decode(tgt, later)


@pytest.mark.parametrize(("positions", "same"), [("rotary", True), ("none", True), ("sinusoidal", False)])
def test_only_added_positions_are_absolute(positions: str, same: bool) -> None:
    model = Transformer(replace(PAPER, positions=positions)).eval()
    here, there = moved(model, 11)
    assert torch.allclose(here, there, rtol=0, atol=1e-5) == same


def test_without_positions_the_encoder_cannot_tell_the_order() -> None:
    src, src_mask = torch.randint(4, 17, (2, 5)), torch.ones(2, 5, dtype=torch.bool)
    order = torch.tensor([3, 0, 4, 1, 2])
    for name, same in (("no-positions", True), ("paper", False), ("learned", False), ("rotary", False)):
        model = make_model(VARIANTS[name])
        assert isinstance(model, Transformer)
        shuffled = model.read(src[:, order], src_mask)
        assert torch.allclose(shuffled, model.read(src, src_mask)[:, order], rtol=0, atol=1e-5) == same, name


def test_learned_table_refuses_what_is_longer() -> None:
    model = Transformer(replace(PAPER, positions="learned", max_positions=11))
    message = "a sequence of 12 tokens is longer than the learned table of 11 positions"
    model(*random_source(2, 11), random_ids(2, 11))
    with pytest.raises(ValueError, match=message):
        model.encode(*random_source(2, 12))
    with pytest.raises(ValueError, match=message):
        model(*random_source(2, 5), random_ids(2, 12))


def test_learned_table_refuses_the_step_that_leaves_it() -> None:
    model = Transformer(replace(PAPER, positions="learned", max_positions=11))
    state = model.encode(*random_source(2, 5)).repeat(3)
    for _ in range(11):
        model.decode(random_ids(6, 1), state)
    with pytest.raises(ValueError, match="a sequence of 12 tokens is longer than the learned table of 11 positions"):
        model.decode(random_ids(6, 1), state)


def test_learned_tables_of_encoder_and_decoder_are_two() -> None:
    model = Transformer(replace(PAPER, positions="learned"))
    tables = [p for name, p in model.named_parameters() if "positions" in name]
    assert [table.shape for table in tables] == [(PAPER.max_positions, PAPER.width)] * 2


def test_learned_table_that_holds_the_sinusoids_is_sinusoidal() -> None:
    learned, paper = make_model(replace(PAPER, positions="learned", max_positions=31)), make_model(PAPER)
    table = sinusoidal(torch.arange(31), PAPER.width)
    tables = {name: table for name in learned.state_dict() if "positions" in name}
    learned.load_state_dict({**paper.state_dict(), **tables})
    inputs = *random_source(2, 5), random_ids(2, 7)
    assert_close(learned(*inputs), paper(*inputs))


def test_own_rule_is_used() -> None:
    asked: list[list[int]] = []

    def rule(positions: Tensor) -> Tensor:
        asked.append(positions.tolist())
        return sinusoidal_half(positions, PAPER.width)

    own = build(replace(PAPER, positions="own"), rule).eval()
    half = build(replace(PAPER, positions="sinusoidal-half")).eval()
    own.load_state_dict(half.state_dict())
    inputs = *random_source(2, 5), random_ids(2, 7)
    assert_close(own(*inputs), half(*inputs))
    assert asked == [list(range(5)), list(range(7))]


def test_own_rule_is_told_where_each_step_stands() -> None:
    asked: list[list[int]] = []

    def rule(positions: Tensor) -> Tensor:
        asked.append(positions.tolist())
        return torch.zeros(len(positions), PAPER.width)

    model = Transformer(replace(PAPER, positions="own"), rule)
    state = model.encode(*random_source(2, 3)).repeat(2)
    for length in (2, 1, 3):
        model.decode(random_ids(4, length), state)
    assert asked == [[0, 1, 2], [0, 1], [2], [3, 4, 5]]


def test_own_without_a_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="positions = 'own' and no rule was given"):
        build(replace(PAPER, positions="own"))


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "learned", "none"])
def test_a_rule_without_own_is_refused(positions: str) -> None:
    with pytest.raises(ValueError, match=f"positions = '{positions}' and a rule was given"):
        build(replace(PAPER, positions=positions), lambda positions: torch.zeros(len(positions), PAPER.width))


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-half", "learned", "none"])
def test_odd_widths_work(positions: str) -> None:
    model = Transformer(replace(PAPER, width=7, heads=1, positions=positions)).eval()
    src, src_mask, tgt = *random_source(2, 5), random_ids(2, 3)
    state = model.encode(src, src_mask)
    one_by_one = torch.cat([model.decode(token, state) for token in tgt.split(1, dim=1)], dim=1)
    assert_close(one_by_one, model(src, src_mask, tgt))
    assert one_by_one.shape == (2, 3, 7)
