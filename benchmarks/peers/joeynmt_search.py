"""JoeyNMT 2.3 in its own environment: FOLDER with weights that `benchmarks.joeynmt_weights` renamed, and threads.

Weights, vocabulary and SentencePiece models are those of our model, so it has the same work to do.
"""

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch  # type: ignore[import-not-found]
from joeynmt.model import build_model  # type: ignore[import-not-found]
from joeynmt.search import search  # type: ignore[import-not-found]
from joeynmt.vocabulary import Vocabulary  # type: ignore[import-not-found]
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import in_batches, serve_translations

PAD, EOS = 1, 3  # its special ids have another order than ours; the others are the same


def open_model(folder: Path) -> Any:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    specials = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
        unk_id=0, pad_id=PAD, bos_id=2, eos_id=EOS, sep_id=None, lang_tags=[],
    )  # fmt: skip
    words = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    vocabulary = Vocabulary(words, specials)
    logging.disable(logging.CRITICAL)
    model = build_model(config, src_vocab=vocabulary, trg_vocab=vocabulary)
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    return model.eval()


if __name__ == "__main__":
    home = Path(sys.argv[1])
    torch.set_num_threads(int(sys.argv[2]))
    joey = open_model(home)
    processor = SentencePieceProcessor(str(home / "source.model"))

    def some(lines: list[str], beam: int, length: int | None) -> list[str]:
        ids = [[*row, EOS] for row in processor.encode(lines)]
        lengths = torch.tensor([len(row) for row in ids])
        order = torch.argsort(lengths, descending=True).tolist()
        src = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(ids[i]) for i in order], batch_first=True, padding_value=PAD
        )
        places = torch.arange(len(ids))
        batch = Batch(src, lengths[order], None, None, None, places, torch.device("cpu"), PAD, EOS, is_train=False)
        with torch.no_grad():
            found, _, _ = search(
                joey,
                batch,
                max_output_length=length or src.shape[1] + 50,
                beam_size=beam,
                beam_alpha=1.0,
                n_best=1,
                min_output_length=length or 1,
                return_prob="none",
                generate_unk=True,
                repetition_penalty=-1,
                no_repeat_ngram_size=-1,
                return_attention=False,
            )
        texts = [""] * len(ids)
        for place, row in zip(order, found.tolist(), strict=True):
            words = row[: row.index(EOS)] if EOS in row else row
            texts[place] = processor.decode([word for word in words if word > 3])
        return texts

    serve_translations(lambda lines, beam, length: in_batches(lines, lambda batch: some(batch, beam, length)))
