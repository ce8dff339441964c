"""CTranslate2 as its documentation has it: FORM (its folder), the SentencePiece models of both sides, inter- and
intra-threads (0: its default) and how many sentences it may take at a time (0: its default, all)."""

import sys

import ctranslate2  # type: ignore[import-untyped]
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import serve_translations

if __name__ == "__main__":
    form, source_model, target_model, inter, intra, batch = sys.argv[1:]
    translator = ctranslate2.Translator(form, device="cpu", inter_threads=int(inter), intra_threads=int(intra))
    source, target = SentencePieceProcessor(source_model), SentencePieceProcessor(target_model)

    def translate(lines: list[str], beam: int, length: int | None) -> list[str]:
        lengths = {} if length is None else {"min_decoding_length": length, "max_decoding_length": length}
        results = translator.translate_batch(
            source.encode(lines, out_type=str), beam_size=beam, max_batch_size=int(batch), **lengths
        )
        return target.decode([result.hypotheses[0] for result in results])

    serve_translations(translate)
