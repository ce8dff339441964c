"""Learning rates as functions of the step, which counts from 1."""


def inverse_square_root(step: int, peak: float, warmup: int) -> float:
    """Straight up to `peak` in `warmup` steps, then down with 1/√step. Paper 5.3 is peak = (width·warmup)^-½."""
    return peak * min(step / warmup, (warmup / step) ** 0.5)
