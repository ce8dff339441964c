/* The beam as a lattice: a column for each step, the best at the top. */
(function (CH) {
"use strict";

const { el, num, svg, t, text } = CH;
const WIDE = 116, HIGH = 64, BOX = 76, TALL = 26;

// The nodes on the way to one, the last first
function way(nodes, last) {
  const found = [];
  for (let node = nodes.get(last); node; node = nodes.get(node.parent)) found.push(node);
  return found;
}

function lattice({ target, beam }, nodes) {
  const taken = new Set(way(nodes, beam.best)), at = (node) => [node.t * WIDE + 8, node.rank * HIGH + 34];
  const look = (node) => node.state + (taken.has(node) ? " taken" : ""), short = (word) => [...word].length > 8
    ? [...word].slice(0, 7).join("") + "…" : word;
  const edge = (node) => {
    const [x1, y1] = at(nodes.get(node.parent)), [x2, y2] = at(node), from = x1 + BOX, half = (x2 - from) / 2,
      mid = TALL / 2;
    return svg("path", { d: "M" + [from, y1 + mid] + "C" + [from + half, y1 + mid, x2 - half, y2 + mid, x2, y2 + mid],
      class: "edge " + look(node) });
  };
  const shown = (node) => {
    const [x, y] = at(node), middle = x + BOX / 2, isEnd = node.state === "finished", logp = num(node.logp);
    return svg("g", { class: "node " + look(node), lang: target.lang },
      svg("title", {}, node.text + " · log p " + logp + " · Σ " + num(node.sum)),
      svg("rect", { x, y, width: BOX, height: TALL, rx: isEnd ? 2 : 13 }),
      text(middle, y + 18, "middle", short(node.parent === null ? target.tokens[0].text : node.text || "␣")),
      node.parent === null ? null : text(middle, y - 5, "tick middle", logp), isEnd
        && text(middle, y + TALL + 14, "tick middle", t("beam.final", { score: num(node.score) })));
  };
  const width = (CH.most(beam.nodes.map((node) => node.t)) + 1) * WIDE,
    height = (CH.most(beam.nodes.map((node) => node.rank), 0) + 1) * HIGH + 24;
  return el("div", { class: "scroll" },
    svg("svg", { viewBox: "0 0 " + width + " " + height, width, height, class: "beam", role: "img",
    "aria-label": t("beam.title") },
    CH.range(width / WIDE).map((step) => text(step * WIDE + 8 + BOX / 2, 13, "tick middle", step)),
      beam.nodes.filter((node) => nodes.has(node.parent)).map(edge), beam.nodes.map(shown)));
}

CH.beam = function (trace) {
  const { beam, target } = trace;
  if (!beam) return [CH.part("beam.title"), CH.say("beam.none")];
  const nodes = new Map(beam.nodes.map((node) => [node.n, node])),
    finished = beam.nodes.filter((node) => node.state === "finished").sort((a, b) => b.score - a.score);
  const line = (node) => el("li", {},
    el("span", { lang: target.lang }, way(nodes, node.n).reverse().slice(1).map((one) => one.text).join(" ")), " ",
    el("em", {}, t("beam.scored", { sum: num(node.sum), score: num(node.score) })));
  return [CH.part("beam.title"), CH.say("beam.say", { size: beam.size, penalty: beam.length_penalty,
    alpha: beam.alpha ?? "–" }), lattice(trace, nodes), CH.note("beam.key"),
    el("ol", { class: "finished" }, finished.map(line))];
};
})(window.CH = window.CH || {});
