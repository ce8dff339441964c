"""Ours: Sizes as JSON."""

import json
import sys

import torch

from benchmarks.peers import Sizes, serve_steps
from clearhead.data.batching import make_batch
from clearhead.data.tokenizer import SPECIALS
from clearhead.engines.memory import ALL, keep_memory
from clearhead.model import TransformerOptions
from clearhead.model.linear import multiply_in
from clearhead.model.transformer import Transformer
from clearhead.training.step import make_optimizer, update

if __name__ == "__main__":
    sizes = Sizes(**json.loads(sys.argv[1]))
    torch.manual_seed(1)
    torch.set_num_threads(sizes.threads)
    keep_memory(ALL)  # as `clearhead train` does
    options = TransformerOptions(
        sizes.vocabulary,
        sizes.vocabulary,
        sizes.width,
        sizes.heads,
        feed_forward=sizes.feed_forward,
        encoder_blocks=sizes.encoder_blocks,
        decoder_blocks=sizes.decoder_blocks,
        dropout=sizes.dropout,
    )
    ids = torch.randint(SPECIALS, sizes.vocabulary, (2, sizes.pairs, sizes.tokens - 1)).tolist()
    batch = make_batch(list(zip(*ids, strict=True)))
    model = Transformer(options)
    optimizer = make_optimizer(model)

    def step(low: bool) -> None:
        multiply_in(model, torch.bfloat16 if low else torch.float32)
        update(model, [batch], optimizer, sizes.rate, sizes.smoothing)

    serve_steps(step)
