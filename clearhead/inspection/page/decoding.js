/* What could have been written at each step, and what was read for it. */
(function (CH) {
"use strict";

const { bars, el, num, prob, t } = CH;

// All words written, each as strong as it was likely
function strip(trace, chosen) {
  const row = el("div", { class: "strip", role: "listbox", "aria-label": t("opening.targets") },
    trace.steps.map((step, r) => el("span", { role: "option", lang: trace.target.lang,
    click: () => chosen(r), title: "p = " + prob(Math.exp(step.logp)), style: CH.shade(CH.ramp(Math.exp(step.logp))) },
      CH.tokenText(trace.target.tokens[step.t]))));
  CH.roving(row, "span", CH.state.step, chosen);
  return row;
}

// The likeliest words of a step, the one written, and all others together
function candidates({ target, model }, step) {
  const one = (text, p, more) => ({ text, lang: target.lang, value: p, shown: prob(p), ...more });
  const items = step.top.map(([id, logp], i) => one(step.top_text[i], Math.exp(logp), { strong: id === step.chosen }));
  if (!items.some((each) => each.strong)) items.push(one(CH.tokenText(target.tokens[step.t]), Math.exp(step.logp),
    { strong: true }));
  const rest = Math.max(0, 1 - CH.sum(items.map((each) => each.value)));
  return bars([...items, one(t("decoding.others", { n: CH.count(model.vocabulary - items.length) }), rest,
    { faint: true, lang: null })], { most: 1, label: t("decoding.candidates") });
}

// What was read (attention) and what mattered (occlusion), source token by source token
function reading(trace, row) {
  const { source, occlusion } = trace, found = [], head = CH.state.kind === "cross" ? CH.state : trace.alignment;
  const show = (title, values, shown, best, ends, note) => found.push(el("div", {}, el("h3", {}, title),
    bars(source.tokens.map((token, c) => ({ text: CH.tokenText(token), lang: source.lang, value: values[c],
    shown: shown(values[c]), strong: c === best })), { ...ends, label: title }), note));
  if (head && CH.kinds(trace).length) {
    const weights = CH.weightRow(CH.weights(trace, { ...head, kind: "cross" }), row);
    show(t("decoding.read", CH.numbers(head)), weights, prob, CH.argmax(weights), { most: 1 });
  }
  if (occlusion) {
    const all = CH.values(occlusion), change = CH.row(occlusion, row);
    show(t("decoding.occlusion"), change, num, CH.argmax(change.map((one) => -one)),
      { least: -CH.most(all.map((one) => -one)), most: CH.most(all) }, CH.note("decoding.occlusion_note"));
  }
  return found;
}

CH.views.decoding = function (root, trace) {
  const { steps, target } = trace, body = el("div", { class: "columns thirds" }), line = el("p", { class: "lead" }),
    go = (step) => CH.set({ step, key: -1, side: "target" }), words = strip(trace, go);
  const slider = el("input", { type: "range", id: "step", min: 1, max: steps.length, value: CH.state.step + 1,
    input: (event) => go(event.target.value - 1) });
  root.append(CH.say(target.forced ? "decoding.say_forced" : "decoding.say"), el("div", { class: "scroll" }, words),
    CH.controls(el("label", { class: "choice wide" }, el("span", {}, t("decoding.step")), slider),
    CH.button("next-step", t("decoding.next"), CH.nextStep)), line, body, ...CH.beam(trace));
  const draw = () => {
    const at = CH.state.step, step = steps[at];
    if (body.dataset.step === String(at)) return;
    body.dataset.step = at;
    slider.value = at + 1;
    [...words.children].forEach((one, r) => one.setAttribute("aria-selected", r === at));
    line.replaceChildren(...CH.tn("decoding.line",
      { n: at + 1, of: steps.length, word: CH.word(target.tokens[step.t], target.lang), p: prob(Math.exp(step.logp)),
      logp: num(step.logp), entropy: num(step.entropy), choices: num(Math.exp(step.entropy), 1) }),
      typeof step.source_contrib === "number" ? t("decoding.contribution", { share: num(step.source_contrib) }) : "");
    body.replaceChildren(el("div", {}, CH.part("decoding.candidates"), candidates(trace, step)), ...reading(trace, at));
  };
  draw();
  return draw;
};

// The next word; after the last the first again
CH.nextStep = () => CH.set({ step: (CH.state.step + 1) % CH.trace().steps.length, key: -1, side: "target" });
})(window.CH = window.CH || {});
