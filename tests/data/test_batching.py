"""The one place that pads, marks padding, and shifts the target by one token; which pairs an update reads."""

import numpy as np
import pytest
import torch

from clearhead.data.batching import PARTS, Batch, Parts, epoch_batches, make_batch, pad_sources, share
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


LENGTHS = np.random.default_rng(3).integers(1, 29, (2, 499))  # of sources and targets
TOKENS = 211


def batches_of(seed: int = 5, epoch: int = 0, tokens: int = TOKENS) -> list[Parts]:
    return epoch_batches(LENGTHS[0], LENGTHS[1], tokens, seed, epoch)


def test_an_epoch_reads_every_pair_once() -> None:
    read = np.concatenate([rows for parts in batches_of() for rows in parts])
    assert sorted(read.tolist()) == list(range(499))


def test_an_epoch_is_a_function_of_seed_and_epoch() -> None:
    def written(batches: list[Parts]) -> list[list[list[int]]]:
        return [[rows.tolist() for rows in parts] for parts in batches]

    same, again = batches_of(), batches_of()
    assert written(same) == written(again)
    assert written(same) != written(batches_of(epoch=1))
    assert written(same) != written(batches_of(seed=7))


def test_the_parts_of_a_batch_share_its_tokens() -> None:
    longest = LENGTHS.max(axis=0) + 1
    batches = batches_of()
    assert {len(parts) for parts in batches[:-1]} == {PARTS}
    costs = [len(rows) * longest[rows].max() for parts in batches for rows in parts]
    assert max(costs) <= TOKENS // PARTS
    assert np.mean(costs) > 0.8 * TOKENS / PARTS
    padded = 1 - sum((LENGTHS[1][rows] + 1).sum() for parts in batches for rows in parts) / sum(
        len(rows) * (LENGTHS[1][rows].max() + 1) for parts in batches for rows in parts
    )
    assert padded < 0.05


def test_the_parts_of_a_batch_are_of_other_lengths() -> None:
    """By chance alone they differ by a third of the range; neighbours would differ by one or two."""
    apart = [abs(np.diff([LENGTHS[1][rows].mean() for rows in parts])).item() for parts in batches_of()[:-1]]
    assert np.mean(apart) > 29 / 5


def test_a_pair_that_is_longer_than_a_part_is_one() -> None:
    batches = epoch_batches(np.array([3, 300, 5]), np.array([2, 7, 300]), TOKENS, seed=1, epoch=0)
    assert sorted(rows.tolist() for parts in batches for rows in parts) == [[0], [1], [2]]


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5])
def test_processes_share_all_rows_of_a_batch_and_about_the_same_work(processes: int) -> None:
    for parts in batches_of():
        shares = [share(parts, rank, processes) for rank in range(processes)]
        rows = [row for mine in shares for some in mine for row in some.tolist()]
        assert sorted(rows) == sorted(np.concatenate(parts).tolist())
    work = [sum(LENGTHS[1][rows].sum() + len(rows) for rows in mine) for mine in shares_of_all(processes)]
    assert max(work) < 1.5 * min(work)


def shares_of_all(processes: int) -> list[Parts]:
    """Each process's rows of a whole epoch."""
    batches = batches_of(tokens=997)  # so that each has several rows of a part
    return [[rows for parts in batches for rows in share(parts, rank, processes)] for rank in range(processes)]


def test_a_process_without_a_row_of_a_part_has_no_such_part() -> None:
    parts = [np.array([3, 5]), np.array([7])]
    shares = [[rows.tolist() for rows in share(parts, rank, 3)] for rank in range(3)]
    assert shares == [[[3], [7]], [[5]], []]


def test_two_processes_have_a_part_each() -> None:
    parts = batches_of()[0]
    assert [[rows.tolist() for rows in share(parts, rank, 2)] for rank in range(2)] == [
        [part.tolist()] for part in parts
    ]
