"""A search step by step finds what it finds at once."""

import pytest
import torch

from clearhead.decoding import DecodingOptions, Demand, search, search_steps
from clearhead.model import TransformerOptions
from clearhead.model.transformer import Transformer


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(3)
    return Transformer(TransformerOptions(19, 19, 14, 7, feed_forward=13, encoder_blocks=1, decoder_blocks=1)).eval()


OPTIONS = [
    DecodingOptions(beam=1),
    DecodingOptions(temperature=1.3, seed=5),
    DecodingOptions(temperature=0.7, top_k=5, top_p=0.9, seed=2),
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("demand", [Demand(max_length=11), Demand(prefix=[7, 5, 11], max_length=7)])
def test_steps_are_those_of_the_search(model: Transformer, options: DecodingOptions, demand: Demand) -> None:
    for source in ([5, 7, 2], [11, 13, 17, 5, 2]):
        src = torch.tensor([source])
        ((whole,),) = search(model, src, torch.ones_like(src, dtype=torch.bool), options, [demand])
        assert list(search_steps(model, src, options, demand)) == whole.tokens
        assert whole.tokens[: len(demand.prefix)] == demand.prefix
