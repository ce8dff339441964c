"""Learning rates as functions of the step, which counts from 1."""

import math


def inverse_square_root(step: int, peak: float, warmup: int) -> float:
    """Straight up to `peak` in `warmup` steps, then down with 1/√step."""
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def paper(step: int, width: int, warmup: int) -> float:
    """Section 5.3: the inverse square root whose peak follows from the model's width."""
    return inverse_square_root(step, (width * warmup) ** -0.5, warmup)


def cosine(step: int, peak: float, warmup: int, steps: int) -> float:
    """Straight up to `peak`, then down along half a cosine to zero after the last step."""
    if step <= warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / max(1, steps + 1 - warmup))
    return peak * 0.5 * (1 + math.cos(math.pi * progress))
