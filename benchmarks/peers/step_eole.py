"""Eole in its own environment, Sizes as JSON: what its trainer does with one batch."""

import json
import logging
import sys
import tempfile
from pathlib import Path

import torch
from eole.config.run import TrainConfig  # type: ignore[import-not-found]
from eole.constants import DefaultTokens  # type: ignore[import-not-found]
from eole.inputters.inputter import build_vocab  # type: ignore[import-not-found]
from eole.models.model import get_model_class  # type: ignore[import-not-found]
from eole.trainer import build_trainer  # type: ignore[import-not-found]
from eole.utils import Statistics  # type: ignore[import-not-found]
from eole.utils.optimizers import Optimizer  # type: ignore[import-not-found]

from benchmarks.peers import Sizes, serve_steps
from benchmarks.peers.eole_options import training_options, write_vocabulary

SPECIALS = 4

if __name__ == "__main__":
    sizes = Sizes(**json.loads(sys.argv[1]))
    torch.manual_seed(1)
    torch.set_num_threads(sizes.threads)
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_vocabulary(folder, [f"w{i}" for i in range(sizes.vocabulary - SPECIALS)])
        for name in ("train.src", "train.tgt", "valid.src", "valid.tgt"):
            (folder / name).write_text("w1\n", encoding="utf-8")
        schedule = {"learning_rate": sizes.rate, "batch_size": sizes.pairs * sizes.tokens}
        config = TrainConfig(**training_options(sizes, folder, folder, 1, schedule))
        vocabs = build_vocab(config, {"src": [], "tgt": []})
        model = get_model_class(config.model).for_training(config.model, vocabs, config.training, device_id=-1)
        trainer = build_trainer(config, -1, model, vocabs, Optimizer.from_config(model, config))
    bos, eos = (vocabs["tgt"][token] for token in (DefaultTokens.BOS, DefaultTokens.EOS))
    assert len(vocabs["tgt"]) == sizes.vocabulary
    words = torch.randint(SPECIALS, sizes.vocabulary, (2, sizes.pairs, sizes.tokens - 1))
    first, last = (torch.full((sizes.pairs, 1), token) for token in (bos, eos))
    batch = {
        "src": torch.cat([words[0], last], 1), "srclen": torch.full((sizes.pairs,), sizes.tokens),
        "tgt": torch.cat([first, words[1], last], 1), "tgtlen": torch.full((sizes.pairs,), sizes.tokens + 1),
        "images": None, "prefix_len": None, "cid": ["corpus"] * sizes.pairs,
        "cid_line_number": list(range(sizes.pairs)),
    }  # fmt: skip
    statistics = Statistics()
    model.train()

    def step(low: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            trainer._process_accumulated_batches([batch], sizes.pairs * sizes.tokens, statistics, statistics)

    serve_steps(step)
