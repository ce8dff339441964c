"""Hugging Face transformers: FOLDER with a MarianMTModel, and the number of threads."""

import sys

import torch
from transformers import MarianMTModel, MarianTokenizer

from benchmarks.peers import in_batches, serve_translations

if __name__ == "__main__":
    folder, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    model = MarianMTModel.from_pretrained(folder).eval()
    tokenizer = MarianTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def some(lines: list[str], beam: int, length: int | None) -> list[str]:
        batch = tokenizer(lines, return_tensors="pt", padding=True)
        least, most = (0, batch["input_ids"].shape[1] + 50) if length is None else (length + 1, length + 1)
        found = model.generate(**batch, num_beams=beam, length_penalty=1.0, min_length=least, max_length=most)
        return tokenizer.batch_decode(found, skip_special_tokens=True)

    serve_translations(lambda lines, beam, length: in_batches(lines, lambda batch: some(batch, beam, length)))
