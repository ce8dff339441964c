/* The first thing seen: the sentence, its translation, what was read for which word, and that in one plain sentence. */
(function (CH) {
  "use strict";

  /** The head whose ribbons are drawn: the selected one if it is cross attention, else the one that aligns best. */
  function ribbonHead(trace) {
    const { kind, layer, head } = CH.state;
    if (kind === "cross") return CH.kinds(trace).includes("cross") ? { layer, head } : null;
    return trace.alignment;
  }

  CH.isAligning = (trace, kind, layer, head) => Boolean(trace.alignment) && kind === trace.alignment.kind && layer === trace.alignment.layer && head === trace.alignment.head;

  /** A row of tokens; mouse, Tab and arrows all mean focus. */
  function tokenRow(id, tokens, lang, label, start, chosen) {
    const row = CH.el("div", { class: "tokens", id, role: "listbox", "aria-label": label, "aria-orientation": "horizontal" },
      tokens.map((token, i) => CH.el("span", { role: "option", lang, class: token.special ? "token special" : "token", title: token.piece === token.text ? null : token.piece,
        mouseenter: () => chosen(i), focus: () => chosen(i) }, CH.tokenText(token))));
    CH.roving(row, ".token", start, chosen);
    return row;
  }

  /** Bands between the two rows, where they stand now. */
  function drawRibbons(picture, weights) {
    const svg = picture.querySelector("svg"), frame = svg.getBoundingClientRect();
    const middle = (token, edge) => { const box = token.getBoundingClientRect(); return [(box.left + box.right) / 2 - frame.left, edge]; };
    const sources = [...picture.querySelectorAll("#sources .token")], targets = [...picture.querySelectorAll("#targets .token")];
    svg.replaceChildren(...CH.bands(weights.rows, (r, c) => weights.at[r * weights.cols + c], weights.cols)
      .map((one) => CH.band(one, middle(targets[one[0]], frame.height), middle(sources[one[1]], 0), true)));
  }

  /** Which word, which head, what it read, and what else could have been written. */
  CH.saying = function () {
    const trace = CH.trace(), { side } = CH.state;
    if (!CH.kinds(trace).length) return CH.tn("say.none", {});
    const writing = CH.state.kind === "encoder" && side === "target" && trace.alignment; // a word of the translation is in focus
    const { kind, layer, head } = writing || CH.state, row = writing ? CH.state.step : CH.query(), key = writing ? -1 : CH.state.key;
    const weights = CH.weights(trace, kind, layer, head), keys = CH.keyTokens(trace, kind);
    const word = (token, lang) => CH.word(token, lang), names = { kind: CH.t("kind." + kind), layer: layer + 1, head: head + 1 };
    const keyLang = CH.keyLang(trace, kind);
    if (side === "source" && kind === "cross" && key >= 0) {
      const column = CH.range(weights.rows).map((r) => weights.at[r * weights.cols + key]), best = CH.argmax(column);
      return CH.tn("say.source", { ...names, word: word(keys[key], keyLang), written: word(CH.queryTokens(trace, kind)[best], trace.target.lang), weight: CH.prob(column[best]) });
    }
    const values = CH.weightRow(weights, row), best = CH.argmax(values);
    const read = { ...names, read: word(keys[best], keyLang), weight: CH.prob(values[best]) };
    const parts = kind === "encoder" ? CH.tn("say.encoder", { ...read, word: word(trace.source.tokens[row], trace.source.lang) })
      : CH.tn("say." + kind, { ...read, word: word(trace.target.tokens[row + 1], trace.target.lang) });
    if (key >= 0 && key !== best) parts.push(" ", ...(CH.masked(kind, row, key) ? CH.tn("say.masked", { read: word(keys[key], keyLang) })
      : CH.tn("say.also", { read: word(keys[key], keyLang), weight: CH.prob(values[key]) })));
    if (weights.rest && weights.rest[row] > 0) parts.push(" ", ...CH.tn("say.rest", { weight: CH.prob(weights.rest[row]) }));
    const step = kind === "encoder" ? null : trace.steps.find((one) => one.t === row + 1);
    if (step) parts.push(" ", ...chance(trace, step));
    return parts;
  };

  /** With which probability the word was written, and which one came next. */
  function chance(trace, step) {
    const values = { count: CH.count(trace.model.vocabulary), p: CH.prob(Math.exp(step.logp)) };
    const other = step.top.findIndex((pair) => pair[0] !== step.chosen);
    if (other < 0) return CH.tn("say.chosen_alone", values);
    const key = trace.target.forced && step.top[0][0] !== step.chosen ? "say.forced" : "say.chosen";
    return CH.tn(key, { ...values, other: CH.el("b", { lang: trace.target.lang, class: "token" }, step.top_text[other]), other_p: CH.prob(Math.exp(step.top[other][1])) });
  }

  /** Why this head's ribbons are drawn. */
  function reason(trace, drawn) {
    if (!drawn) return null;
    const best = trace.alignment, isBest = best && best.layer === drawn.layer && best.head === drawn.head;
    const names = { layer: drawn.layer + 1, head: drawn.head + 1 };
    if (!isBest) return CH.el("p", { class: "note" }, CH.tn("ribbons.other", names), " ", best ? CH.el("button", { type: "button", id: "to-best", class: "link",
      click: () => CH.set({ kind: "cross", layer: best.layer, head: best.head }) }, CH.t("ribbons.back")) : null);
    const others = best.runners_up.map((one) => CH.t("ribbons.runner", { layer: one.layer + 1, head: one.head + 1, score: CH.num(one.score) })).join(CH.t("list.comma"));
    return CH.el("details", { class: "note" }, CH.el("summary", {}, CH.t("ribbons.best", { ...names, score: CH.num(best.score) })),
      CH.el("p", {}, CH.t("ribbons.formula", { formula: best.formula }), others ? " " + CH.t("ribbons.runners", { list: others }) : ""));
  }

  const plain = (side, key) => CH.el("p", { class: "sentence " + key }, CH.el("span", { class: "tag" }, CH.t("opening." + key)), CH.el("span", { lang: side.lang }, side.text));

  /** @param {Element} root @returns {() => void} what to do when only the focus has changed */
  CH.opening = function (root) {
    const trace = CH.trace(), drawn = ribbonHead(trace), written = trace.target.tokens.slice(1);
    const focusTarget = (i) => CH.set({ step: i, side: "target", key: -1 }), focusSource = (i) => CH.set(CH.state.kind === "cross" ? { key: i, side: "source" } : { place: i, side: "source" });
    const sources = tokenRow("sources", trace.source.tokens, trace.source.lang, CH.t("opening.source_tokens"), 0, focusSource);
    const targets = tokenRow("targets", written, trace.target.lang, CH.t("opening.target_tokens"), CH.state.step, focusTarget);
    const svg = CH.svg("svg", { class: "ribbons", "aria-hidden": "true" });
    const picture = CH.el("div", { class: "alignment" }, sources, svg, targets);
    const saying = CH.el("p", { id: "saying", role: "status", "aria-live": "polite" });
    root.replaceChildren(CH.el("div", { class: "sentences" }, plain(trace.source, "source"), plain(trace.target, trace.target.forced ? "forced" : "target")),
      CH.el("div", { class: "scroll" }, picture), saying, CH.el("p", { class: "caution" }, CH.tn("opening.caution", {}), " ",
        trace.occlusion ? CH.el("button", { type: "button", id: "to-occlusion", class: "link", click: () => { CH.set({ view: "decoding" }); document.getElementById("view").scrollIntoView(); } }, CH.t("opening.occlusion")) : null),
      reason(trace, drawn));
    const weights = drawn && CH.weights(trace, "cross", drawn.layer, drawn.head);
    const focus = () => {
      const { step, key, side, kind, place } = CH.state, bySource = side === "source" && kind === "cross" && key >= 0;
      CH.lightBands(svg, bySource ? "key" : "query", bySource ? key : step);
      const source = kind === "encoder" ? place : kind === "cross" ? key : -1;
      targets.querySelectorAll(".token").forEach((one, i) => one.setAttribute("aria-selected", String(!bySource && i === step)));
      sources.querySelectorAll(".token").forEach((one, i) => one.setAttribute("aria-selected", String(i === source)));
      saying.replaceChildren(...CH.saying());
    };
    if (weights) new ResizeObserver(() => { drawRibbons(picture, weights); focus(); }).observe(picture);
    focus();
    return focus;
  };
})(window.CH = window.CH || {});
