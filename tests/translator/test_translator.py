"""Text in, text out, on a small model with random weights."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import clearhead
from clearhead.decoding import DecodingOptions, Demand
from clearhead.engines import native
from clearhead.engines.workers import Found
from clearhead.errors import DAMAGED, MISSING, USAGE, UserError
from clearhead.translator import Translation, Translator, load
from clearhead.translator.translator import FIRST_WAVE
from tests.tiny_model import DECODING, write_model

from .stub import StubEngine, stub_translator

TEXTS = ["abc", "", "head", "  ", "a bad cabbage", "j", "\t", "dig a big cage", "é😀", "abc", "abc\nhead"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load(write_model(tmp_path_factory.mktemp("model") / "model"), engine="native")


def test_alone_equals_together_in_any_order(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [translator.translate(text)[0] for text in TEXTS]
    assert [translator.translate([text])[0] for text in TEXTS] == alone
    assert translator.translate(TEXTS) == alone
    assert translator.translate(TEXTS[::-1]) == alone[::-1]
    monkeypatch.setattr(native, "TOKENS_PER_BATCH", 23)
    assert translator.translate(TEXTS) == alone
    assert len(set(alone)) > 4


def test_an_engine_that_works_ahead_begins_with_the_first_few_and_says_the_same() -> None:
    def circles(source: list[int], options: DecodingOptions) -> list[int]:
        return source if options.block_ngrams or len(source) % 7 else source[:2] * 40

    texts = [f"{chr(97 + i % 23) * (i % 11)} {i}" if i % 13 else " " for i in range(4 * FIRST_WAVE + 3)]
    together, ahead = StubEngine(circles), StubEngine(circles)
    ahead.works_ahead = True
    expected = stub_translator(together).alternatives(texts)
    assert stub_translator(ahead).alternatives(texts) == expected
    assert any("repetition" in best.warnings for best, *_ in expected)
    assert sorted(ahead.asked) == sorted(together.asked)
    first = len([text for text in texts[:FIRST_WAVE] if text.strip()])
    assert set(ahead.asked[:first]) <= {text.strip() for text in texts[:FIRST_WAVE]}


def test_second_searches_are_begun_beside_the_last_of_the_first_ones() -> None:
    """So that an engine that works ahead does not run dry and then do them alone."""
    events: list[str] = []

    class Ahead(StubEngine):
        works_ahead = True
        expects_more = False

        def translate_batches(
            self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
        ) -> Iterator[Found]:
            events.append("second" if options.block_ngrams else "first")
            return noticed(super().translate_batches(sources, options, demands))

    def noticed(batches: Iterator[Found]) -> Iterator[Found]:
        for batch in batches:
            events.append("found")
            yield batch

    def circles(source: list[int], options: DecodingOptions) -> list[int]:
        return source if options.block_ngrams or len(source) % 7 else source[:2] * 40

    texts = ["abcdefghijklmnop"[: 1 + i % 15] for i in range(53)]
    translations = stub_translator(Ahead(circles)).translate(texts)
    assert translations == stub_translator(StubEngine(circles)).translate(texts)
    batches = -(-len(texts) // 5)
    first = events.index("second")
    assert events[:first] == ["first", *["found"] * (first - 1)]
    assert batches * 3 // 4 < first - 1 < batches  # late, and before the first search has ended
    assert events.count("second") <= 2


@pytest.mark.parametrize("text", ["abc", "abc  ", "abc\n", "  abc ", "abc\n\nhead "])
def test_white_space_around_a_text_stays(text: str) -> None:
    assert stub_translator(StubEngine()).translate(text) == [text]


@pytest.mark.parametrize("beam", [1, 2])
def test_texts_alone_are_those_of_the_translations_with_scores(beam: int, translator: Translator) -> None:
    """Figures stay if the model is not sure of them, so they need a score; circles are searched again without one."""
    texts = [*TEXTS, "1999", "7 of 9", "cabbage" * 17, "deadbeef"]
    expected = translator.alternatives(texts, translator.options(beam))
    assert translator.translate(texts, beam=beam) == [best.text for best, *_ in expected]


def test_an_engine_is_asked_for_scores_only_where_they_are_needed() -> None:
    def asked(prefix: str = "", scored: bool = False) -> dict[str, bool]:
        engine = StubEngine()
        list(stub_translator(engine).stream(["abc", "1999"], prefix=prefix, scored=scored))
        return {text: demand.scored for text, (_, demand) in zip(engine.asked, engine.seen, strict=True)}

    assert asked() == {"abc": False, "1999": True}
    assert asked(prefix="a") == asked(scored=True) == {"abc": True, "1999": True}


def test_no_texts_at_all(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_beam_is_an_option(translator: Translator) -> None:
    best = {beam: translator.alternatives(["a bad cabbage"], translator.options(beam))[0][0] for beam in (1, 2, 20)}
    assert best[20].score >= best[1].score - 1e-5
    assert translator.translate(["a bad cabbage"], beam=20) == [best[20].text]
    assert translator.options(None) == DECODING
    assert translator.translate(["a bad cabbage"]) == [best[2].text]


def test_a_narrow_beam_returns_fewer(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", DecodingOptions(beam=5, n_best=3, max_length=3))
    translator = load(folder, engine="native")
    assert len(translator.alternatives(["abc"], translator.options(None))[0]) == 3
    assert len(translator.alternatives(["abc"], translator.options(2))[0]) == 2
    assert len(translator.translate(["abc"], beam=1)) == 1


def test_alternatives_are_best_first(translator: Translator) -> None:
    found = translator.alternatives(["abc", ""], DecodingOptions(beam=5, n_best=5, max_length=5))
    scores = [translation.score for translation in found[0]]
    assert scores == sorted(scores, reverse=True)
    assert found[1] == [Translation("", 0.0)]


def test_it_says_what_it_is(translator: Translator) -> None:
    assert repr(translator) == "<Translator en → zh, transformer of width 14>"
    assert translator.languages == ("en", "zh")


def test_a_model_that_says_no_languages(translator: Translator) -> None:
    config = {"model": translator.config["model"]}
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    bare = Translator(translator.engine, *tokenizers, translator.decoding, config)
    assert bare.languages == ("und", "und")


def test_run_folder_and_model_folder_are_the_same(tmp_path: Path) -> None:
    write_model(tmp_path / "run" / "model")
    assert clearhead.load is load
    in_run, itself = load(tmp_path / "run", "native"), load(str(tmp_path / "run" / "model"), "native")
    assert in_run.translate(TEXTS) == itself.translate(TEXTS)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "no", MISSING), (tmp_path, DAMAGED)):
        with pytest.raises(UserError) as caught:
            load(path)
        assert caught.value.exit_code == code
    write_model(tmp_path / "model")
    (tmp_path / "model" / "source.json").unlink()
    with pytest.raises(UserError) as caught:
        load(tmp_path / "model")
    assert caught.value.exit_code == DAMAGED


# -- engines ---------------------------------------------------------------------------------------------------------


def test_what_an_engine_lacks_goes_to_the_native_one(tmp_path: Path) -> None:
    translator = load(write_model(tmp_path / "model"), engine="native")
    assert translator.folder is not None
    fast = StubEngine()
    fast.name = "fast"
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    helped = Translator(fast, *tokenizers, translator.decoding, translator.config, translator.folder)
    fast.missing = "sampling"
    assert helped.translate(TEXTS) == translator.translate(TEXTS)
    assert fast.asked == []
    assert helped.native() is helped.native()
    helped.has_named_engine = True
    with pytest.raises(UserError, match="the engine fast cannot do sampling; leave --engine out") as caught:
        helped.translate(TEXTS)
    assert caught.value.exit_code == USAGE


def test_without_a_folder_there_is_no_other_engine() -> None:
    fast = StubEngine()
    fast.name, fast.missing = "fast", "sampling"
    with pytest.raises(ValueError, match="made of the engine fast alone"):
        stub_translator(fast).translate("abc")


def test_an_unknown_engine(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no engine 'slow'"):
        load(write_model(tmp_path / "model"), engine="slow")


# -- options ---------------------------------------------------------------------------------------------------------


def test_a_prefix_begins_the_translation_and_only_its_first_part(translator: Translator) -> None:
    for text in ("abc", "  a bad cabbage"):
        assert translator.translate(text, prefix="head j")[0].strip().startswith("head j")
    assert translator.translate(["", "!"], prefix="head j") == ["", "!"]
    engine = StubEngine()
    stub_translator(engine).translate("ab\ncd", prefix="xyz")
    demands = [(asked, demand.prefix) for asked, (_, demand) in zip(engine.asked, engine.seen, strict=True)]
    assert [(asked, len(prefix)) for asked, prefix in demands] == [("ab", 3), ("cd", 0)]


def test_without_wishes_only_the_length_is_limited() -> None:
    engine = StubEngine()
    stub_translator(engine).alternatives(["abc", "de"])
    assert [demand for _, demand in engine.seen] == [Demand(max_length=53), Demand(max_length=52)]


def test_samples_are_the_same_for_the_same_seed(translator: Translator) -> None:
    def samples(seed: int) -> list[str]:
        options = replace(DECODING, temperature=1.3, seed=seed)
        return [best.text for best, *_ in translator.alternatives(["a bad cabbage", "abc"], options)]

    assert samples(1) == samples(1)
    assert len({tuple(samples(seed)) for seed in range(5)}) > 1


def test_alternatives_of_a_text_in_parts_are_put_together_in_their_order() -> None:
    found = stub_translator().alternatives("abc\ndef", DecodingOptions(n_best=3))[0]
    assert [one.text for one in found] == ["abc\ndef", "ab\nde", "a\nd"]
    assert [one.score for one in found] == pytest.approx([-0.5, -1.5, -2.5])
    assert [len(one.decoded) for one in found] == [2, 2, 2]


# -- notebooks -------------------------------------------------------------------------------------------------------


def test_notebooks_show_text_as_text(translator: Translator) -> None:
    shown = Translation("<b>&", -0.25, 0.5, ("split",))._repr_html_()
    assert shown == "<p>&lt;b&gt;&amp;<br><small>score -0.25, confidence 50%, split</small></p>"
    assert "confidence" not in Translation("a", 0.0)._repr_html_()
    evil = {**translator.config, "data": {**translator.config["data"], "source_language": "<i>"}}
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    shown = Translator(translator.engine, *tokenizers, translator.decoding, evil)._repr_html_()
    assert "&lt;i&gt; → zh" in shown
    assert "<i>" not in shown


def test_steps_show_the_whole_text_so_far_and_end_as_greedy_search_does(translator: Translator) -> None:
    text = "dig a big cage\n\n42 😀\n  a bad cabbage"
    steps = list(translator.steps(text))
    assert len(steps) > 5
    assert all(after.startswith(before) for before, after in pairwise(steps))
    parts = [translator.translate(part, beam=1)[0] for part in ("dig a big cage", "a bad cabbage")]
    assert steps[-1].startswith(parts[0])
    assert steps[-1].endswith(parts[1])
    assert list(translator.steps("")) == []


def test_half_a_character_is_not_shown() -> None:
    stub = stub_translator(StubEngine())
    steps = list(stub.steps("é 😀 a"))
    assert steps[-1] == "é 😀 a"
    assert not any("\ufffd" in step for step in steps)
