"""The engine on CTranslate2 gives what ours gives: the same scores, greedy the same texts, by beam nearly always."""

import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.convert.ctranslate2 import to_ctranslate2
from clearhead.data.tokenizer import BOS, PAD
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.engines import Engine
from clearhead.engines import ct2 as module
from clearhead.engines.ct2 import Ct2Engine
from clearhead.engines.native import NativeEngine, open_native
from clearhead.errors import BAD_DATA, UserError
from tests.convert.test_ctranslate2 import EXPRESSIBLE
from tests.convert.variants import save, save_talkative, save_variant
from tests.samples import TARGET_WORDS

pytestmark = pytest.mark.slow  # each form is converted and loaded

Both = tuple[NativeEngine, Ct2Engine]


def some_sources(n: int, longest: int = 11) -> list[list[int]]:
    rng = random.Random(n)
    return [[rng.randrange(4, TARGET_WORDS) for _ in range(rng.randint(1, longest))] for _ in range(n)]


def make_engine(folder: Path, **options: bool | int) -> Ct2Engine:
    to_ctranslate2(folder / "model", folder / "float32", "float32")
    return Ct2Engine(folder / "float32", **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("talkative")


@pytest.fixture(scope="module")
def both(folder: Path) -> Both:
    model = save_talkative(folder / "model")
    return NativeEngine(model), make_engine(folder, workers=2)


def texts(found: Sequence[Sequence[Hypothesis]]) -> list[list[int]]:
    return [hypotheses[0].tokens for hypotheses in found]


def best_scores(found: Sequence[Sequence[Hypothesis]]) -> list[float]:
    return [hypotheses[0].score for hypotheses in found]


GREEDY = {
    "plain": DecodingOptions(beam=1),
    "no-penalty": DecodingOptions(beam=1, alpha=0.0),
    "short": DecodingOptions(beam=1, max_length=5),
    "long": DecodingOptions(beam=1, min_length=7),
    "blocked": DecodingOptions(beam=1, block_ngrams=2),
}
BEAM = {
    "plain": DecodingOptions(beam=5),
    "no-penalty": DecodingOptions(beam=5, alpha=0.0),
    "half-penalty": DecodingOptions(beam=3, alpha=0.5),
    "short": DecodingOptions(beam=3, max_length=5),
    "long": DecodingOptions(beam=3, min_length=7),
    "n-best": DecodingOptions(beam=5, n_best=3),
}


@pytest.mark.parametrize("name", GREEDY)
def test_greedy_search_finds_the_same(name: str, both: Both) -> None:
    sources = some_sources(97)
    ours, theirs = (engine.translate(sources, GREEDY[name]) for engine in both)
    assert texts(theirs) == texts(ours)
    assert best_scores(theirs) == pytest.approx(best_scores(ours), abs=1e-4)


@pytest.mark.parametrize("name", GREEDY)
def test_without_scores_greedy_search_says_the_same(name: str, both: Both) -> None:
    """Limits that cut, blocked n-grams and a demand for scores by one sentence among them included."""
    sources = some_sources(97)
    demands = [Demand(scored=i == 53) for i in range(len(sources))]
    for engine in both:
        scored, bare = engine.translate(sources, GREEDY[name]), engine.translate(sources, GREEDY[name], demands)
        assert texts(bare) == texts(scored)
        assert best_scores(bare)[53] == pytest.approx(best_scores(scored)[53], abs=1e-6)
        unasked = engine.translate(sources[:53], GREEDY[name], demands[:53])
        assert any(math.isnan(score) for score in best_scores(unasked))


UNSAID = "7 9-12"
SOME_UNSAID = [7, 9, 10, 11, 12]


@pytest.fixture(scope="module")
def taciturn(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Both engines of a model that some words were never in a target of."""
    folder = tmp_path_factory.mktemp("taciturn")
    save_talkative(folder / "model", unsaid=UNSAID)
    ours = open_native(folder / "model")
    ours.in_bfloat16 = False  # as CTranslate2, whatever the CPU has
    return ours, make_engine(folder, workers=2)


@pytest.mark.parametrize("options", [DecodingOptions(beam=1), DecodingOptions(beam=5), GREEDY["blocked"]])
def test_words_that_no_training_target_has_are_not_considered(options: DecodingOptions, taciturn: Both) -> None:
    sources = some_sources(97)
    ours, theirs = (engine.translate(sources, options) for engine in taciturn)
    same = [a == b for a, b in zip(texts(theirs), texts(ours), strict=True)]
    assert sum(same) >= (1 if options.beam == 1 else 0.85) * len(sources)
    assert not {word for text in texts(theirs) for word in text} & set(SOME_UNSAID)
    everything = Ct2Engine(taciturn[1].form)
    everything._said = None
    assert {word for text in texts(everything.translate(sources, options)) for word in text} & set(SOME_UNSAID)
    among_all = [sum(one) / len(one) for one in taciturn[1].score(sources, texts(theirs))]
    for *scores, is_same in zip(best_scores(ours), among_all, best_scores(theirs), same, strict=True):
        # what CTranslate2 counts otherwise is scored once more, and then among all words
        assert not is_same or any(scores[2] == pytest.approx(one, abs=1e-4) for one in scores[:2])


@pytest.mark.parametrize(("sentences", "beam", "expected"), [(1, 1, False), (1, 2, True), (2, 1, True)])
def test_the_list_of_words_is_used_where_it_saves_time(
    sentences: int, beam: int, expected: bool, taciturn: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = taciturn[1]
    asked: list[bool] = []
    real = engine._translator.translate_batch

    class Spy:
        def translate_batch(self, *words: object, **options: bool) -> object:
            asked.append(options["use_vmap"])
            return real(*words, **options)

        score_batch = staticmethod(engine._translator.score_batch)

    monkeypatch.setattr(engine, "_translator", Spy())
    monkeypatch.setattr(engine, "workers", 1)
    engine.translate([[5, 6, 7]] * sentences, DecodingOptions(beam=beam))
    assert asked[0] == expected


def test_a_prefix_may_have_any_word_and_so_may_what_follows(taciturn: Both) -> None:
    sources, options = some_sources(31), DecodingOptions(beam=1)
    for prefix in (SOME_UNSAID[:2], [5, 6]):
        ours, theirs = (engine.translate(sources, options, [Demand(prefix=prefix)] * 31) for engine in taciturn)
        assert texts(theirs) == texts(ours)
        assert all(text[:2] == prefix for text in texts(theirs))


def test_steps_are_words_of_the_model_all_the_same(both: Both, taciturn: Both) -> None:
    """They are searched among all words, as those of the same weights are where every word is said."""
    sources = some_sources(31)
    ours, theirs = ([list(engine.steps(source, 40)) for source in sources] for engine in (both[1], taciturn[1]))
    assert theirs == ours


@pytest.mark.parametrize("limit", [1, 7, 40])
def test_steps_are_greedy_search_word_by_word(limit: int, both: Both) -> None:
    sources = some_sources(31)
    ours, theirs = ([list(engine.steps(source, limit)) for source in sources] for engine in both)
    assert theirs == ours
    assert ours == texts(both[0].translate(sources, DecodingOptions(beam=1, max_length=limit)))


STEPS = """
import sys
from pathlib import Path
from clearhead.engines.ct2 import Ct2Engine
engine = Ct2Engine(Path(sys.argv[1]))
list(engine.steps([5, 6, 7], 7))
"""


def test_a_program_that_took_steps_ends_in_peace(both: Both) -> None:
    for _ in range(7):  # without an end of its threads it was aborted in two of three runs
        subprocess.run([sys.executable, "-c", STEPS, both[1].form], check=True, capture_output=True)


def test_steps_can_be_left_early(both: Both) -> None:
    for engine in both:
        talkative = next(source for source in some_sources(31) if len(list(engine.steps(source, 40))) > 3)
        steps = engine.steps(talkative, 40)
        first = next(steps)
        del steps
        assert next(engine.steps(talkative, 40)) == first


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_greedy_search_finds_the_same_in_every_variant(name: str, tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", EXPRESSIBLE[name])
    sources, options = some_sources(11), DecodingOptions(beam=1, max_length=17)
    ours = NativeEngine(model).translate(sources, options)
    theirs = make_engine(tmp_path, workers=1).translate(sources, options)
    assert texts(theirs) == texts(ours)
    assert best_scores(theirs) == pytest.approx(best_scores(ours), abs=1e-4)


@pytest.mark.parametrize("name", BEAM)
def test_beam_search_finds_nearly_the_same(name: str, both: Both) -> None:
    sources = some_sources(97)
    native, engine = both
    ours, theirs = (one.translate(sources, BEAM[name]) for one in both)
    same = [a == b for a, b in zip(texts(theirs), texts(ours), strict=True)]
    assert sum(same) >= 0.85 * len(sources)
    for is_same, a, b in zip(same, best_scores(theirs), best_scores(ours), strict=True):
        assert not is_same or a == pytest.approx(b, abs=1e-4)
    difference = sum(best_scores(ours)) - sum(best_scores(theirs))
    assert difference / len(sources) == pytest.approx(0, abs=0.01)
    _check_ranks(native, sources, theirs, BEAM[name])
    assert engine.name == "ct2"


def _check_ranks(
    native: Engine, sources: list[list[int]], found: list[list[Hypothesis]], options: DecodingOptions
) -> None:
    """Best first, each once, and each with the score that our model gives it."""
    for source, hypotheses in zip(sources, found, strict=True):
        assert len(hypotheses) == options.n_best
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        rescored = native.score([source] * len(hypotheses), [h.tokens for h in hypotheses])
        means = [sum(scores) / len(scores) ** options.alpha for scores in rescored]
        assert [h.score for h in hypotheses] == pytest.approx(means, abs=2e-4)


def test_it_works_before_anybody_waits_for_a_result(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ct2 = both
    asked: list[int] = []
    submit = ct2._submit

    def counted(jobs: Sequence[module.Job], *rest: object, **more: object) -> list[object]:
        asked.append(len(jobs))
        return submit(jobs, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ct2, "_submit", counted)
    results = ct2.translate_batches(some_sources(7), DecodingOptions(beam=1))
    assert ct2.works_ahead
    assert sum(asked) == 7
    assert sorted(place for places, _ in results for place in places) == list(range(7))


def test_prefixes_go_with_their_sources(both: Both) -> None:
    sources = some_sources(29)
    demands = [Demand([5, 6, 7][: place % 4]) for place in range(29)]
    ours, theirs = (engine.translate(sources, DecodingOptions(beam=1), demands) for engine in both)
    assert texts(theirs) == texts(ours)
    assert best_scores(theirs) == pytest.approx(best_scores(ours), abs=1e-4)
    found = both[1].translate(sources, BEAM["n-best"], demands)
    assert all(h.tokens[: len(d.prefix)] == d.prefix for some, d in zip(found, demands, strict=True) for h in some)
    _check_ranks(both[0], sources, found, BEAM["n-best"])


def test_each_source_has_a_limit_of_its_own(both: Both) -> None:
    sources, options = some_sources(97), DecodingOptions(beam=1, max_length=5)
    demands = [Demand(max_length=(2, 3, None)[place % 3]) for place in range(97)]
    for engine in both:
        together = engine.translate(sources, options, demands)
        for limit in (2, 3, 5):
            alike = [place for place in range(97) if (demands[place].max_length or 5) == limit]
            apart = engine.translate([sources[place] for place in alike], replace(options, max_length=limit))
            assert texts([together[place] for place in alike]) == texts(apart)
            assert max(map(len, texts(apart))) == limit


def test_a_prefix_as_long_as_the_limit_is_all_there_is(both: Both) -> None:
    sources, options = some_sources(3), DecodingOptions(beam=3, max_length=2)
    for engine in both:
        assert texts(engine.translate(sources, options, [Demand([5, 6, 7, 8])] * 3)) == [[5, 6, 7, 8]] * 3


def test_a_limit_just_behind_the_prefix(both: Both) -> None:
    sources, options = some_sources(23), DecodingOptions(beam=3, max_length=3)
    for found in both[1].translate(sources, options, [Demand([5, 6])] * 23):
        assert all(h.tokens[:2] == [5, 6] and len(h.tokens) <= 3 and PAD not in h.tokens for h in found)


def test_each_sentence_has_its_own_limit(tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", EXPRESSIBLE["paper"])  # it hardly ever ends
    engine = make_engine(tmp_path, workers=1)
    sources = some_sources(7, longest=41)
    for beam in (1, 3):
        options = DecodingOptions(beam=beam)
        lengths = [len(text) for text in texts(engine.translate(sources, options))]
        assert lengths == [len(text) for text in texts(NativeEngine(model).translate(sources, options))]
        assert len(set(lengths)) > 2


def test_pad_and_bos_are_never_said(tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", EXPRESSIBLE["bias"])
    model.output.bias.data[[PAD, BOS]] = 3.0
    save(tmp_path / "model", model)
    engine = make_engine(tmp_path, workers=1)
    for beam in (1, 3):
        options = DecodingOptions(beam=beam, max_length=7, n_best=beam)
        found = engine.translate(some_sources(7), options)
        assert not {PAD, BOS} & {token for some in found for h in some for token in h.tokens}
        _check_ranks(NativeEngine(model), some_sources(7), found, options)


def test_scores_are_ours(both: Both) -> None:
    sources, targets = some_sources(13), [*some_sources(12)[::-1], []]
    ours, theirs = (engine.score(sources, targets) for engine in both)
    assert [len(row) for row in theirs] == [len(target) + 1 for target in targets]
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, abs=1e-4)


def test_an_empty_source_gets_an_empty_target(both: Both) -> None:
    native, engine = both
    for beam in (1, 3):
        first, (only,), _ = engine.translate([[5], [], [6, 7]], DecodingOptions(beam=beam))
        assert only.tokens == []
        assert only.score == pytest.approx(native.score([[]], [[]])[0][0], abs=1e-4)
        assert first[0].score != only.score


def test_nothing_is_nothing(both: Both) -> None:
    assert both[1].translate([], DecodingOptions()) == []
    assert both[1].score([], []) == []


@pytest.mark.parametrize("budget", [1, 41, 4096])
@pytest.mark.parametrize("workers", [1, 3])
def test_batched_equals_alone_and_order_is_restored(
    budget: int, workers: int, folder: Path, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Ct2Engine(folder / "float32", workers=workers)
    sources = some_sources(37)
    for options in (DecodingOptions(beam=1), DecodingOptions(beam=3, n_best=2)):
        alone = [both[1].translate([source], options)[0] for source in sources]
        monkeypatch.setattr(module, "TOKENS_PER_BATCH", budget)
        together = engine.translate(sources, options)
        assert [[h.tokens for h in some] for some in together] == [[h.tokens for h in some] for some in alone]


def test_results_come_as_they_are_done(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS_PER_BATCH", 11)
    sources = some_sources(37)
    parts = both[1].translate_batches(sources, DecodingOptions(beam=1))
    first = next(parts)
    assert 0 < len(first[0]) < 37
    places = sorted(place for places, _ in [first, *parts] for place in places)
    assert places == list(range(37))


def test_deterministic_is_one_sentence_at_a_time(folder: Path, both: Both) -> None:
    engine = Ct2Engine(folder / "float32", deterministic=True, workers=2)
    sources, options = some_sources(31), DecodingOptions(beam=3)
    together = engine.translate(sources, options)
    assert together == [engine.translate([source], options)[0] for source in sources]  # to the last digit
    assert all(len(places) == 1 for places, _ in engine.translate_batches(sources, options))
    assert texts(together) == texts(both[1].translate(sources, options))


def test_it_says_what_it_lacks(both: Both) -> None:
    _, engine = both
    assert engine.lacks(DecodingOptions(block_ngrams=3, min_length=2), [Demand([5])]) is None
    assert engine.lacks(DecodingOptions(temperature=0.7)) == "sampling"
    assert engine.lacks(DecodingOptions(length_penalty="paper")) == "length_penalty paper"
    assert engine.lacks(DecodingOptions(), [Demand(), Demand(phrases=[[[5]]])]) == "required phrases"
    with pytest.raises(ValueError, match="CTranslate2 has no sampling; the native engine has"):
        engine.translate([[5]], DecodingOptions(temperature=0.7))


def test_a_source_longer_than_the_table_of_positions_is_an_error(tmp_path: Path) -> None:
    save_variant(tmp_path / "model", EXPRESSIBLE["learned"])  # 31 positions
    engine = make_engine(tmp_path, workers=1)
    (found,) = engine.translate([[5] * 30], DecodingOptions(beam=1))
    assert len(found[0].tokens) <= 30
    with pytest.raises(UserError, match="a sentence has 32 tokens, but this model has no more than 31 pos") as caught:
        engine.translate([[5] * 31], DecodingOptions(beam=1))
    assert caught.value.exit_code == BAD_DATA


COLD = """
import sys
from pathlib import Path
from clearhead.engines.choice import open_engine
from clearhead.decoding import DecodingOptions
engine = open_engine(Path(sys.argv[1]), "ct2")
print(engine.translate([[5, 6]], DecodingOptions(beam=2))[0][0].tokens)
engine.score([[5, 6]], [[7]])
for name in ("torch", "rich", "sacrebleu", "transformers"):
    assert name not in sys.modules, name
if len(sys.argv) > 2:
    assert "numpy" not in sys.modules
"""


@pytest.mark.slow
def test_no_torch_on_the_way(tmp_path: Path) -> None:
    """Neither when the CTranslate2 folder has to be made nor when it is there; then not even numpy."""
    save_talkative(tmp_path / "model")
    runs = [
        subprocess.run([sys.executable, "-c", COLD, tmp_path / "model", *more], check=True, capture_output=True)
        for more in ([], ["made"])
    ]
    assert runs[0].stdout == runs[1].stdout
