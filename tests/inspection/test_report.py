"""The report is one file that asks nothing of anyone, whatever the text in it is."""

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from clearhead.inspection.report import LANGUAGES, page_file, report
from tests.inspection.planted import planted_trace

PAGE = Path(__file__).parents[2] / "clearhead" / "inspection" / "page"
FILES = sorted(path.name for path in PAGE.iterdir())
SCRIPTS = "\n".join(page_file(name) for name in FILES if name.endswith(".js"))
TEXTS = {language: json.loads(page_file(f"{language}.json")) for language in LANGUAGES}
NAMESPACE = "http://www.w3.org/2000/svg"
HOSTILE = "</script><script>alert(1)</script><!--\u2028\u2029\ud800&lt;"


class Elements(HTMLParser):
    """The elements of a page as a browser sees them: [tag, attributes, text]."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}, []))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1][2].append(data)

    def texts(self, tag: str, **wanted: str | None) -> list[str]:
        return [
            "".join(text)
            for name, attributes, text in self.found
            if name == tag and all(attributes.get(key) == value for key, value in wanted.items())
        ]


def sha256(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def keys(texts: dict[str, dict[str, str]]) -> set[str]:
    return {f"{group}.{name}" for group, names in texts.items() for name in names}


def hostile_trace() -> dict[str, Any]:
    trace = planted_trace()
    trace["source"]["text"] = trace["source"]["tokens"][0]["text"] = HOSTILE
    return trace


def test_no_address_is_in_the_report_but_that_of_svg() -> None:
    html = report([planted_trace()])
    assert set(re.findall(r"\w+://[^\s\"'<>)]*", html)) == {NAMESPACE}
    assert not re.search(r"(src|href|action)=", html.replace("href:", ""))


def test_the_policy_names_exactly_the_scripts_and_styles_inside() -> None:
    page = Elements(report([planted_trace()]))
    (policy,) = (
        attributes["content"] for tag, attributes, _ in page.found if tag == "meta" and "http-equiv" in attributes
    )
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert set(rules["script-src"].split()) == {sha256(text) for text in page.texts("script", type=None)}
    assert set(rules["style-src"].split()) == {sha256(text) for text in page.texts("style")}
    assert rules["default-src"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert len(page.texts("script", type=None)) == len([name for name in FILES if name.endswith(".js")])


def test_no_text_ends_the_element_that_holds_it() -> None:
    traces = [hostile_trace(), planted_trace()]
    plain, page = Elements(report([planted_trace()])), Elements(report(traces))
    assert [tag for tag, *_ in page.found] == [tag for tag, *_ in plain.found]
    (held,) = page.texts("script", id="traces")
    assert json.loads(held) == traces
    assert "<" not in held


def test_numbers_that_json_does_not_have_are_refused() -> None:
    trace = planted_trace()
    trace["steps"][0]["logp"] = float("-inf")
    with pytest.raises(ValueError, match="JSON compliant"):
        report([trace])


def test_both_languages_say_the_same_things() -> None:
    english, chinese = (TEXTS[language] for language in LANGUAGES)
    assert keys(english) == keys(chinese)
    for group, names in english.items():
        for name, text in names.items():
            places = re.compile(r"\{(\w+)\}")
            assert set(places.findall(text)) == set(places.findall(chinese[group][name])), f"{group}.{name}"


def test_every_text_is_used_and_every_text_used_is_there() -> None:
    known = keys(TEXTS["en"])
    groups = "|".join(TEXTS["en"])
    literal = set(re.findall(rf'"((?:{groups})\.\w+)"', SCRIPTS))
    begun = set(re.findall(rf'"((?:{groups})\.\w*)" \+', SCRIPTS)) | {"mode.", "scale."}  # controls of that name
    assert literal - begun <= known
    assert [key for key in known if key not in literal and not any(key.startswith(start) for start in begun)] == []
    assert all(any(key.startswith(start) for key in known) for start in begun)


def test_the_page_is_small() -> None:
    assert sum(len((PAGE / name).read_bytes()) for name in FILES) <= 120 * 1024
    words = [f"word{i}" for i in range(20)]
    assert len(report([planted_trace(words, words)]).encode()) <= 1_500_000


def test_the_page_has_no_file_that_the_report_leaves_out() -> None:
    index = page_file("index.html")
    named = set(re.findall(r'(?:src|href)="([^"]+)"', index))
    assert named | {"index.html", "en.json", "zh.json"} == set(FILES)


def test_scripts_make_no_html_of_text_and_no_inline_style() -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setAttribute\(\"style|fetch\("
    )
    assert re.findall(forbidden, SCRIPTS) == []
    assert "</" not in SCRIPTS
    assert "<!--" not in SCRIPTS


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".js", ".css"))])
def test_lines_can_be_read(name: str) -> None:
    assert [line for line in page_file(name).splitlines() if len(line) > 140] == []
