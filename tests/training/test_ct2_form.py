"""A trained model has its CTranslate2 form beside it, or the log says why not."""

from pathlib import Path

import pytest

from clearhead.engines import choice
from clearhead.engines.ct2_form import ct2_form
from clearhead.training.run import _write_ct2_form
from tests.convert.variants import save_talkative, save_variant
from tests.samples import VARIANTS


def test_it_is_made_and_nothing_is_said(tmp_path: Path) -> None:
    save_talkative(tmp_path / "model")
    _write_ct2_form(tmp_path)
    stamp = (tmp_path / "model" / "ct2-int8" / "model.bin").stat().st_mtime_ns
    assert ct2_form(tmp_path / "model") == tmp_path / "model" / "ct2-int8"
    assert (tmp_path / "model" / "ct2-int8" / "model.bin").stat().st_mtime_ns == stamp
    assert not (tmp_path / "run.log").exists()


def test_the_log_says_why_it_was_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "model" / "config.json"))
    save_variant(tmp_path / "model", VARIANTS["no-norm"])
    _write_ct2_form(tmp_path)
    save_talkative(tmp_path / "model")
    (tmp_path / "model" / "ct2-int8").write_text("in the way")
    _write_ct2_form(tmp_path)
    monkeypatch.setattr(choice, "find_spec", lambda _: None)
    _write_ct2_form(tmp_path)
    unexpressed, unwritten, uninstalled = (tmp_path / "run.log").read_text(encoding="utf-8").splitlines()
    assert "no fast form (ct2) was made: model.norm is 'none'; post or pre would work" in unexpressed
    assert "no fast form (ct2) was made: cannot" in unwritten
    assert "no fast form (ct2) was made: CTranslate2 is not installed" in uninstalled
