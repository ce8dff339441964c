"""The page: claim, what we did, what came out, what it does not show; one file, both languages, no network.

All text goes through `html.escape` on its way in, and scripts and styles are let in by their hashes alone.
"""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib import resources

from clearhead.versions import versions

from .drawing import draw
from .experiment import FAILS, HOLDS, IN_PART, VERDICTS, Cell, Finding, Text, number, same
from .running import Result

WORDS = {
    "title": Text("The lecture's claims, measured", "讲义里的说法，逐条测量"),
    "lead": Text(
        "Lecture notes say why the Transformer is built as it is. Here each of their claims is a small experiment on "
        "the model of this package, changed only by its options. Where a claim does not come out, the page says so: "
        "these teach most.",
        "讲义解释了 Transformer 为什么这样设计。这里把每条说法做成一个小实验，都用本软件包自己的模型，只改它的选项。"
        "有的说法没有测出来，页面会照实写明：这些往往最有启发。",
    ),
    "reading": Text(
        "Numbers are means over the seeds, with the lowest and highest in brackets; so are the bands and whiskers in "
        "the plots. Verdicts are computed from the numbers, by limits that stand in the code. Toy models on toy "
        "tasks: directions carry over, sizes need not.",
        "数字是各随机种子的平均值，括号里是最低和最高；图中的色带和须线也是这个范围。结论按写在代码里的界限由数字算出。"
        "模型和任务都很小：方向可以推广，大小不一定。",
    ),
    "overview": Text("Overview", "一览"),
    "experiment": Text("experiment", "实验"),
    "verdict": Text("verdict", "结论"),
    "came out": Text("What came out", "结果"),
    "did": Text("What we did", "做法"),
    "claim": Text("Claim", "说法"),
    "limits": Text("What it does not show", "没有说明的"),
    "numbers": Text("All numbers", "全部数字"),
    "seeds": Text("seeds", "随机种子"),
    "seconds": Text("CPU seconds", "CPU 秒"),
    "again": Text("run it yourself", "自己运行"),
    "language": Text("中文", "English"),
    "made": Text("Made by", "生成命令"),
    "top": Text("back to the top", "回到顶部"),
}
CLASSES = {HOLDS: "holds", IN_PART: "part", FAILS: "fails"}
MARKS = {HOLDS: "✓", IN_PART: "◐", FAILS: "✗"}


def page(results: Sequence[Result], command: str) -> str:
    """An HTML page of these results; with more than one, an overview comes first."""
    style, script = _file("page.css"), _file("page.js")
    findings = [(result, result.finding()) for result in results]
    body = [_head(), _overview(findings) if len(findings) > 1 else ""]
    body += [_section(result, finding) for result, finding in findings]
    known = versions()
    made = f"{command} · clearhead {known['clearhead']} · torch {known['torch']} · {known['cpu']}"
    footer = f"<footer><p>{_word('made')}: <code>{escape(made)}</code></p></footer>"
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    return f"""<!doctype html>
<html lang="en" data-language="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}; form-action 'none'">
<title>{escape(_title(results).en)} · {escape(_title(results).zh)}</title>
<style>{style}</style>
</head>
<body>
{"".join(body)}
{footer}
<script>{script}</script>
</body>
</html>
"""


def both(text: Text) -> str:
    """A text in both languages, of which the page shows one."""
    if text.en == text.zh:
        return escape(text.en)
    return f'<span lang="en">{escape(text.en)}</span><span lang="zh-CN">{escape(text.zh)}</span>'


def _title(results: Sequence[Result]) -> Text:
    return WORDS["title"] if len(results) > 1 else results[0].experiment.title


def _head() -> str:
    return f"""<header id="top">
<button type="button" id="language">{_word("language")}</button>
<p class="brand">Clearhead lab</p>
<h1>{_word("title")}</h1>
<p class="lead">{_word("lead")}</p>
<p class="reading">{_word("reading")}</p>
</header>
"""


def _overview(findings: Sequence[tuple[Result, Finding]]) -> str:
    counts = {name: sum(finding.verdict == name for _, finding in findings) for name in VERDICTS}
    chips = " ".join(f'<span class="count">{_chip(name)} {count}</span>' for name, count in counts.items())
    rows = [
        f'<tr><td><a href="#{result.experiment.name}">{both(result.experiment.title)}</a></td>'
        f"<td>{_chip(finding.verdict)}</td><td>{both(finding.summary)}</td></tr>"
        for result, finding in findings
    ]
    heads = "".join(f"<th>{_word(name)}</th>" for name in ("experiment", "verdict", "came out"))
    return f"""<nav>
<h2>{_word("overview")}</h2>
<p class="chips">{chips}</p>
<table class="overview"><thead><tr>{heads}</tr></thead><tbody>
{"".join(rows)}
</tbody></table>
</nav>
"""


def _section(result: Result, finding: Finding) -> str:
    experiment = result.experiment
    plots = "".join(f"<figure>{_plot(finding, i)}</figure>" for i in range(len(finding.plots)))
    seconds = number(sum(run.cpu_seconds for run in result.runs))
    seeds = ", ".join(str(run.seed) for run in result.runs)
    facts = f"{_word('seeds')}: {seeds} · {_word('seconds')}: {seconds} · {_word('again')}: "
    return f"""<section id="{experiment.name}">
<h2>{both(experiment.title)} {_chip(finding.verdict)}</h2>
<blockquote><p>{both(experiment.claim)}</p><footer>{both(experiment.source)}</footer></blockquote>
<h3>{_word("did")}</h3>
<p>{both(experiment.did)}</p>
<h3>{_word("came out")}</h3>
<p class="summary">{both(finding.summary)}</p>
<div class="plots">{plots}</div>
<details><summary>{_word("numbers")}</summary><div class="wide">{_table(finding)}</div></details>
<h3>{_word("limits")}</h3>
<p>{both(experiment.limits)}</p>
<p class="facts">{facts}<code>clearhead lab run {experiment.name}</code> · <a href="#top">{_word("top")}</a></p>
</section>
"""


def _plot(finding: Finding, place: int) -> str:
    """In both languages; drawn once if they are the same."""
    en, zh = (draw(finding.plots[place], language) for language in ("en", "zh"))
    title = finding.plots[place].title
    if en == zh:
        return _labelled(en, title.en)
    return f'<div lang="en">{_labelled(en, title.en)}</div><div lang="zh-CN">{_labelled(zh, title.zh)}</div>'


def _labelled(svg: str, title: str) -> str:
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _table(finding: Finding) -> str:
    heads = "".join(f"<th>{both(column)}</th>" for column in finding.table.columns)
    rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in finding.table.rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(cell: Cell) -> str:
    return f"<td>{both(cell)}</td>" if isinstance(cell, Text) else f'<td class="number">{escape(str(cell))}</td>'


def _chip(verdict: str) -> str:
    mark = both(same(MARKS[verdict]))
    return (
        f'<span class="chip {CLASSES[verdict]}"><span aria-hidden="true">{mark}</span> {both(VERDICTS[verdict])}</span>'
    )


def _word(name: str) -> str:
    return both(WORDS[name])


def _file(name: str) -> str:
    return (resources.files("clearhead") / "lab" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
