/* The head that is shown as an SVG file: for a paper, so always dark on white, and with the words as text. */
(function (CH) {
  "use strict";

  const CELL = 24, INK = "#14181f";

  /** @returns {SVGElement} a picture that stands alone */
  CH.headFigure = function () {
    const trace = CH.trace(), { kind, layer, head, words, hide, scale } = CH.state;
    const shown = CH.shown(trace, kind, CH.weights(trace, kind, layer, head), words, hide), most = (list) => Math.max(...list, 1e-9);
    const values = shown.rows.map((_, r) => shown.cols.map((_, c) => shown.at(r, c))), highest = most(values.flat().map(Number));
    const longest = (groups) => 14 * Math.max(...groups.map((group) => [...group.text].length)) * 0.75 + 16, left = longest(shown.rows), top = longest(shown.cols) * 0.8 + 30;
    const cells = values.flatMap((row, r) => row.map((value, c) => value === null ? null : CH.svg("rect", { x: left + c * CELL, y: top + r * CELL, width: CELL - 1, height: CELL - 1, fill: CH.css(CH.ramp(value / (scale === "row" ? most(row.map(Number)) : highest), "light")), "data-query": r, "data-key": c, "data-weight": CH.num(value, 3) },
      CH.svg("title", {}, shown.rows[r].text + " → " + shown.cols[c].text + ": " + CH.num(value, 3)))));
    const width = left + shown.cols.length * CELL + top * 0.7, height = top + shown.rows.length * CELL + 12;
    return CH.svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: "0 0 " + width.toFixed(0) + " " + height.toFixed(0), width: width.toFixed(0), height: height.toFixed(0), "font-family": "system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif", "font-size": 13, fill: INK },
      CH.svg("rect", { width: "100%", height: "100%", fill: "white" }), CH.svg("text", { x: 6, y: 18, "font-weight": 600 }, CH.t("head.name", { kind: CH.t("kind." + kind), layer: layer + 1, head: head + 1 })), cells,
      shown.rows.map((row, r) => CH.svg("text", { x: left - 7, y: top + (r + 0.5) * CELL + 4, "text-anchor": "end" }, row.text)),
      shown.cols.map((col, c) => CH.svg("text", { transform: "translate(" + (left + (c + 0.5) * CELL + 4) + " " + (top - 7) + ") rotate(-50)" }, col.text)));
  };

  /** Save it, without asking any network. */
  CH.exportHead = function () {
    const { kind, layer, head } = CH.state;
    if (!CH.kinds(CH.trace()).length) return;
    const text = new XMLSerializer().serializeToString(CH.headFigure()), address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    CH.el("a", { href: address, download: kind + "-layer-" + (layer + 1) + "-head-" + (head + 1) + ".svg" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
})(window.CH = window.CH || {});
