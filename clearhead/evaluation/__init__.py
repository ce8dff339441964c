"""How good translations are, how sure that is, and how fast they came."""

from .scores import ErrorRates, Scores, error_rates, score_translations

__all__ = ["ErrorRates", "Scores", "error_rates", "score_translations"]
