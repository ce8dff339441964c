"""Our beam search finds what Hugging Face's `generate` finds, on the same logits."""

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import BOS, EOS, PAD
from clearhead.decoding import DecodingOptions, search
from tests.decoding.reference import SOURCES, Ids, Model, eloquent_model
from tests.samples import PAPER

transformers = pytest.importorskip("transformers")


def generate(model: Model, sources: list[Ids], options: DecodingOptions) -> list[Ids]:
    """Their search, for which a Marian model that is asked for nothing but its logits is ours in fact."""
    src, src_mask = pad_sources(sources)

    class Ours(transformers.MarianMTModel):  # type: ignore[name-defined]
        def forward(self, decoder_input_ids: Tensor, **_: Any) -> Any:
            hypotheses = len(decoder_input_ids) // len(src)
            repeated = [x.repeat_interleave(hypotheses, dim=0) for x in (src, src_mask)]
            logits = model.logits(model(*repeated, decoder_input_ids)[:, -1:])
            return transformers.modeling_outputs.Seq2SeqLMOutput(logits=logits)

    config = transformers.MarianConfig(
        vocab_size=PAPER.target_vocabulary,
        d_model=2,
        encoder_attention_heads=1,
        decoder_attention_heads=1,
        encoder_ffn_dim=1,
        decoder_ffn_dim=1,
        encoder_layers=1,
        decoder_layers=1,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    with torch.no_grad():
        rows = (
            Ours(config)
            .eval()
            .generate(
                input_ids=src,
                attention_mask=src_mask.long(),
                num_beams=options.beam,
                num_return_sequences=options.n_best,
                length_penalty=options.alpha,
                max_new_tokens=options.max_length,
                suppress_tokens=[PAD, BOS],
                use_cache=False,
            )
        )
    return [[word for word in row if word not in (PAD, BOS, EOS)] for row in rows.tolist()]


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_beam_search_finds_what_theirs_finds(alpha: float) -> None:
    """But for sentences of which they return some that stop at the length limit without an end."""
    options = DecodingOptions(beam=5, n_best=3, max_length=17, alpha=alpha)
    compared = 0
    for seed in range(1, 4):
        model = eloquent_model(PAPER, seed)
        found = search(model, *pad_sources(SOURCES), options)
        theirs = iter(generate(model, SOURCES, options))
        for hypotheses in found:
            three = [next(theirs) for _ in range(3)]
            if max(len(tokens) for tokens in three) < 17:
                assert [h.tokens for h in hypotheses] == three
                compared += 1
    assert compared > 3
