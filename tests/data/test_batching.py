"""The one place that pads, marks padding, and shifts the target by one token."""

import torch

from clearhead.data.batching import Batch, make_batch, pad_sources
from clearhead.data.tokenizer import BOS, EOS, PAD, SPECIALS, UNK
from tests.samples import TARGET_WORDS

PAIRS = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12, 13, 14]), ([], [15]), ([16, 16], [])]


def random_pairs() -> list[tuple[list[int], list[int]]]:
    torch.manual_seed(5)
    sizes = torch.randint(0, 11, (13, 2)).tolist()
    return [
        (
            torch.randint(UNK, TARGET_WORDS, (source,)).tolist(),
            torch.randint(UNK, TARGET_WORDS, (target,)).tolist(),
        )
        for source, target in sizes
    ]


def test_special_ids_come_before_all_words() -> None:
    assert sorted({PAD, BOS, EOS, UNK}) == list(range(SPECIALS))


def test_a_batch_written_out() -> None:
    batch = make_batch(PAIRS)
    assert batch.src.tolist() == [
        [5, 6, 7, EOS],
        [4, EOS, PAD, PAD],
        [EOS, PAD, PAD, PAD],
        [16, 16, EOS, PAD],
    ]
    assert batch.tgt_in.tolist() == [
        [BOS, 8, 9, PAD, PAD, PAD],
        [BOS, 10, 11, 12, 13, 14],
        [BOS, 15, PAD, PAD, PAD, PAD],
        [BOS, PAD, PAD, PAD, PAD, PAD],
    ]
    assert batch.tgt_out.tolist() == [
        [8, 9, EOS, PAD, PAD, PAD],
        [10, 11, 12, 13, 14, EOS],
        [15, EOS, PAD, PAD, PAD, PAD],
        [EOS, PAD, PAD, PAD, PAD, PAD],
    ]
    assert batch.tokens == 3 + 6 + 2 + 1


def test_ids_are_whole_numbers_even_where_there_are_none() -> None:
    """An empty list makes a tensor of floats, if one is not careful."""
    batch = make_batch([([], [])])
    assert batch == Batch(batch.src, batch.src_mask, batch.tgt_in, batch.tgt_out, tokens=1)
    assert {ids.dtype for ids in (batch.src, batch.tgt_in, batch.tgt_out)} == {torch.long}


def test_what_goes_in_is_what_came_out_one_step_before() -> None:
    pairs = random_pairs()
    batch = make_batch(pairs)
    for (_, target), into, out in zip(pairs, batch.tgt_in, batch.tgt_out, strict=True):
        length = len(target) + 1
        assert torch.equal(into[1:length], out[: length - 1])
        assert (into[0], out[length - 1]) == (BOS, EOS)
        assert set(into[length:].tolist()) | set(out[length:].tolist()) <= {PAD}


def test_the_mask_shows_the_source_and_its_end() -> None:
    pairs = random_pairs()
    batch = make_batch(pairs)
    assert batch.src_mask.dtype == torch.bool
    assert torch.equal(batch.src_mask, batch.src != PAD)
    for (source, _), ids, seen in zip(pairs, batch.src, batch.src_mask, strict=True):
        assert ids[seen].tolist() == [*source, EOS]


def test_tokens_are_those_that_are_not_padding() -> None:
    batch = make_batch(random_pairs())
    assert batch.tokens == int((batch.tgt_out != PAD).sum()) == int((batch.tgt_in != PAD).sum())


def test_nothing_is_longer_than_it_has_to_be() -> None:
    pairs = random_pairs()
    batch = make_batch(pairs)
    assert batch.src.shape == (13, max(len(source) for source, _ in pairs) + 1)
    assert batch.tgt_in.shape == batch.tgt_out.shape == (13, max(len(target) for _, target in pairs) + 1)


def test_sources_are_padded_the_same_way_with_and_without_targets() -> None:
    batch = make_batch(PAIRS)
    src, src_mask = pad_sources([source for source, _ in PAIRS])
    assert torch.equal(src, batch.src)
    assert torch.equal(src_mask, batch.src_mask)
