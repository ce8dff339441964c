"""Which sentences of a text its translation lacks, told from what each sentence's own translation is.

The rule. The words of the sentences' own translations, one after the other, are aligned in order with the words of the
text's translation: each word with at most one equal word, no two crossing, so that as many as possible are there, and
of equal choices the one with longer unbroken runs. So a word that another sentence needs is not counted twice, and a
common word far away does not stand for one that was dropped. The share of a sentence's words that are aligned is how
far it is there. The same is done with the references; a sentence counts as left out if both shares are below 30 %.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.faithful.measures import words

LEAST = 0.3  # of a sentence's words, in either
RUN = 0.6  # what it is worth that a word stands right behind the one before it, beside 1 for the word


def left_out(text: str, alone: Sequence[str], references: Sequence[str]) -> list[int]:
    """The places of the sentences that the translation of their text lacks."""
    here = words(text)
    shares = [there([words(part) for part in parts], here) for parts in (alone, references)]
    return [place for place, found in enumerate(zip(*shares, strict=True)) if max(found) < LEAST]


def there(parts: Sequence[Sequence[str]], whole: Sequence[str]) -> list[float]:
    """Of each part the share of its words that are in the whole; 1 of a part without words."""
    of = [place for place, part in enumerate(parts) for _ in part]
    found = [0] * len(parts)
    for i in _aligned([word for part in parts for word in part], of, whole):
        found[of[i]] += 1
    return [count / len(part) if part else 1.0 for count, part in zip(found, parts, strict=True)]


def _aligned(given: Sequence[str], of: Sequence[int], whole: Sequence[str]) -> list[int]:
    """Which of the given words have a partner in the best alignment in order (Needleman-Wunsch), runs worth more."""
    m, n = len(given), len(whole)
    ids = {word: i for i, word in enumerate(dict.fromkeys([*given, *whole]))}
    columns = np.array([ids[word] for word in whole], dtype=np.int64)
    best = np.zeros((m + 1, n + 1))  # of the first i given words and the first j others
    paired = np.full((m + 1, n + 1), -np.inf)  # the same, if the last ones of both are partners
    for i, word in enumerate(given, 1):
        run = RUN if i > 1 and of[i - 1] == of[i - 2] else 0.0
        paired[i, 1:] = np.where(
            columns == ids[word], 1 + np.maximum(best[i - 1, :-1], paired[i - 1, :-1] + run), -np.inf
        )
        best[i] = np.maximum.accumulate(np.maximum(best[i - 1], paired[i]))
    found: list[int] = []
    i, j, must = m, n, False
    while i and j:
        if must or (paired[i, j] == best[i, j] and paired[i, j] > best[i - 1, j] and paired[i, j] > best[i, j - 1]):
            found.append(i - 1)
            run = RUN if i > 1 and of[i - 1] == of[i - 2] else 0.0
            must = bool(paired[i - 1, j - 1] + run > best[i - 1, j - 1])
            i, j = i - 1, j - 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i -= 1
    return found[::-1]
