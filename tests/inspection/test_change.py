"""What if: another word forced at a position, and heads that are switched off."""

from dataclasses import replace

import pytest

from clearhead.data.tokenizer import EOS
from clearhead.decoding import Demand
from clearhead.errors import UserError
from clearhead.inspection.change import Change
from clearhead.inspection.effects import silenced
from clearhead.inspection.record import hooked
from clearhead.translator import Translator, load
from tests.tiny_model import write_model

TEXT = "bad cabbage j dig"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load(write_model(tmp_path_factory.mktemp("looked") / "tiny"), engine="native")


@pytest.mark.parametrize("beam", [1, 3])
def test_after_a_forced_word_the_rest_is_what_a_search_with_this_prefix_finds(own: Translator, beam: int) -> None:
    before = own.inspect(TEXT, beam=beam)
    step = before.steps[1]
    other = next(id for id, _ in step.top if id not in (step.chosen, EOS))
    begin = [before.steps[0].chosen, other]
    after = own.inspect(TEXT, beam=beam, change=Change(prefix=tuple(begin)))
    options, source = own.options(beam), own.source_tokenizer.encode(TEXT)
    (found,) = own.engine.translate([source], options, [Demand(prefix=begin, max_length=7)])
    assert [token.id for token in after.target.tokens[1:-1]] == found[0].tokens
    assert found[0].tokens[:2] == begin
    assert (after.begun, after.forced, before.begun) == (2, False, 0)
    assert after.to_dict()["target"]["begun"] == 2


def test_a_forced_end_is_the_end(own: Translator) -> None:
    before = own.inspect(TEXT)
    first = before.steps[0].chosen
    after = own.inspect(TEXT, change=Change(prefix=(first, EOS)))
    assert [token.id for token in after.target.tokens[1:]] == [first, EOS]
    assert after.beam is None
    assert own.inspect(TEXT, change=Change(prefix=(EOS,))).target.text == ""


def test_heads_that_are_off_change_a_given_target_as_switching_off_one_by_one_says(own: Translator) -> None:
    before = own.inspect(TEXT, target="a head big")
    mean = sum(step.logp for step in before.steps) / len(before.steps)
    for stats in before.stats:
        head = (stats.kind, stats.layer, stats.head)
        after = own.inspect(TEXT, target="a head big", change=Change(off=(head,)))
        change = sum(step.logp for step in after.steps) / len(after.steps) - mean
        assert change == pytest.approx(stats.ablate_dlogp, abs=1e-5)
        assert after.off == [head]
    assert any(abs(stats.ablate_dlogp or 0) > 1e-3 for stats in before.stats)
    assert [step.logp for step in own.inspect(TEXT, target="a head big").steps] == [s.logp for s in before.steps]


@pytest.mark.parametrize("beam", [1, 3])
def test_the_search_too_goes_without_the_heads(own: Translator, beam: int) -> None:
    off = tuple(("cross", 0, head) for head in range(7))
    after = own.inspect(TEXT, beam=beam, change=Change(off=off))
    source, options = own.source_tokenizer.encode(TEXT), replace(own.decoding, beam=beam)
    demand = Demand(max_length=own.limit(options, len(source)))

    def searched() -> str:  # without the guards, which would try again
        ((best, *_),) = own.native().translate([source], options, [demand])
        return own.target_tokenizer.decode(best.tokens)

    with hooked(silenced(own.subject().model, off)):
        assert after.target.text == searched()
    assert after.target.text == own.inspect("a head", beam=beam, change=Change(off=off)).target.text  # blind
    assert own.inspect(TEXT, beam=beam).target.text == searched()


def test_what_cannot_be_is_said(own: Translator) -> None:
    with pytest.raises(UserError, match="no head cross:1:8, counted from 1, to be switched off; this layer has 7"):
        own.inspect(TEXT, change=Change(off=(("cross", 0, 7),)))
    with pytest.raises(UserError, match=r"no head encoder:3:1.*this layer has 0 heads"):
        own.inspect(TEXT, change=Change(off=(("encoder", 2, 0),)))
    for id, place, prefix in ((1, 1, (5, 1)), (99999, 0, (99999,)), (EOS, 0, (EOS, 5))):
        with pytest.raises(UserError, match=f"the prefix has the id {id} at {place}; expected ids of target tokens"):
            own.inspect(TEXT, change=Change(prefix=prefix))
