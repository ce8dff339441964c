"""Does confidence mean something: can it tell sense from nonsense, and is it as high as translations are good?

    python -m benchmarks.confidence MODEL DATA [--recalibrate OUT] [--lines N]

DATA is the folder of the parallel texts that benchmarks measure with. The noise is made here, by other code, of other
words and with another seed than what models are calibrated with (clearhead/data/noise.py), and the languages are ones
that it leaves out. `--recalibrate` first fits the confidence of a copy of a run's model anew, as training does.
"""

import argparse
import json
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.chrf import CHRF

import clearhead
from clearhead.data.tokenizer import LEARNED, Tokenizer
from clearhead.translator import Translator

Pairs = Sequence[tuple[str, str]]

SEED = 20_291
BINS = 10  # of equal mass
SURE = 0.1  # nonsense is to be less sure than this
NONSENSE_LINES = 500
SLIPS = 0.3  # the share of words that are mistyped
COMMON = "etaoinshrdlu"


def measure_confidence(
    model_folder: Path,
    test_pairs: Pairs,
    other_language_lines: Mapping[str, Sequence[str]],
    other_domain_pairs: Mapping[str, Pairs],
    engine: str = "auto",
    beam: int | None = None,
) -> dict[str, Any]:
    """For each kind of text its numbers: `ece` where there are references, `auroc` and `below` where there are none.

    Other languages and domains are given by their names, and measured all together too. A line's confidence and
    warnings are those that `clearhead translate --json` gives.
    """
    translator = clearhead.load(model_folder, engine=engine)
    options = translator.options(beam)
    rng = random.Random(SEED)
    sources, references = [source for source, _ in test_pairs], [reference for _, reference in test_pairs]

    def asked(texts: Sequence[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
        best = [found[0] for found in translator.alternatives(texts, options)]
        warned = np.array(["low_confidence" in one.warnings for one in best])
        # What was copied, as nothing in it could be translated, has no confidence: none is claimed.
        return [one.text for one in best], np.array([one.confidence or 0.0 for one in best]), warned

    def with_references(texts: Sequence[str], right: Sequence[str]) -> dict[str, Any]:
        found, confidence, warned = asked(texts)
        return {**_calibration(confidence, _chrf(found, right)), "warned": float(warned.mean())}

    clean_texts, clean, warned = asked(sources)
    results: dict[str, Any] = {
        "test": {**_calibration(clean, _chrf(clean_texts, references)), "warned": float(warned.mean())}
    }

    def without(texts: Sequence[str]) -> tuple[dict[str, Any], np.ndarray]:
        _, confidence, warned = asked(texts)
        return {**_separation(clean, confidence), "warned": float(warned.mean())}, confidence

    changes: dict[str, Callable[[str], str]] = {
        "typos": lambda text: mistyped(text, rng),
        "capitals": str.upper,
        "title case": str.title,
        "lower case": str.lower,
    }
    for name, change in changes.items():
        # A text in capitals comes back in capitals: what is compared is the words.
        found_in, confidence, low = asked([change(text) for text in sources])
        small = [[text.lower() for text in some] for some in (found_in, references)]
        results[name] = {**_calibration(confidence, _chrf(*small)), "warned": float(low.mean())}
    pieces = [random_pieces(translator.source_tokenizer, rng) for _ in range(NONSENSE_LINES)]
    results["random pieces"], _ = without(pieces)
    results["keys mashed"], _ = without([mashed(rng) for _ in range(NONSENSE_LINES)])
    found = []
    for name, lines in other_language_lines.items():
        results[f"language {name}"], confidence = without(lines)
        found.append(confidence)
    if found:
        results["another language"] = _separation(clean, np.concatenate(found))
    for name, pairs in other_domain_pairs.items():
        results[f"domain {name}"] = with_references([a for a, _ in pairs], [b for _, b in pairs])
    return results


def mistyped(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for place, word in enumerate(words):
        if len(word) < 3 or rng.random() >= SLIPS:
            continue
        at, kind = rng.randrange(len(word) - 1), rng.random()
        if kind < 0.35:
            words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        elif kind < 0.65:
            words[place] = word[:at] + word[at + 1 :]
        elif kind < 0.8:
            words[place] = word[:at] + 2 * word[at] + word[at + 1 :]
        else:
            words[place] = word[:at] + rng.choice(COMMON) + word[at + 1 :]
    return " ".join(words)


def random_pieces(tokenizer: Tokenizer, rng: random.Random) -> str:
    """Any of the vocabulary, each as likely."""
    first = min(LEARNED, len(tokenizer) - 1)
    return tokenizer.decode([rng.randrange(first, len(tokenizer)) for _ in range(rng.randint(3, 14))]).strip()


def mashed(rng: random.Random) -> str:
    words = rng.randint(1, 8)
    return " ".join("".join(rng.choices("asdfghjklqwertyuiop", k=rng.randint(4, 10))) for _ in range(words))


def _chrf(texts: Sequence[str], references: Sequence[str]) -> np.ndarray:
    chrf = CHRF()
    return np.array([chrf.sentence_score(a, [b]).score / 100 for a, b in zip(texts, references, strict=True)])


def _calibration(confidence: np.ndarray, quality: np.ndarray) -> dict[str, Any]:
    return {
        "lines": len(confidence),
        "ece": expected_calibration_error(confidence, quality),
        "confidence": float(confidence.mean()),
        "quality": float(quality.mean()),
    }


def _separation(clean: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    return {
        "lines": len(other),
        "auroc": auroc(clean, other),
        "below": float(np.mean(other < SURE)),
        "confidence": float(other.mean()),
    }


def expected_calibration_error(confidence: np.ndarray, quality: np.ndarray) -> float:
    """The mean distance of confidence and quality, over bins of as many lines each, in order of confidence."""
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    return float(
        sum(len(some) * abs(confidence[some].mean() - quality[some].mean()) for some in bins if len(some))
        / len(confidence)
    )


def auroc(high: np.ndarray, low: np.ndarray) -> float:
    """How often one of `high` is more than one of `low`; as many is half."""
    _, places, counts = np.unique(np.concatenate([high, low]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places][: len(high)]
    return float((ranks.sum() - len(high) * (len(high) + 1) / 2) / (len(high) * len(low)))


def recalibrate(run: Path, out: Path) -> tuple[float, float]:
    """Copy the model of a run to a folder of its own and fit its confidence anew.

    Returns the seconds that translating validation pairs took, as before, and those of the noisy ones and the fit.
    """
    from clearhead.checkpoint.model import load_model, save_model
    from clearhead.data.folders import tokenizer_files
    from clearhead.data.prepare import open_prepared
    from clearhead.data.seen import SEEN, seen_pairs
    from clearhead.training.distributed import Team
    from clearhead.training.run import read_run
    from clearhead.training.validation import calibrate, translate_validation, translated_at_the_end, translator_of
    from clearhead.training.vocabulary import target_words

    settings, plan = read_run(run)
    prepared = open_prepared(Path(plan.prepared))
    model, config, folder = load_model(run)
    said = target_words(prepared, settings).said(settings.model.target_vocabulary)
    pairs = translated_at_the_end(settings.training)
    started = time.perf_counter()
    _, samples = translate_validation(model, prepared, Team(), "cpu", settings.decoding, pairs, said)
    before = time.perf_counter()
    seen = seen_pairs(prepared.source.ids)
    translate = translator_of(model, prepared, "cpu", settings.decoding, said)
    calibration = calibrate(samples, prepared, seen, translate)
    seconds = before - started, time.perf_counter() - before
    assert calibration is not None
    sections = {key: value for key, value in config.items() if key not in ("format", "model")}
    files = {file.name: file.read_bytes() for file in tokenizer_files(folder)}
    shutil.rmtree(out, ignore_errors=True)
    save_model(out, model, {**sections, "calibration": asdict(calibration)}, {**files, SEEN: seen.to_bytes()})
    return seconds


def lines_of(path: Path, count: int) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()[:count]


def other_languages(data: Path, count: int) -> dict[str, list[str]]:
    """Languages that clearhead/data/foreign.py leaves out; of two there are only words, which are put in a row."""
    rng = random.Random(SEED)
    found = {
        "French": lines_of(data / "multi30k" / "test_2016_flickr.fr", count),
        "Chinese": lines_of(data / "tatoeba-en-zh" / "test.zh", count),
    }
    for name in ("dutch", "hungarian"):
        words = [line.replace(" ", "") for line in lines_of(data / f"g2p-{name}" / "test.graph", 1000)]
        found[name.capitalize()] = [" ".join(rng.choices(words, k=rng.randint(3, 8))) for _ in range(count)]
    return found


def pairs_of(source: Path, target: Path, count: int) -> list[tuple[str, str]]:
    return list(zip(lines_of(source, count), lines_of(target, count), strict=True))


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    columns = ("lines", "confidence", "quality", "ece", "auroc", "below", "warned")
    rows = ["| text | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, found in results.items():
        cells = [
            f"{found[key]:.3f}" if isinstance(found.get(key), float) else f"{found.get(key, '')}" for key in columns
        ]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--recalibrate", type=Path, metavar="OUT")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--beam", type=int)
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    arguments = parser.parse_args()
    model, data, count = arguments.model, arguments.data, arguments.lines
    if arguments.recalibrate:
        seconds = recalibrate(model, arguments.recalibrate)
        print(f"validation pairs translated in {seconds[0]:.1f} s, noisy ones and the fit in {seconds[1]:.1f} s")
        model = arguments.recalibrate
    translator: Translator = clearhead.load(model)
    source, target = translator.languages
    folders = {"multi30k": "multi30k/test_2016_flickr", "help": f"help-{source}-{target}/test"}
    folders["tatoeba"] = f"tatoeba-{source}-{target}/test"
    corpora = {name: (data / f"{start}.{source}", data / f"{start}.{target}") for name, start in folders.items()}
    there = {
        name: pairs_of(*files, count) for name, files in corpora.items() if files[0].exists() and files[1].exists()
    }
    sure = {
        name: float(np.mean([found[0].score for found in translator.alternatives([a for a, _ in pairs[:100]])]))
        for name, pairs in there.items()
    }
    # A model's own corpus is the one that it is surest of.
    own = max(sure, key=lambda name: sure[name])
    languages = {name: lines[: count // 3] for name, lines in other_languages(data, count // 3).items()}
    domains = {name: pairs for name, pairs in there.items() if name != own}
    results = measure_confidence(model, there[own], languages, domains, arguments.engine, arguments.beam)
    print(f"{own}, {source} → {target}\n\n{table(results)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
