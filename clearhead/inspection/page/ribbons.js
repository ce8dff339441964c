/* Weights as bands between words: the opening's picture, and the lines of one head. */
(function (CH) {
"use strict";

const { svg, text } = CH;
const LEAST = 0.05, MOST = 3; // the weights that are drawn, and how many of a row

// The bands [row, column, weight] that are drawn, the strong ones last and so on top
CH.bands = function (rows, cols, at) {
  return CH.range(rows).flatMap((r) => {
    const row = CH.range(cols).map((c) => at(r, c) || 0);
    return CH.ranked(row).slice(0, MOST).filter((c) => row[c] >= LEAST).map((c) => [r, c, row[c]]);
  }).sort((a, b) => a[2] - b[2]);
};

// One band from a point to another; it leaves upwards or sideways
CH.band = function ([r, c, weight], [x1, y1], [x2, y2], isUpright) {
  const [x, y] = isUpright ? [0, (y2 - y1) / 2] : [(x2 - x1) / 2, 0];
  return svg("path", { d: "M" + [x1, y1] + "C" + [x1 + x, y1 + y, x2 - x, y2 - y, x2, y2], class: "band",
    "data-query": r,
    "data-key": c, "data-weight": CH.num(weight, 3), "stroke-width": (1 + 7 * weight).toFixed(1),
      "stroke-opacity": (0.25 + 0.65 * weight).toFixed(2) });
};

// The bands of a row ("query") or column ("key") stand out
CH.lightBands = function (root, side, value) {
  root.classList.add("focused");
  root.querySelectorAll(".band").forEach((band) => band.classList.toggle("lit", band.dataset[side] === String(value)));
};

// One head as lines, queries left, keys right; takes what a matrix takes
CH.lineView = function ({ id, label, rows, cols, at, axes, focus, onFocus, rowLang, colLang }) {
  const high = 28, left = 210, right = 350, most = Math.max(rows.length, cols.length);
  const y = (list, i) => 34 + high * ((most - list.length) / 2 + i + 0.5);
  const name = (item, x, at, kind, lang) => svg("text",
    { x, y: at + 5, lang, class: kind + (item.special ? " special" : "") }, item.text);
  const picture = svg("svg", { viewBox: "0 0 560 " + (high * most + 40), class: "lines", id, role: "group",
    "aria-label": label },
    text(left, 14, "axis end", axes[0]), text(right, 14, "axis", axes[1]),
    CH.bands(rows.length, cols.length, at).map((one) => CH.band(one, [left + 8, y(rows, one[0])],
      [right - 8, y(cols, one[1])])),
    cols.map((item, c) => name(item, right, y(cols, c), "", colLang)),
    rows.map((item, r) => svg("g", { class: "asks", role: "button", "aria-label": item.text,
      mouseenter: () => onFocus(r), focus: () => onFocus(r) },
      svg("rect", { y: y(rows, r) - high / 2, width: left + 4, height: high, fill: "transparent" }),
        name(item, left, y(rows, r), "end", rowLang))));
  CH.roving(picture, ".asks", Math.max(0, focus[0]), onFocus);
  const show = (row) => {
    CH.lightBands(picture, "query", row);
    picture.querySelectorAll(".asks").forEach((one, r) => one.classList.toggle("lit", r === row));
  };
  show(focus[0]);
  return { node: CH.el("div", { class: "scroll" }, picture), focus: show };
};
})(window.CH = window.CH || {});
