"""How good translations are, how sure that is, and how fast they came."""

from .scores import Scores, score_translations

__all__ = ["Scores", "score_translations"]
