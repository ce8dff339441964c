"""Bad input is refused with both numbers, where a sentence comes in and not at every step."""

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.model import Seq2Seq
from tests.samples import SOURCE_WORDS, TARGET_WORDS, VARIANTS, make_model, random_ids, random_source

MODULES = {"paper": "clearhead.model.transformer", "gru-attention": "clearhead.model.rnn"}


@pytest.fixture(params=MODULES)
def model(request: pytest.FixtureRequest) -> Seq2Seq[Any]:
    return make_model(VARIANTS[request.param])


def everything(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.bool)


@pytest.mark.parametrize("wrong", [-1, SOURCE_WORDS, SOURCE_WORDS + 4])
def test_source_id_outside_the_vocabulary(model: Seq2Seq[Any], wrong: int) -> None:
    src, src_mask = random_source(3, 5)
    src[1, 2] = wrong
    with pytest.raises(ValueError, match=f"^source id {wrong} is outside the vocabulary of {SOURCE_WORDS}$"):
        model.encode(src, src_mask)


@pytest.mark.parametrize("wrong", [-1, TARGET_WORDS, TARGET_WORDS + 4])
def test_target_id_outside_the_vocabulary(model: Seq2Seq[Any], wrong: int) -> None:
    tgt = random_ids(3, 7)
    tgt[1, 2] = wrong
    with pytest.raises(ValueError, match=f"^target id {wrong} is outside the vocabulary of {TARGET_WORDS}$"):
        model(*random_source(3, 5), tgt)


def test_first_and_last_word_are_inside(model: Seq2Seq[Any]) -> None:
    src, tgt = torch.tensor([[0, SOURCE_WORDS - 1]]), torch.tensor([[0, TARGET_WORDS - 1]])
    assert model(src, everything(1, 2), tgt).isfinite().all()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0), (5,), (2, 3, 5)])
def test_source_shape(model: Seq2Seq[Any], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as refusal:
        model.encode(torch.zeros(shape, dtype=torch.long), everything(*shape))
    assert str(refusal.value) == f"the source has shape {shape}; expected (B, S) with B and S at least 1"


@pytest.mark.parametrize("row", [0, 2])
def test_row_without_anything_to_see(model: Seq2Seq[Any], row: int) -> None:
    src, src_mask = random_source(3, 5)
    src_mask[row] = False
    with pytest.raises(ValueError, match=f"^row {row} of src_mask lets 0 of 5 positions be seen; expected at least 1"):
        model.encode(src, src_mask)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (5, 3), (3, 1), (5,), (3, 1, 5)])
def test_mask_of_another_shape(model: Seq2Seq[Any], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as refusal:
        model.encode(random_ids(3, 5), everything(*shape))
    assert f"src_mask is torch.bool of shape {shape}; expected torch.bool of the source's shape (3, 5)" in str(
        refusal.value
    )


@pytest.mark.parametrize("dtype", [torch.long, torch.float32, torch.uint8])
def test_mask_of_another_type(model: Seq2Seq[Any], dtype: torch.dtype) -> None:
    src, src_mask = random_source(3, 5)
    with pytest.raises(ValueError, match=f"^src_mask is {dtype} of shape .* expected torch.bool"):
        model.encode(src, src_mask.to(dtype))


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_number_of_target_rows(rows: int) -> None:
    src, src_mask = random_source(3, 5)
    transformer, rnn = make_model(VARIANTS["paper"]), make_model(VARIANTS["gru-attention"])
    with pytest.raises(ValueError, match=f"^the target has {rows} rows; expected 3 sentences × 1 hypotheses$"):
        transformer(src, src_mask, random_ids(rows, 7))
    with pytest.raises(ValueError, match=f"^the target has {rows} rows; expected 3$"):
        rnn(src, src_mask, random_ids(rows, 7))


def test_number_of_target_rows_with_hypotheses(model: Seq2Seq[Any]) -> None:
    state = model.encode(*random_source(3, 5)).repeat(2)
    with pytest.raises(ValueError, match=r"^the target has 3 rows; expected (3 sentences × 2 hypotheses|6)$"):
        model.decode(random_ids(3, 1), state)


def test_mask_with_gaps() -> None:
    """A Transformer can look past a hidden word, wherever it is; an RNN reads on."""
    src, src_mask = random_ids(2, 5), everything(2, 5)
    src_mask[1, 2] = False
    assert make_model(VARIANTS["paper"])(src, src_mask, random_ids(2, 7)).isfinite().all()
    with pytest.raises(ValueError, match=r"src_mask has gaps; an RNN .* expects padding at the end"):
        make_model(VARIANTS["gru-attention"]).encode(src, src_mask)


@pytest.mark.parametrize("name", MODULES)
def test_nothing_is_checked_per_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Seq2Seq[Any] = make_model(VARIANTS[name])
    checked: list[str] = []
    monkeypatch.setattr("clearhead.model.front_end.check_source", lambda *_: checked.append("source"))
    monkeypatch.setattr(f"{MODULES[name]}.check_ids", lambda side, *_: checked.append(side))
    state = model.encode(*random_source(3, 5))
    assert checked == ["source"]
    for length in (1, 3):
        model.decode(random_ids(3, length), state)
    assert checked == ["source"]
    model(*random_source(3, 5), random_ids(3, 7))
    assert sorted(checked) == ["source", "source", "target"]
