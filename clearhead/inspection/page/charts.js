/* Bars, lines over an axis, vectors, facts. */
(function (CH) {
"use strict";

const { el, num, svg, text } = CH;

/**
 * One line for each item: its name, a bar from 0, its value; bars go from `least` to `most`.
 * @param {Array<{text, value: number, shown: string, lang?: string, strong?: boolean, faint?: boolean}>} items
 */
CH.bars = function (items, { label, least = 0, most }) {
  const low = Math.min(0, least), span = (most === undefined ? CH.most(items.map((one) => one.value)) : most) - low
    || 1;
  const share = (value) => (100 * CH.clamp(value / span, 0, 1)).toFixed(2) + "%";
  return el("ol", { class: "bars", "aria-label": label }, items.map((item) => {
    const bar = el("i", { style: { "margin-left": share(Math.min(0, item.value) - low),
      width: share(Math.abs(item.value)) } });
    const looks = { strong: item.strong, faint: item.faint, negative: item.value < 0 };
    return el("li", { class: Object.keys(looks).filter((name) => looks[name]).join(" ") || null },
      el("span", { class: "name", lang: item.lang }, item.text), el("span", { class: "track" }, bar),
        el("span", {}, item.shown));
  }));
};

// Round numbers between two ends, about `wanted` of them
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough), first = Math.ceil(low / step);
  return CH.range(Math.floor(high / step + 1e-6) - first + 1).map((i) => Number(((first + i) * step).toPrecision(3)));
}

// Curves over one axis, each {name, points: [[x, mean, least, most], …]}
CH.lines = function (curves, { label, x, y }) {
  const width = 480, height = 220, left = 44, right = 10, top = 26, bottom = 38,
    all = curves.flatMap((one) => one.points);
  const end = CH.most(all.map((one) => one[0])), high = CH.most(all.map((one) => one[3])),
    low = Math.min(0, ...all.map((one) => one[2]));
  const across = (value) => left + (width - left - right) * value / end,
    up = (value) => top + (height - top - bottom) * (high - value) / (high - low);
  const path = (points) => "M" + points.map((one) => across(one[0]).toFixed(1) + " " + up(one[1]).toFixed(1)).join("L");
  return svg("svg", { viewBox: "0 0 " + width + " " + height, class: "chart", role: "img", "aria-label": label },
    ticks(low, high, 4).map((value) => [svg("path", { d: "M" + left + " " + up(value) + "H" + (width - right),
      class: "rule" }), text(left - 7, up(value) + 4, "tick end", value)]),
    ticks(0, end, 6).map((value) => text(across(value), height - bottom + 18, "tick middle", value)),
    curves.map(({ name, points }, i) => svg("g", { class: "curve-" + i },
      svg("path", { d: path([...points.map((one) => [one[0], one[2]]),
      ...points.map((one) => [one[0], one[3]]).reverse()]), class: "range" }),
      svg("path", { d: path(points), class: "line" }), text(left + 8 + 90 * i, top + 6, "tick name", name))),
    text(left, 12, "tick", y), text(width - right, height - 4, "tick end", x));
};

// The first eight numbers of a vector, shaded, and how many more there are
CH.vector = function (values, most) {
  const first = values.subarray(0, 8), high = most || CH.most(first.map(Math.abs));
  return el("span", { class: "vector" },
    [...first].map((value) => el("span", { style: CH.shade(CH.signs(value / high)) }, num(value))),
    values.length > 8 && el("em", {}, CH.t("vector.more", { n: values.length - 8 })));
};

CH.facts = (pairs) => el("dl", { class: "facts" },
  pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
})(window.CH = window.CH || {});
