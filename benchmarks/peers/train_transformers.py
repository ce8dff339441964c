"""Hugging Face's Marian trained by its Seq2SeqTrainer for so many minutes, then its translations of a test set.

    python -m benchmarks.peers.train_transformers CORPUS MINUTES SEED OUT

CORPUS is a folder with train, valid and test text, each in a file for the source (.src) and the target (.tgt), and a
joint SentencePiece model, joint.model (PAD BOS EOS UNK are 0 to 3). The sizes are those of our `tiny`. As many steps
as fit into the minutes, with the trainer's own linear decay. Needs accelerate beside transformers.
"""

import sys
import time
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor
from transformers import (
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)

from benchmarks.peers import in_batches, updates_for

PAD, EOS = 0, 2
IGNORED = -100  # a label that does not count
BATCH, RATE = 64, 1e-3


def examples(corpus: Path, split: str, processor: SentencePieceProcessor) -> list[dict[str, list[int]]]:
    sides = [(corpus / f"{split}.{end}").read_text(encoding="utf-8").splitlines() for end in ("src", "tgt")]
    pairs = zip(*(processor.encode(side) for side in sides), strict=True)
    return [{"input_ids": [*source, EOS], "labels": [*target, EOS]} for source, target in pairs]


def collate(some: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    def padded(name: str, value: int) -> torch.Tensor:
        rows = [torch.tensor(one[name]) for one in some]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)

    source, target = padded("input_ids", PAD), padded("labels", PAD)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": torch.nn.functional.pad(target, (1, -1), value=PAD),  # PAD is its start
        "labels": padded("labels", IGNORED),
    }


def make_model(words: int) -> MarianMTModel:
    return MarianMTModel(
        MarianConfig(
            vocab_size=words, d_model=128, encoder_layers=4, decoder_layers=4, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, dropout=0.1, attention_dropout=0.0,
            activation_dropout=0.0, activation_function="relu", scale_embedding=True, max_position_embeddings=512,
            pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD, forced_eos_token_id=None, init_std=0.02,
        )
    )  # fmt: skip


def train(model: MarianMTModel, data: list[Any], steps: int, seed: int, out: Path) -> None:
    options = Seq2SeqTrainingArguments(
        output_dir=str(out), max_steps=steps, per_device_train_batch_size=BATCH, learning_rate=RATE,
        warmup_steps=max(1, steps // 8), label_smoothing_factor=0.1, lr_scheduler_type="linear", save_strategy="no",
        report_to=[], seed=seed, use_cpu=True, disable_tqdm=True, logging_steps=200, remove_unused_columns=False,
        train_sampling_strategy="group_by_length",
    )  # fmt: skip
    trainer = Seq2SeqTrainer(model=model, args=options, train_dataset=data, data_collator=collate)
    trainer.train()


if __name__ == "__main__":
    corpus, minutes, seed, out = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    processor = SentencePieceProcessor(str(corpus / "joint.model"))
    data = examples(corpus, "train", processor)
    steps = updates_for(minutes, lambda steps: train(make_model(len(processor)), data, steps, seed, out))
    started = time.perf_counter()
    set_seed(seed)
    model = make_model(len(processor))
    train(model, data, steps, seed, out)
    print(f"trained for {(time.perf_counter() - started) / 60:.1f} minutes", file=sys.stderr)
    model.eval()

    @torch.inference_mode()
    def some(lines: list[str]) -> list[str]:
        batch = collate([{"input_ids": [*ids, EOS], "labels": [EOS]} for ids in processor.encode(lines)])
        del batch["labels"], batch["decoder_input_ids"]
        longest = batch["input_ids"].shape[1] + 50
        found = model.generate(**batch, num_beams=5, length_penalty=1.0, max_length=longest)
        return [processor.decode([word for word in row.tolist() if word > EOS]) for row in found]

    lines = (corpus / "test.src").read_text(encoding="utf-8").splitlines()
    (out / "test.hyp").write_text("".join(f"{line}\n" for line in in_batches(lines, some)), encoding="utf-8")
