"""What a model checks of its input, once per sentence and never per step.

B sentences, S source tokens, T target tokens.
"""

import torch
from torch import Tensor


def check_source(src: Tensor, src_mask: Tensor, vocabulary: int) -> None:
    """Raise ValueError unless (B, S) ids and mask can be encoded."""
    if src.dim() != 2 or 0 in src.shape:
        raise ValueError(f"the source has shape {tuple(src.shape)}; expected (B, S) with B and S at least 1")
    _check_mask(src_mask, src.shape)
    check_ids("source", src, vocabulary)
    _check_something_to_see(src_mask)


def check_features(src: Tensor, src_mask: Tensor, features: int) -> None:
    """Raise ValueError unless (B, S, F) numbers and a mask (B, S) can be encoded."""
    if src.dim() != 3 or 0 in src.shape or src.shape[2] != features or not src.is_floating_point():
        raise ValueError(
            f"the source is {src.dtype} of shape {tuple(src.shape)}; expected numbers (B, S, {features}) with B and S "
            "at least 1"
        )
    _check_mask(src_mask, src.shape[:2])
    _check_something_to_see(src_mask)


def _check_mask(src_mask: Tensor, shape: torch.Size) -> None:
    if src_mask.shape != shape or src_mask.dtype != torch.bool:
        raise ValueError(
            f"src_mask is {src_mask.dtype} of shape {tuple(src_mask.shape)}; expected torch.bool of the "
            f"source's shape {tuple(shape)}, True where a token may be looked at"
        )


def _check_something_to_see(src_mask: Tensor) -> None:
    nothing_to_see = ~src_mask.any(dim=1)
    if nothing_to_see.any():
        row = int(nothing_to_see.nonzero()[0])
        raise ValueError(
            f"row {row} of src_mask lets 0 of {src_mask.shape[1]} positions be seen; expected at least 1 "
            f"(an empty sentence still has its end-of-sentence token)"
        )


def check_ids(side: str, ids: Tensor, vocabulary: int) -> None:
    """Raise ValueError if an id has no row in the embedding."""
    if not ids.numel():
        raise ValueError(f"the {side} has shape {tuple(ids.shape)}; expected at least one token in each row")
    lowest, highest = ids.aminmax()
    if lowest < 0 or highest >= vocabulary:
        wrong = int(lowest) if lowest < 0 else int(highest)
        raise ValueError(f"{side} id {wrong} is outside the vocabulary of {vocabulary}")
