"""Hugging Face's Marian, Sizes as JSON, with the label smoother, optimizer and clipping of its trainer."""

import json
import sys

import torch
from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LabelSmoother

from benchmarks.peers import Sizes, serve_steps

PAD, EOS, FIRST, CLIP = 0, 2, 4, 1.0

if __name__ == "__main__":
    sizes = Sizes(**json.loads(sys.argv[1]))
    torch.manual_seed(1)
    torch.set_num_threads(sizes.threads)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=sizes.vocabulary, d_model=sizes.width, encoder_layers=sizes.encoder_blocks,
            decoder_layers=sizes.decoder_blocks, encoder_attention_heads=sizes.heads,
            decoder_attention_heads=sizes.heads, encoder_ffn_dim=sizes.feed_forward,
            decoder_ffn_dim=sizes.feed_forward, dropout=sizes.dropout, attention_dropout=0.0, activation_dropout=0.0,
            activation_function="relu", scale_embedding=True, max_position_embeddings=512, pad_token_id=PAD,
            eos_token_id=EOS, decoder_start_token_id=PAD, forced_eos_token_id=None,
        )
    ).train()  # fmt: skip
    smoother = LabelSmoother(epsilon=sizes.smoothing)
    optimizer = torch.optim.AdamW(model.parameters(), lr=sizes.rate, fused=True)
    src, tgt, answers = torch.randint(FIRST, sizes.vocabulary, (3, sizes.pairs, sizes.tokens))
    mask = torch.ones_like(src)

    def step(low: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            output = model(input_ids=src, attention_mask=mask, decoder_input_ids=tgt)
            loss = smoother(output, answers)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()

    serve_steps(step)
