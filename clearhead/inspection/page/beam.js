/* The beam as a lattice: a column for each step, the best at the top. */
(function (CH) {
  "use strict";

  const WIDE = 116, HIGH = 58, BOX = 76, TALL = 26;

  /** The nodes on the way to the one that was taken. */
  function way(nodes, best) {
    const found = new Set();
    for (let node = nodes.get(best); node; node = nodes.get(node.parent)) found.add(node.n);
    return found;
  }

  /** What a node is, in words: also the tooltip. */
  const described = (node) => CH.t("beam.node", { text: node.text, state: CH.t("beam." + node.state), logp: CH.num(node.logp), sum: CH.num(node.sum), score: CH.num(node.score) });

  function lattice(trace, beam) {
    const nodes = new Map(beam.nodes.map((node) => [node.n, node])), taken = way(nodes, beam.best);
    const steps = Math.max(...beam.nodes.map((node) => node.t)), ranks = Math.max(...beam.nodes.map((node) => node.rank));
    const at = (node) => [node.t * WIDE + 8, node.rank * HIGH + 34];
    const edge = (node) => {
      const parent = nodes.get(node.parent), [x1, y1] = at(parent), [x2, y2] = at(node), from = x1 + BOX, turn = (x2 - from) / 2;
      return CH.svg("path", { d: "M" + from + " " + (y1 + TALL / 2) + "C" + (from + turn) + " " + (y1 + TALL / 2) + " " + (x2 - turn) + " " + (y2 + TALL / 2) + " " + x2 + " " + (y2 + TALL / 2), class: "edge " + (taken.has(node.n) ? "taken" : node.state) });
    };
    const shown = (node) => {
      const [x, y] = at(node);
      return CH.svg("g", { class: "node " + node.state + (taken.has(node.n) ? " taken" : ""), "data-n": node.n }, CH.svg("title", {}, described(node)), CH.svg("rect", { x, y, width: BOX, height: TALL, rx: node.state === "finished" ? 2 : 13 }),
        CH.svg("text", { x: x + BOX / 2, y: y + 18, class: "middle", lang: trace.target.lang }, [...node.text].length > 8 ? [...node.text].slice(0, 7).join("") + "…" : node.text || "␣"),
        node.parent === null ? null : CH.svg("text", { x: x + BOX / 2, y: y - 5, class: "tick middle" }, CH.num(node.logp)),
        node.state === "finished" ? CH.svg("text", { x: x + BOX / 2, y: y + TALL + 14, class: "tick middle" }, CH.t("beam.final", { score: CH.num(node.score) })) : null);
    };
    const width = (steps + 1) * WIDE, height = (ranks + 1) * HIGH + 34;
    return CH.el("div", { class: "scroll" }, CH.svg("svg", { viewBox: "0 0 " + width + " " + height, width, height, class: "beam", role: "img", "aria-label": CH.t("beam.label") },
      CH.range(steps + 1).map((t) => CH.svg("text", { x: t * WIDE + 8 + BOX / 2, y: 13, class: "tick middle" }, t)), beam.nodes.filter((node) => node.parent !== null).map(edge), beam.nodes.map(shown)));
  }

  /** The lattice and, for those who cannot see it, the finished hypotheses as a list. */
  CH.beam = function (trace) {
    const beam = trace.beam;
    if (!beam) return [CH.part("beam.title"), CH.say("beam.none")];
    const nodes = new Map(beam.nodes.map((node) => [node.n, node]));
    const text = (node) => [...way(nodes, node.n)].reverse().map((n) => nodes.get(n)).filter((one) => one.parent !== null).map((one) => one.text).join(" ");
    const finished = beam.nodes.filter((node) => node.state === "finished").sort((a, b) => b.score - a.score);
    return [CH.part("beam.title"), CH.say("beam.say", { size: beam.size }), lattice(trace, beam), CH.note("beam.key"),
      CH.el("ol", { class: "finished" }, finished.map((node) => CH.el("li", {}, CH.el("span", { lang: trace.target.lang }, text(node)), " ", CH.el("em", {}, CH.t("beam.scored", { sum: CH.num(node.sum), score: CH.num(node.score), penalty: beam.length_penalty, alpha: beam.alpha ?? "–" })))))];
  };
})(window.CH = window.CH || {});
