"""A translation as JSON: with the probability of each token, and which source token it looked at."""

import json
from collections.abc import Sequence
from typing import Any

from .translation import Decoded, Translation
from .translator import Translator

END = "</s>"


def json_lines(translator: Translator, sources: Sequence[str], results: Sequence[Sequence[Translation]]) -> list[str]:
    """One object for each source; all that the model was asked for is looked at together."""
    decoded = [one for best, *_ in results for one in best.decoded]
    looks = iter(zip(decoded, translator.score(decoded), alignments(translator, decoded), strict=True))
    lines = []
    for source, (best, *others) in zip(sources, results, strict=True):
        tokens = _tokens(translator, [next(looks) for _ in best.decoded])
        shown = {
            "source": source,
            "translation": best.text,
            **_sureness(best),
            "warnings": best.warnings,
            "details": best.details,
        }
        shown |= tokens
        if others:
            shown["alternatives"] = [{"translation": other.text, **_sureness(other)} for other in others]
        lines.append(json.dumps(shown, ensure_ascii=False))
    return lines


def _sureness(translation: Translation) -> dict[str, Any]:
    return {"score": translation.score, "confidence": translation.confidence}


def _tokens(translator: Translator, looks: Sequence[tuple[Decoded, list[float], list[int]]]) -> dict[str, Any]:
    """Pieces of all parts in a row; each part ends with `</s>`, which is aligned with nothing."""
    source: list[str] = []
    target: list[dict[str, Any]] = []
    alignment = []
    for decoded, log_probabilities, places in looks:
        alignment += [[len(source) + place, len(target) + t] for t, place in enumerate(places)]
        pieces = [*translator.target_tokenizer.pieces(decoded.target), END]
        target += [
            {"piece": piece, "log_probability": log_probability}
            for piece, log_probability in zip(pieces, log_probabilities, strict=True)
        ]
        source += translator.source_tokenizer.pieces(decoded.source)
    return {"source_tokens": source, "tokens": target, "alignment": alignment}


def alignments(translator: Translator, decoded: Sequence[Decoded]) -> list[list[int]]:
    """For each target token the place of the source token that it looked at most; nothing if the engine cannot say.

    EOS is no word: neither what looks nor what is looked at.
    """
    if not decoded or not translator.engine.aligns:
        return [[] for _ in decoded]
    weights = translator.engine.align([one.source for one in decoded], [one.target for one in decoded])
    return [looks[:-1, :-1].argmax(axis=1).tolist() if looks.shape[1] > 1 else [] for looks in weights]
