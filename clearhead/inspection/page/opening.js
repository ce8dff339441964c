/* First: the sentence, its translation, what was read for which word, and that in one plain sentence. */
(function (CH) {
"use strict";

const { el, num, prob, set, t, tn } = CH;

// The head whose ribbons are drawn: the selected one if it is cross attention, else the one that aligns best
const ribbonHead = (trace) => CH.state.kind === "cross" && CH.kinds(trace).length ? CH.state : trace.alignment;

// A row of tokens; mouse, Tab and arrows all mean focus
function tokenRow(id, tokens, { lang }, start, chosen) {
  const row = el("div", { class: "tokens", id, role: "listbox",
    "aria-label": t("opening." + id), "aria-orientation": "horizontal" },
    tokens.map((token, i) => el("span", { role: "option", lang, class: token.special && "special",
      title: token.piece, mouseenter: () => chosen(i), focus: () => chosen(i) }, CH.tokenText(token))));
  CH.roving(row, "span", start, chosen);
  return row;
}

// Bands between the two rows, where they stand now
function drawRibbons(ribbons, sources, targets, weights) {
  const frame = ribbons.getBoundingClientRect();
  const middle = (token, edge) => [token.offsetLeft + token.offsetWidth / 2, edge];
  const bands = CH.bands(weights.rows, weights.cols, (r, c) => weights.at[r * weights.cols + c]);
  ribbons.replaceChildren(...bands.map((one) => CH.band(one, middle(targets.children[one[0]], frame.height),
    middle(sources.children[one[1]], 0), true)));
}

// How likely the word was, and which one came next
function chance(trace, step) {
  const values = { count: CH.count(trace.model.vocabulary), p: prob(Math.exp(step.logp)) },
    other = step.top.findIndex(([id]) => id !== step.chosen);
  if (other < 0) return [];
  const isPreferred = step.top[other][1] > step.logp;
  return tn(isPreferred ? "say.preferred" : "say.chosen",
    { ...values, other: CH.bold(step.top_text[other], trace.target.lang),
    other_p: prob(Math.exp(step.top[other][1])) });
}

// Which word, which head, what it read, and what else could have been written
CH.saying = function () {
  const trace = CH.trace(), { side, step } = CH.state;
  if (!CH.kinds(trace).length) return tn("say.none");
  const writing = CH.state.kind === "encoder" && side === "target"
    && trace.alignment; // a word of the translation is in focus
  const shown = writing || CH.state, { kind } = shown, row = writing ? step : CH.query(), key = writing ? -1
    : CH.state.key;
  const weights = CH.weights(trace, shown), keys = CH.keyTokens(trace, kind),
    { rowLang, colLang } = CH.langs(trace, kind);
  const names = CH.numbers(shown), read = (c) => CH.word(keys[c], colLang);
  if (side === "source" && kind === "cross" && key >= 0) {
    const column = CH.range(weights.rows).map((r) => weights.at[r * weights.cols + key]), best = CH.argmax(column);
    return tn("say.source", { ...names, word: read(key), written: CH.word(trace.target.tokens[best + 1], rowLang),
      weight: prob(column[best]) });
  }
  const values = CH.weightRow(weights, row), best = CH.argmax(values), word = kind === "encoder" ? keys[row]
    : trace.target.tokens[row + 1];
  const parts = tn("say." + kind, { ...names, read: read(best), weight: prob(values[best]),
    word: CH.word(word, rowLang) });
  if (key >= 0 && key !== best) parts.push(" ", ...tn(CH.masked(kind, row, key) ? "say.masked" : "say.also",
    { read: read(key), weight: prob(values[key]) }));
  if (weights.rest && weights.rest[row] > 0) parts.push(" ", ...tn("say.rest", { weight: prob(weights.rest[row]) }));
  const written = kind !== "encoder" && trace.steps.find((one) => one.t === row + 1);
  return written ? [...parts, " ", ...chance(trace, written)] : parts;
};

function reason(trace, drawn) {
  const best = trace.alignment, names = CH.numbers(drawn);
  if (best?.layer !== drawn.layer || best.head !== drawn.head) return el("p", { class: "note" },
    t("ribbons.other", names), " ",
    best && CH.button("to-best", t("ribbons.back"), () => set({ kind: "cross", layer: best.layer, head: best.head }),
      { class: "link" }));
  const others = best.runners_up.map((one) => t("ribbons.runner", { ...CH.numbers(one), score: num(one.score) }));
  return el("details", { class: "note" }, el("summary", {}, t("ribbons.best", { ...names, score: num(best.score) })),
    el("p", {}, t("ribbons.formula", { formula: best.formula }), others.length
      ? t("ribbons.runners", { list: others.join(t("list.comma")) }) : ""));
}

const sentence = (side, key) => el("p", { class: "sentence " + key }, el("span", { class: "tag" }, t("opening." + key)),
  el("span", { lang: side.lang }, side.text));

/** @returns {() => void} what to do when only the focus has changed */
CH.opening = function (root) {
  const trace = CH.trace(), { source, target } = trace, drawn = ribbonHead(trace);
  const sources = tokenRow("sources", source.tokens, source, 0,
    (i) => set(CH.state.kind === "cross" ? { key: i, side: "source" } : { place: i, side: "source" }));
  const targets = tokenRow("targets", target.tokens.slice(1), target, CH.state.step,
    (i) => set({ step: i, side: "target", key: -1 }));
  const ribbons = CH.svg("svg", { class: "ribbons", "aria-hidden": "true" }),
    picture = el("div", { class: source.tokens.length + target.tokens.length > 32 ? "alignment many" : "alignment" },
      sources, ribbons, targets);
  const saying = el("p", { id: "saying", role: "status", "aria-live": "polite" });
  root.replaceChildren(sentence(source, "source"), sentence(target, target.forced ? "forced" : "target"),
    el("div", { class: "scroll" }, picture), saying,
    el("p", { class: "note" }, t("opening.caution"), " ", trace.occlusion
      && CH.button("to-occlusion", t("decoding.occlusion"), () => set({ view: "decoding" }), { class: "link" })),
      drawn ? reason(trace, drawn) : "");
  const select = (row, at) => [...row.children].forEach((one, i) => one.setAttribute("aria-selected", i === at));
  const focus = () => {
    const { step, key, side, kind, place } = CH.state, bySource = side === "source" && kind === "cross" && key >= 0;
    const frame = picture.parentNode, at = targets.children[step].offsetLeft - frame.scrollLeft;
    if (!bySource && (at < 0 || at > frame.clientWidth - 40)) frame.scrollLeft += at - frame.clientWidth / 2;
    CH.lightBands(ribbons, bySource ? "key" : "query", bySource ? key : step);
    select(targets, bySource ? -1 : step);
    select(sources, kind === "encoder" ? place : kind === "cross" ? key : -1);
    saying.replaceChildren(...CH.saying());
  };
  const weights = drawn && CH.weights(trace, { ...drawn, kind: "cross" });
  const place = () => { if (weights) drawRibbons(ribbons, sources, targets, weights); focus(); };
  new ResizeObserver(place).observe(picture);
  place();
  return focus;
};
})(window.CH = window.CH || {});
