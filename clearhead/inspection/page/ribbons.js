/* Weights as bands between two rows of words: the opening's picture, and the lines of one head. */
(function (CH) {
  "use strict";

  const LEAST = 0.05, MOST = 3; // a band is drawn for a weight of at least this, for the largest few of a row

  /** The weights that are drawn: [row, column, weight], the strong ones last and so on top. */
  CH.bands = function (rows, at, cols) {
    const found = [];
    for (let r = 0; r < rows; r++) {
      const row = CH.range(cols).map((c) => at(r, c) || 0);
      for (const c of CH.ranked(row).slice(0, MOST)) if (row[c] >= LEAST) found.push([r, c, row[c]]);
    }
    return found.sort((a, b) => a[2] - b[2]);
  };

  /** One band as a path between two points. */
  CH.band = function ([r, c, weight], [x1, y1], [x2, y2], upright) {
    const half = upright ? [0, (y2 - y1) / 2] : [(x2 - x1) / 2, 0];
    const d = "M" + x1 + " " + y1 + "C" + (x1 + half[0]) + " " + (y1 + half[1]) + " " + (x2 - half[0]) + " " + (y2 - half[1]) + " " + x2 + " " + y2;
    return CH.svg("path", { d, class: "band", "data-query": r, "data-key": c, "data-weight": CH.num(weight, 3), "stroke-width": (1 + 7 * weight).toFixed(1), "stroke-opacity": (0.25 + 0.65 * weight).toFixed(2) });
  };

  /** Bands of the row (or column) in focus stand out. */
  CH.lightBands = function (root, name, value) {
    root.classList.add("focused");
    root.querySelectorAll(".band").forEach((band) => band.classList.toggle("lit", band.dataset[name] === String(value)));
  };

  /**
   * One head as lines: the queries on the left, the keys on the right.
   * @returns {{node: Element, focus: (row: number) => void}}
   */
  CH.lineView = function ({ id, label, rows, cols, at, axes, focus, onFocus, rowLang, colLang }) {
    const high = 28, width = 560, left = 210, right = 350, top = 34, height = top + high * Math.max(rows.length, cols.length) + 6;
    const offset = (list) => top + (high * (Math.max(rows.length, cols.length) - list.length)) / 2 + high / 2;
    const y = (list, i) => offset(list) + i * high;
    const name = (item, x, at, lang, role) => CH.svg("text", { x, y: at + 5, lang, class: "word " + role + (item.special ? " special" : "") }, item.text);
    const svg = CH.svg("svg", { viewBox: "0 0 " + width + " " + height, class: "lines", id, role: "group", "aria-label": label, style: { "min-width": "460px" } },
      CH.svg("text", { x: left, y: 14, class: "axis end" }, axes[0]), CH.svg("text", { x: right, y: 14, class: "axis" }, axes[1]),
      CH.bands(rows.length, at, cols.length).map((one) => CH.band(one, [left + 8, y(rows, one[0])], [right - 8, y(cols, one[1])])),
      cols.map((item, c) => name(item, right, y(cols, c), colLang, "")),
      rows.map((item, r) => CH.svg("g", { class: "asks", role: "button", "aria-label": item.text, mouseenter: () => onFocus(r), focus: () => onFocus(r) },
        CH.svg("rect", { x: 0, y: y(rows, r) - high / 2, width: left + 4, height: high, fill: "transparent" }), name(item, left, y(rows, r), rowLang, "end"))));
    CH.roving(svg, ".asks", Math.max(0, focus), onFocus);
    const show = (row) => {
      CH.lightBands(svg, "query", row);
      svg.querySelectorAll(".asks").forEach((one, r) => one.classList.toggle("lit", r === row));
    };
    show(focus);
    return { node: CH.el("div", { class: "scroll" }, svg), focus: show };
  };
})(window.CH = window.CH || {});
