"""What transformers makes of a Marian folder: the other side of every export to and import from Hugging Face."""

import contextlib
import copy
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

from .parity import LONGEST


class HuggingFace:
    """MarianMTModel and MarianTokenizer, by the names of pieces."""

    name = "transformers"

    def __init__(self, folder: Path) -> None:
        with _quiet():
            self._tokenizer: Any = transformers.MarianTokenizer.from_pretrained(folder)
            self._model: Any = transformers.MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
        search = copy.deepcopy(self._model.generation_config)
        search.num_beams, search.no_repeat_ngram_size = 1, 0
        search.max_length = LONGEST + 2  # the start and EOS are counted
        self._search = search

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        names = {i: piece for piece, i in self._tokenizer.encoder.items()}
        return [[names[i] for i in self._tokenizer(text).input_ids[:-1]] for text in texts]

    def translate(self, texts: Sequence[str]) -> list[tuple[list[str], str]]:
        with _quiet():
            rows = self._model.generate(**self._sources(texts), generation_config=self._search).tolist()
        said = [row[1 : row.index(self._search.eos_token_id, 1)] for row in rows]
        return [
            ([self._tokenizer.decoder[i] for i in ids], self._tokenizer.decode(ids, skip_special_tokens=True))
            for ids in said
        ]

    @torch.inference_mode()
    def score(self, texts: Sequence[str], targets: Sequence[list[str]]) -> list[list[float]]:
        of_target = {piece: i for i, piece in self._tokenizer.decoder.items()}
        rows = [[*(of_target[piece] for piece in target), self._search.eos_token_id] for target in targets]
        words = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)  # (B, T)
        start = torch.full((len(rows), 1), self._search.decoder_start_token_id)
        before = torch.cat([start, words[:, :-1]], dim=1)
        logits = self._model(**self._sources(texts), decoder_input_ids=before).logits  # (B, T, V)
        if self._search.renormalize_logits:
            logits[..., [word for (word,) in self._search.bad_words_ids or ()]] = -torch.inf
        chosen = logits.log_softmax(dim=2).gather(2, words[:, :, None]).squeeze(2).tolist()
        return [scores[: len(row)] for scores, row in zip(chosen, rows, strict=True)]

    def _sources(self, texts: Sequence[str]) -> Any:
        return self._tokenizer(list(texts), return_tensors="pt", padding=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars, advice, and the recommendation of a package that is not used."""
    logging = transformers.utils.logging
    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()
