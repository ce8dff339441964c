"""torch.nn.Transformer, Sizes as JSON, set up as its documentation and tutorial say.

Embedding times √width, sinusoids with dropout, nn.Transformer with causal and padding masks, a linear layer,
CrossEntropyLoss, Adam; all with their defaults.
"""

import json
import math
import sys

import torch
from torch import Tensor, nn

from benchmarks.peers import Sizes, serve_steps

PAD, FIRST = 0, 4


class Model(nn.Module):
    """torch.nn.Transformer with what it needs around it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.width = sizes.width
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.register_buffer("table", sinusoids(sizes.tokens, sizes.width))
        self.dropout = nn.Dropout(sizes.dropout)
        self.transformer = nn.Transformer(
            sizes.width,
            sizes.heads,
            sizes.encoder_blocks,
            sizes.decoder_blocks,
            sizes.feed_forward,
            sizes.dropout,
            batch_first=True,
        )
        self.output = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        hidden = self.transformer(
            self._embed(src),
            self._embed(tgt),
            tgt_mask=causal,
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=torch.zeros(tgt.shape).masked_fill(tgt == PAD, -math.inf),
            memory_key_padding_mask=src == PAD,
            tgt_is_causal=True,
        )
        return self.output(hidden)

    def _embed(self, ids: Tensor) -> Tensor:
        positions = self.get_buffer("table")[: ids.shape[1]]
        return self.dropout(self.embedding(ids) * math.sqrt(self.width) + positions)


def sinusoids(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


if __name__ == "__main__":
    sizes = Sizes(**json.loads(sys.argv[1]))
    torch.manual_seed(1)
    torch.set_num_threads(sizes.threads)
    model = Model(sizes)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=sizes.smoothing)
    optimizer = torch.optim.Adam(model.parameters(), lr=sizes.rate)
    src, tgt, answers = torch.randint(FIRST, sizes.vocabulary, (3, sizes.pairs, sizes.tokens))

    def step(low: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            loss = criterion(model(src, tgt).flatten(0, 1), answers.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    serve_steps(step)
