"""Guided alignment: its loss against the formula, its head against planted alignments, runs and what they leave."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from clearhead.checkpoint.model_folder import read_config
from clearhead.data.aligner import NONE
from clearhead.data.batching import Batch, make_batch
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding.options import AlignmentHead
from clearhead.model import Seq2Seq, TransformerOptions, build
from clearhead.model.attention import ScaledDotProduct, attention_weights
from clearhead.training.guidance import Guide, guided
from clearhead.training.options import TrainingOptions
from clearhead.training.schedule import inverse_square_root
from clearhead.training.settings import from_toml
from clearhead.training.step import backward, make_optimizer, set_rate
from tests.samples import PAPER, make_model

from .conftest import Straight
from .toy import DROPOUT, Toy, losses

PAIRS = [([5, 6, 7], [6, 7]), ([8], [7, 8, 9, 10, 11]), ([], [4]), ([16, 15, 14, 13, 12], [])]
LINKS = [[2, 0], [NONE, 0, 0, NONE, NONE], [NONE], []]
HEAD = AlignmentHead(block=0, head=1)
PLAIN = replace(PAPER, dropout=0.0)


def linked_batch() -> Batch:
    return make_batch(PAIRS, [np.array(row, np.uint16) for row in LINKS])


def weights_of(model: Seq2Seq, batch: Batch, head: AlignmentHead) -> Tensor:
    """What that head looks at, (B, T, S), by the formula."""
    seen: list[Tensor] = []

    def keep(module: ScaledDotProduct, inputs: tuple[Tensor, ...], _: Tensor) -> None:
        q, k, _v, mask = inputs
        seen.append(attention_weights(q, k, mask, module.scale)[:, head.head])

    assert isinstance(model, nn.Module)
    module = model.get_submodule(f"decoder.{head.block}.cross_attention.dot_product")
    handle = module.register_forward_hook(keep)
    model(batch.src, batch.src_mask, batch.tgt_in)
    handle.remove()
    return seen[0]


def by_hand(weights: Tensor) -> Tensor:
    """Minus the logarithm of each linked weight, one after the other."""
    return -sum(
        (weights[row, place, link].log() for row, links in enumerate(LINKS) for place, link in enumerate(links)
         if link != NONE),
        start=torch.zeros(()),
    )  # fmt: skip


def gradients(model: nn.Module) -> Iterator[Tensor]:
    return (parameter.grad for parameter in model.parameters() if parameter.grad is not None)


def test_links_lie_where_their_tokens_are_predicted() -> None:
    batch = linked_batch()
    assert batch.links is not None
    assert batch.links.shape == batch.tgt_out.shape
    assert batch.links.tolist() == [
        [2, 0, -1, -1, -1, -1],
        [-1, 0, 0, -1, -1, -1],
        [-1, -1, -1, -1, -1, -1],
        [-1, -1, -1, -1, -1, -1],
    ]
    assert make_batch(PAIRS).links is None


def test_the_gradient_is_that_of_the_formula() -> None:
    model, other, batch = make_model(PLAIN), make_model(PLAIN), linked_batch()
    tokens, weight = 11, 0.7
    plain = backward(other, [replace(batch, links=None)], 0.1, tokens)
    (weight / tokens * by_hand(weights_of(other, batch, HEAD))).backward()
    loss = backward(model, [batch], 0.1, tokens, guide=Guide(HEAD, weight))
    torch.testing.assert_close(loss, plain)  # what is told is the loss of the words
    for found, expected in zip(gradients(model), gradients(other), strict=True):
        torch.testing.assert_close(found, expected)


def test_read_twice_it_counts_once() -> None:
    model, batch = make_model(PLAIN), linked_batch()
    twice = torch.cat([batch.src] * 2), torch.cat([batch.src_mask] * 2), torch.cat([batch.tgt_in] * 2)
    with guided(model, HEAD, batch.links) as losses:
        model(batch.src, batch.src_mask, batch.tgt_in)
        model(*twice)
    torch.testing.assert_close(losses[1], losses[0])


def test_nothing_watches_without_links_or_afterwards() -> None:
    model, batch = make_model(PLAIN), linked_batch()
    for head, links in ((None, batch.links), (HEAD, None)):
        with guided(model, head, links) as losses:
            model(batch.src, batch.src_mask, batch.tgt_in)
        assert losses == []
    with guided(model, HEAD, batch.links) as losses:
        pass
    model(batch.src, batch.src_mask, batch.tgt_in)
    assert losses == []


# -- it learns ------------------------------------------------------------------------------------------------------

WORDS, LONGEST = 13, 7
TOY = TransformerOptions(
    source_vocabulary=SPECIALS + WORDS,
    target_vocabulary=SPECIALS + WORDS,
    width=32,
    heads=4,
    feed_forward=32,
    encoder_blocks=1,
    decoder_blocks=2,
    dropout=0.0,
)


def renamed_batch(rng: random.Random) -> Batch:
    """Each word has another number in the target, in the same order."""
    pairs, links = [], []
    for _ in range(61):
        source = [rng.randrange(WORDS) for _ in range(rng.randint(1, LONGEST))]
        pairs.append(([SPECIALS + word for word in source], [SPECIALS + 5 * word % WORDS for word in source]))
        links.append(np.arange(len(source), dtype=np.uint16))
    return make_batch(pairs, links)


def share_misaligned(weight: float, steps: int) -> float:
    """Of the target words of unseen pairs, after so many updates; where the first head looks most counts."""
    torch.manual_seed(1)
    rng = random.Random(1)
    model = build(TOY).train()
    optimizer = make_optimizer(model)
    guide = Guide(AlignmentHead(0, 0), weight) if weight else None
    for step in range(1, steps + 1):
        batch = renamed_batch(rng)
        set_rate(optimizer, inverse_square_root(step, peak=0.01, warmup=29))
        backward(model, [batch], 0.1, batch.tokens, guide=guide)
        optimizer.step()
        optimizer.zero_grad()
    batch = renamed_batch(random.Random(2))
    assert batch.links is not None
    looks = weights_of(model.eval(), batch, AlignmentHead(0, 0)).argmax(dim=2)
    is_word = batch.links >= 0
    return float((looks[is_word] != batch.links[is_word]).float().mean())


@pytest.mark.slow
def test_the_head_learns_to_align() -> None:
    assert share_misaligned(0.0, steps=120) > 0.3
    assert share_misaligned(0.5, steps=120) < 0.05


# -- whole runs -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_model_says_which_head_it_is(straight: Straight) -> None:
    config = read_config(straight() / "model")
    assert config["alignment"] == {"block": 0, "head": 0}
    assert config["lines"]["several"] == 0.0
    assert config["lines"]["longest"] == 6
    assert json.loads((straight() / "data_report.json").read_text())["lines"] == config["lines"]


@pytest.mark.slow
def test_nothing_is_said_where_nothing_was_taught(straight: Straight) -> None:
    assert "alignment" not in read_config(straight("training.guided_alignment=0") / "model")


@pytest.mark.slow
def test_with_words_broken_up_a_head_is_taught_too(straight: Straight) -> None:
    assert read_config(straight(*DROPOUT) / "model")["alignment"] == {"block": 0, "head": 0}
    assert losses(straight(*DROPOUT)) != losses(straight(*DROPOUT, "training.guided_alignment=0"))


@pytest.mark.slow
def test_each_changes_what_is_learned(straight: Straight) -> None:
    """The guide the weights alone, marks the pairs too."""
    runs = [straight(), straight("training.guided_alignment=0"), straight("data.marks=0.5"), straight("data.marks=0")]
    texts = {(run / "model" / "model.safetensors").read_bytes() for run in runs}
    assert len(texts) == 4


@pytest.mark.slow
def test_what_cannot_be_guided_is_trained_all_the_same(toy: Toy, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rnn")
    assert toy.train(folder / "run", "training.steps=2", preset="rnn", without="model") == 0
    assert "alignment" not in read_config(folder / "run" / "model")


@pytest.mark.slow
def test_two_processes_learn_what_one_does(straight: Straight) -> None:
    """Marks make targets longer than the batches were counted by, and the guide has links in either share."""
    sets = ("model.dropout=0", "data.marks=0.5", "training.guided_alignment=0.5")
    one, two = straight(*sets), straight(*sets, "training.processes=2")
    np.testing.assert_allclose(losses(two), losses(one), rtol=1e-5)


@pytest.mark.slow
def test_a_run_that_began_without_goes_on_without(straight: Straight) -> None:
    text = (straight() / "run.toml").read_text(encoding="utf-8")
    before = "".join(line for line in text.splitlines(True) if not line.startswith(("marks", "guided_alignment")))
    assert before != text
    settings = from_toml(before)
    assert settings.data.marks == settings.training.guided_alignment == 0


def test_options_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"guided_alignment is -0\.1; expected at least 0"):
        TrainingOptions(guided_alignment=-0.1)
    with pytest.raises(ValueError, match=r"marks is 1\.1; expected a number from 0 to 1"):
        DataOptions(marks=1.1)
