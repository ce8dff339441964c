/* Bars of words and numbers, and lines over an axis. */
(function (CH) {
  "use strict";

  /**
   * One line for each item: its name, a bar, its value.
   * @param {Array<{text: string|Node, value: number, shown: string, lang?: string, strong?: boolean, faint?: boolean, click?: () => void}>} items
   * @param {{least?: number, most?: number, label: string}} options bars go from `least` (or 0) to `most`
   */
  CH.bars = function (items, { least = 0, most, label }) {
    const low = Math.min(0, least), span = (most || Math.max(...items.map((one) => one.value), 1e-9)) - low;
    return CH.el("ol", { class: "bars", "aria-label": label }, items.map((item) => {
      const from = (Math.min(0, item.value) - low) / span, length = Math.abs(item.value) / span;
      const bar = CH.el("i", { style: { "margin-left": (100 * from).toFixed(2) + "%", width: (100 * CH.clamp(length, 0, 1)).toFixed(2) + "%" } });
      return CH.el("li", { class: [item.strong && "strong", item.faint && "faint", item.value < 0 && "negative"].filter(Boolean).join(" ") || null },
        CH.el("span", { class: "name", lang: item.lang }, item.text), CH.el("span", { class: "track" }, bar), CH.el("span", { class: "value" }, item.shown));
    }));
  };

  /** Numbers at round places between two ends, about `wanted` of them. */
  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(Math.abs(at) < step / 1e6 ? 0 : at);
    return found;
  }

  /**
   * Curves over one axis.
   * @param {Array<{name: string, points: Array<[number, number]>, band?: Array<[number, number, number]>}>} curves at most three
   * @param {{label: string, x: string, y: string, names?: string[]}} options
   */
  CH.lines = function (curves, { label, x, y }) {
    const width = 560, height = 230, left = 48, right = 14, top = 26, bottom = 40;
    const all = curves.flatMap((one) => [...one.points.map((p) => p), ...(one.band || []).flatMap(([at, low, high]) => [[at, low], [at, high]])]);
    const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
    const ends = [Math.min(...xs), Math.max(...xs), Math.min(0, ...ys), Math.max(...ys)];
    const place = (at, value) => [left + (width - left - right) * (at - ends[0]) / (ends[1] - ends[0] || 1), top + (height - top - bottom) * (1 - (value - ends[2]) / (ends[3] - ends[2] || 1))];
    const path = (points) => points.map((p, i) => (i ? "L" : "M") + place(...p).map((v) => v.toFixed(1)).join(" ")).join("");
    const svg = CH.svg("svg", { viewBox: "0 0 " + width + " " + height, class: "chart", role: "img", "aria-label": label });
    for (const value of ticks(ends[2], ends[3], 4)) {
      const at = place(ends[0], value)[1];
      svg.append(CH.svg("line", { x1: left, x2: width - right, y1: at, y2: at, class: "rule" }), CH.svg("text", { x: left - 7, y: at + 4, class: "tick end" }, String(Number(value.toPrecision(3)))));
    }
    for (const value of ticks(ends[0], ends[1], 6)) svg.append(CH.svg("text", { x: place(value, 0)[0], y: height - bottom + 18, class: "tick middle" }, String(Number(value.toPrecision(3)))));
    curves.forEach((one, i) => {
      if (one.band) svg.append(CH.svg("path", { d: path([...one.band.map(([at, low]) => [at, low]), ...one.band.map(([at, , high]) => [at, high]).reverse()]) + "Z", class: "band curve-" + i }));
      svg.append(CH.svg("path", { d: path(one.points), class: "line curve-" + i }));
      svg.append(CH.svg("text", { x: width - right, y: top + 4 + 17 * i, class: "tick end name curve-" + i }, one.name));
    });
    svg.append(CH.svg("text", { x: left, y: 12, class: "tick" }, y), CH.svg("text", { x: width - right, y: height - 4, class: "tick end" }, x));
    return svg;
  };

  /** Numbers of a vector: the first eight, shaded, and how many more there are. */
  CH.vector = function (values, most) {
    const first = [...values.subarray(0, 8)], high = most || Math.max(...first.map(Math.abs), 1e-9);
    return CH.el("span", { class: "vector" }, first.map((value) => {
      const rgb = CH.signs(value / high);
      return CH.el("span", { style: { background: CH.css(rgb), color: CH.inkOn(rgb) } }, CH.num(value));
    }), values.length > 8 ? CH.el("em", {}, CH.t("vector.more", { n: values.length - 8 })) : null);
  };

  /** A plain table of facts: name and value. */
  CH.facts = (pairs) => CH.el("dl", { class: "facts" }, pairs.map(([name, value]) => CH.el("div", {}, CH.el("dt", {}, name), CH.el("dd", {}, value))));
})(window.CH = window.CH || {});
