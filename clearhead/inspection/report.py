"""Traces as one HTML file that needs nothing else: the page's files, their texts and the numbers."""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

PAGE = files("clearhead.inspection") / "page"
LANGUAGES = ("en", "zh")

STYLESHEET = re.compile(r'<link rel="stylesheet" href="([a-z_]+\.css)">')
SCRIPT = re.compile(r'<script src="([a-z_]+\.js)"></script>')
START = '<meta charset="utf-8">'


def report(traces: Sequence[dict[str, Any]]) -> str:
    """The page with these traces in it; the first is shown, two or more can be compared."""
    styles: list[str] = []
    scripts: list[str] = []

    def style(found: re.Match[str]) -> str:
        styles.append(page_file(found[1]))
        return f"<style>{styles[-1]}</style>"

    def script(found: re.Match[str]) -> str:
        scripts.append(page_file(found[1]))
        return f"<script>{scripts[-1]}</script>"

    html = SCRIPT.sub(script, STYLESHEET.sub(style, page_file("index.html")))
    html = html.replace(START, START + policy(styles, scripts), 1)
    strings = {language: texts(language) for language in LANGUAGES}
    return filled(filled(html, "strings", strings), "traces", list(traces))


def page_file(name: str) -> str:
    """The text of one of the page's files."""
    return (PAGE / name).read_text(encoding="utf-8")


def texts(language: str) -> dict[str, dict[str, str]]:
    """What the page says, in groups."""
    return json.loads(page_file(f"{language}.json"))


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """What the browser may do with the file: run these scripts, use these styles, and nothing else."""
    rules = [
        "default-src 'none'",
        "img-src data:",
        "style-src " + " ".join(map(_hash, styles)),
        "script-src " + " ".join(map(_hash, scripts)),
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ]
    return f'\n<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def filled(html: str, name: str, content: Any) -> str:
    """The JSON goes into the element of that name; nothing that it says can end the element, for it has no `<`."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    before, start, after = html.partition(f'<script type="application/json" id="{name}">')
    return before + start + text + after
