"""The page at /: the report's files, with the live part's beside them and the texts of both in it."""

import json
import mimetypes
from importlib.resources import files

from clearhead.inspection import report

PAGE = files("clearhead.serve") / "page"
INDEX = "index.html"
HEAD = '<link rel="icon" href="icon.svg">\n<link rel="stylesheet" href="live.css">\n</head>'
# After the report's, in this order.
SCRIPTS = ("ask.js", "choices.js", "words.js", "look.js", "what-if.js", "write.js", "file.js", "live.js")


def page_files() -> dict[str, tuple[bytes, str]]:
    """Path -> content and type. Read once; no path from a request ever reaches the disk."""
    found = {
        file.name: file.read_bytes()
        for folder in (report.PAGE, PAGE)
        for file in folder.iterdir()
        if file.is_file() and not file.name.startswith((".", "_"))
    }
    found[INDEX] = _index().encode()
    served = {f"/{name}": (content, _kind(name)) for name, content in found.items()}
    return served | {"/": served[f"/{INDEX}"]}


def texts(language: str) -> dict[str, dict[str, str]]:
    """Of the views and of the live part, in groups."""
    live = json.loads((PAGE / f"live-{language}.json").read_text(encoding="utf-8"))
    return report.texts(language) | live


def _index() -> str:
    scripts = "".join(f'<script src="{name}"></script>\n' for name in SCRIPTS)
    html = report.page_file(INDEX).replace("</head>", HEAD, 1).replace("</body>", f"{scripts}</body>", 1)
    return report.filled(html, "strings", {language: texts(language) for language in report.LANGUAGES})


def _kind(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
