"""Model folders in no time: one of ours with subwords, and one in the layout of OPUS-MT; random weights in both."""

import json
import random
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from torch import nn

from clearhead.checkpoint.model import save_model
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import EOS, Tokenizer, train
from clearhead.decoding import DecodingOptions
from clearhead.model import ModelOptions, TransformerOptions, build

ENGLISH = ["the cat sees a lighthouse.", "a small dog is reading!", "my old friend runs to naïve cafés", "two books?"]
GERMAN = ["die Katze sieht den Leuchtturm.", "ein kleiner Hund liest!", "Grüße aus Köln, sagt sie", "zwei Bücher?"]
PAIRS = [(ENGLISH[i % 4] + " " + ENGLISH[i % 3], GERMAN[i % 4] + " " + GERMAN[i % 3]) for i in range(12)]
TEXTS = [text for pair in PAIRS for text in pair]
SMALL = TransformerOptions(width=14, heads=7, feed_forward=13, encoder_blocks=3, decoder_blocks=2)
ENDS = 1.4  # a bias that makes targets end at different lengths
LANGUAGES = (">>deu<<", ">>nld<<")


def write_subword_model(
    folder: Path, options: ModelOptions = SMALL, joint: bool = True, decoding: DecodingOptions | None = None
) -> Path:
    """English to German by name, and nonsense in fact."""
    data = DataOptions("en", "de", joint=joint, marks=0.0)  # no model here has seen any
    source: Tokenizer
    target: Tokenizer
    if joint:
        source = target = train(TEXTS, data, 1, 331)
    else:
        source = train([pair[0] for pair in PAIRS], data, 1, 307)
        target = train([pair[1] for pair in PAIRS], data, 1, 311)
        options = replace(options, tied="none" if options.tied == "none" else "target")
    files = folder.with_name(f"{folder.name}-files")
    files.mkdir(parents=True)
    source.save(files, "source")
    if target is not source:
        target.save(files, "target")
    torch.manual_seed(5)
    model = build(replace(options, source_vocabulary=len(source), target_vocabulary=len(target)))
    scramble(model)
    if model.output.bias is not None:
        nn.init.constant_(model.output.bias[EOS], ENDS)
    sections = {"data": asdict(data), "decoding": asdict(decoding or DecodingOptions()), "about": {}}
    save_model(folder, model, sections, {file.name: file.read_bytes() for file in files.iterdir()})
    return folder


def scramble(model: nn.Module) -> None:
    """Weights by which the source matters; embeddings stay small, else a word just follows itself."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            if parameter.dim() == 1:
                parameter.copy_(0.3 * torch.randn_like(parameter) + ("norm.weight" in name))
            else:
                is_embedding = any(part in name for part in ("embedding", "embed_tokens", "shared"))
                parameter.copy_(torch.randn_like(parameter) * (0.2 if is_embedding else 0.4))


def write_opus(folder: Path, **changes: Any) -> Path:
    """As OPUS-MT has it: two SentencePiece models, one vocabulary, eos 0, unk 1, pad last and the target's start."""
    folder.mkdir(parents=True)
    for side, texts in (("source", [pair[0] for pair in PAIRS]), ("target", [pair[1] for pair in PAIRS])):
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_prefix=str(folder / side),
            vocab_size=71,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
    ids = _opus_ids(folder)
    (folder / "vocab.json").write_text(json.dumps(ids))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "eng", "target_lang": "de"}))
    model = _opus_model(len(ids), changes)
    model.save_pretrained(folder)
    return folder


def _opus_ids(folder: Path) -> dict[str, int]:
    """Pieces of both models in some order; one that SentencePiece knows is left out, so that it is unknown."""
    pieces = set()
    for side in ("source", "target"):
        processor = SentencePieceProcessor()
        processor.Load(str(folder / f"{side}.spm"))
        pieces |= {processor.id_to_piece(i) for i in range(3, len(processor))}
    words = sorted(pieces - {"?"})
    random.Random(3).shuffle(words)
    return {piece: i for i, piece in enumerate(["</s>", "<unk>", *LANGUAGES, *words, "<pad>"])}


def _opus_model(words: int, changes: dict[str, Any]) -> Any:
    pad = words - 1
    sides = ("encoder", "decoder")
    heads = {f"{side}_attention_heads": 7 for side in sides}
    options = {
        "vocab_size": words,
        "d_model": 14,
        **{f"{side}_ffn_dim": 13 for side in sides},
        **heads,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 127,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
    }
    torch.manual_seed(7)
    model: Any = transformers.MarianMTModel(transformers.MarianConfig(**{**options, **changes})).eval()
    scramble(model)
    with torch.no_grad():
        nn.init.normal_(model.final_logits_bias)
        model.final_logits_bias[0, pad] = 0
        model.get_output_embeddings().weight[pad] = 0
    generation = model.generation_config
    generation.num_beams, generation.bad_words_ids, generation.max_length = 4, [[pad]], 61
    return model
