"""Hugging Face's Marian trained by its Seq2SeqTrainer for so many minutes, then its translations of a test set.

    python -m benchmarks.peers.train_transformers CORPUS MINUTES SEED OUT [SIZES]

See `Training`. As many steps as fit into the minutes, with the trainer's own linear decay. Needs accelerate beside
transformers.
"""

import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor
from transformers import (
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    set_seed,
)

from benchmarks.peers import MORE, Pace, Sizes, Training, in_batches

PAD, EOS = 0, 2
IGNORED = -100  # a label that does not count
RATE = 1e-3


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


def make_model(sizes: Sizes, words: int) -> MarianMTModel:
    return MarianMTModel(
        MarianConfig(
            vocab_size=words, d_model=sizes.width, encoder_layers=sizes.encoder_blocks,
            decoder_layers=sizes.decoder_blocks, encoder_attention_heads=sizes.heads,
            decoder_attention_heads=sizes.heads, encoder_ffn_dim=sizes.feed_forward,
            decoder_ffn_dim=sizes.feed_forward, dropout=sizes.dropout, attention_dropout=0.0,
            activation_dropout=0.0, activation_function="relu", scale_embedding=True, max_position_embeddings=512,
            pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD, forced_eos_token_id=None, init_std=0.02,
        )
    )  # fmt: skip


class Counting(TrainerCallback):
    """Tells the pace of an update's target tokens; batches are made before they are used, in the same order."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.waiting: deque[int] = deque()

    def collate(self, some: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        self.waiting.append(sum(len(one["labels"]) for one in some))
        return collate(some)

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.pace.note(self.waiting.popleft())


def train(model: MarianMTModel, data: list[Any], steps: int, asked: Training) -> Pace:
    options = Seq2SeqTrainingArguments(
        output_dir=str(asked.out), max_steps=steps, per_device_train_batch_size=asked.sizes.pairs, learning_rate=RATE,
        warmup_steps=max(1, steps // 8), label_smoothing_factor=asked.sizes.smoothing, lr_scheduler_type="linear",
        save_strategy="no", report_to=[], seed=asked.seed, use_cpu=True, disable_tqdm=True, logging_steps=200,
        remove_unused_columns=False, train_sampling_strategy="group_by_length",
        bf16=asked.sizes.low,
    )  # fmt: skip
    counting = Counting(Pace())
    trainer = Seq2SeqTrainer(
        model=model, args=options, train_dataset=data, data_collator=counting.collate, callbacks=[counting]
    )
    trainer.train()
    return counting.pace


if __name__ == "__main__":
    asked = Training.asked()
    processor = SentencePieceProcessor(str(asked.corpus / "joint.model"))
    data = examples(asked.corpus, "train", processor)

    def try_out(steps: int) -> Pace:
        return train(make_model(asked.sizes, len(processor)), data, steps, asked)

    if not asked.minutes:
        try_out(MORE).write(asked.out)
        sys.exit()
    steps = asked.updates(try_out)
    started = time.perf_counter()
    set_seed(asked.seed)
    model = make_model(asked.sizes, len(processor))
    train(model, data, steps, asked)
    print(f"trained for {(time.perf_counter() - started) / 60:.1f} minutes", file=sys.stderr)
    model.eval()

    @torch.inference_mode()
    def some(lines: list[str]) -> list[str]:
        batch = collate([{"input_ids": [*ids, EOS], "labels": [EOS]} for ids in processor.encode(lines)])
        del batch["labels"], batch["decoder_input_ids"]
        longest = batch["input_ids"].shape[1] + 50
        found = model.generate(**batch, num_beams=5, length_penalty=1.0, max_length=longest)
        return [processor.decode([word for word in row.tolist() if word > EOS]) for row in found]

    lines = (asked.corpus / "test.src").read_text(encoding="utf-8").splitlines()
    (asked.out / "test.hyp").write_text("".join(f"{line}\n" for line in in_batches(lines, some)), encoding="utf-8")
