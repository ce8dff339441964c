"""JoeyNMT 2.3 in its own environment, Sizes as JSON: the step of its trainer, without its logging."""

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch  # type: ignore[import-not-found]
from joeynmt.builders import build_optimizer  # type: ignore[import-not-found]
from joeynmt.model import build_model  # type: ignore[import-not-found]
from joeynmt.vocabulary import Vocabulary  # type: ignore[import-not-found]

from benchmarks.peers import Sizes, serve_steps

UNK, PAD, BOS, EOS, FIRST = 0, 1, 2, 3, 4


def configuration(sizes: Sizes) -> dict[str, Any]:
    stack = {
        "type": "transformer", "hidden_size": sizes.width, "ff_size": sizes.feed_forward, "num_heads": sizes.heads,
        "dropout": sizes.dropout, "layer_norm": "pre",
        "embeddings": {"embedding_dim": sizes.width, "scale": True, "dropout": 0.0},
    }  # fmt: skip
    return {
        "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "tied_embeddings": True,
        "tied_softmax": True, "encoder": {**stack, "num_layers": sizes.encoder_blocks},
        "decoder": {**stack, "num_layers": sizes.decoder_blocks},
    }  # fmt: skip


if __name__ == "__main__":
    sizes = Sizes(**json.loads(sys.argv[1]))
    torch.manual_seed(1)
    torch.set_num_threads(sizes.threads)
    logging.disable(logging.CRITICAL)
    specials = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
        unk_id=UNK, pad_id=PAD, bos_id=BOS, eos_id=EOS, sep_id=None, lang_tags=[],
    )  # fmt: skip
    vocabulary = Vocabulary([f"w{i}" for i in range(sizes.vocabulary - FIRST)], specials)
    model = build_model(configuration(sizes), src_vocab=vocabulary, trg_vocab=vocabulary).train()
    model.loss_function = ("crossentropy", sizes.smoothing)
    optimizer = build_optimizer({"optimizer": "adam", "learning_rate": sizes.rate}, model.parameters())
    words = torch.randint(FIRST, sizes.vocabulary, (2, sizes.pairs, sizes.tokens - 1))
    first, last = (torch.full((sizes.pairs, 1), token) for token in (BOS, EOS))
    batch = Batch(
        torch.cat([words[0], last], 1), torch.full((sizes.pairs,), sizes.tokens), None,
        torch.cat([first, words[1], last], 1), None, torch.arange(sizes.pairs), torch.device("cpu"), PAD, EOS,
    )  # fmt: skip

    def step(low: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            loss, *_ = model(return_type="loss", **vars(batch))
        batch.normalize(loss, normalization="tokens", n_gpu=0, n_accumulation=1).backward()
        optimizer.step()
        model.zero_grad()

    serve_steps(step)
