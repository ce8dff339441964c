/* The head that is shown as an SVG file for a paper: dark on white, words as text. */
(function (CH) {
"use strict";

const { most, num, svg } = CH;
const CELL = 24;

CH.headFigure = function () {
  const shown = CH.shown(CH.trace(), CH.state), { rows, cols } = shown,
    values = rows.map((_, r) => cols.map((_, c) => shown.at(r, c))), highest = most(values.flat());
  const longest = (groups) => most(groups.map((group) => [...group.text].length)) * 11 + 16, left = longest(rows),
    top = longest(cols) * 0.8 + 30;
  const cell = (value, r, c) => value === null ? null
    : svg("rect", { x: left + c * CELL, y: top + r * CELL, width: CELL - 1, height: CELL - 1,
    fill: CH.css(CH.ramp(value / (CH.state.scale === "row" ? most(values[r]) : highest), "light")),
    "data-query": r, "data-key": c, "data-weight": num(value, 3) });
  const width = Math.ceil(left + cols.length * CELL + top * 0.7), height = Math.ceil(top + rows.length * CELL + 12);
  return svg("svg", { viewBox: "0 0 " + width + " " + height, width, height,
    "font-family": "sans-serif", "font-size": 13,
    fill: "#14181f" },
    svg("rect", { width, height, fill: "white" }), svg("text", { x: 6, y: 18, "font-weight": 600 },
      CH.headName(CH.state)), values.map((row, r) => row.map((value, c) => cell(value, r, c))),
    rows.map((row, r) => svg("text", { x: left - 7, y: top + (r + 0.5) * CELL + 4, "text-anchor": "end" }, row.text)),
    cols.map((col, c) => svg("text",
      { transform: "translate(" + (left + (c + 0.5) * CELL + 4) + " " + (top - 7) + ") rotate(-50)" }, col.text)));
};

CH.exportHead = function () {
  const { kind, layer, head } = CH.state;
  if (!CH.kinds(CH.trace()).length) return;
  const file = new Blob([new XMLSerializer().serializeToString(CH.headFigure())], { type: "image/svg+xml" }),
    href = URL.createObjectURL(file);
  CH.el("a", { href, download: [kind, "layer", layer + 1, "head", head + 1].join("-") + ".svg" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
};
})(window.CH = window.CH || {});
