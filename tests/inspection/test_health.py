"""The page of many translations sorts itself, in a real browser."""

from pathlib import Path

import pytest

from clearhead.inspection.health import Row, write_health

pytest.importorskip("playwright")
from tests.browsing import chromium

pytestmark = pytest.mark.slow

ROWS = [
    Row(1, -0.5, 0, 0, 0, 0.25, 1.1, "", "a", "b"),
    Row(2, -1.5, 11, 0, 0, None, 0.9, "x y", "<img src=x onerror=alert(1)>", "c"),
    Row(3, -0.1, 2, 0, 0, 0.13, 1.0, "z", "d", "e"),
]


def test_columns_sort_by_number_and_by_word(tmp_path: Path) -> None:
    write_health(ROWS, tmp_path / "health.html")
    said: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.goto((tmp_path / "health.html").as_uri())

        def lines() -> list[str]:
            return page.locator("tbody tr td:first-child").all_text_contents()

        assert lines() == ["2", "1", "3"]  # the least likely first
        page.get_by_role("button", name="unread", exact=True).click()
        assert lines() == ["1", "3", "2"]
        page.get_by_role("button", name="unread", exact=True).press("Enter")
        assert lines() == ["2", "3", "1"]
        page.get_by_role("button", name="special share").click()
        assert lines() == ["2", "3", "1"]  # what is not known comes first
        page.get_by_role("button", name="translation").click()
        assert lines() == ["1", "2", "3"]
        assert page.locator("img").count() == 0
    assert said == []
