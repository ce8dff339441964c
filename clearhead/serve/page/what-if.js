/* What if: another word forced where one was written, or heads switched off; the rest is searched again, by the server.
   Stands in two views of the report, which know nothing of it. */
(function (CH) {
"use strict";

const { el, t } = CH;
const NEVER = ["<pad>", "<s>"]; // cannot be written
const ticked = new Set(); // heads to be switched off, as [kind, layer, head] in JSON

const begun = ({ steps, target }) => steps.slice(0, target.begun).map((step) => step.chosen);

function headsText(off) {
  return off.map(([kind, layer, head]) => CH.headName({ kind, layer, head })).join(t("what_if.and"));
}

// What was changed in the trace that is seen, what came of it, and the way back
function told(trace) {
  const { of } = CH.sentence(trace) || {};
  if (!of) return "";
  const { off, target } = trace, same = target.text === of.target;
  return el("div", { class: "told", role: "status" },
    off.length ? el("p", {}, t("what_if.without", { heads: headsText(off) })) : "",
    target.begun ? el("p", {}, CH.tn("what_if.begun", { words: CH.bold(target.tokens.slice(1, 1 + target.begun)
      .map((token) => CH.tokenText(token)).join(" "), target.lang) })) : "",
    el("p", {}, same ? t("what_if.same") : CH.tn("what_if.instead", { was: CH.bold(of.target, target.lang),
      is: CH.bold(target.text, target.lang) })),
    CH.button("what-if-back", t("what_if.back"), () => CH.look({ ...of }, CH.state.step), { class: "link" }));
}

function ask(trace, change, step) {
  const sentence = CH.sentence(trace), { model, source, target } = sentence.of || sentence;
  CH.look({ model, source, change, of: sentence.of || { ...sentence, target: sentence.target || target } }, step);
}

// Each candidate of a step that was not written, to be pressed
function candidates(trace, at) {
  const step = trace.steps[at], before = trace.steps.slice(0, at).map((one) => one.chosen);
  return step.top.map(([id, logp], i) => ({ id, logp, text: step.top_text[i] }))
    .filter(({ id, text }) => id !== step.chosen && !NEVER.includes(text))
    .map(({ id, logp, text }, i) => CH.button("force-" + i, text, () => ask(trace,
      { prefix: [...before, id], off: trace.off }, at), { lang: trace.target.lang,
      title: t("what_if.force_title", { p: CH.prob(Math.exp(logp)) }) }));
}

const decoding = CH.views.decoding;
CH.views.decoding = function (root, trace) {
  const panel = el("div", { class: "what-if", id: "force" }), redraw = decoding(root, trace);
  root.querySelector(".columns").before(panel);
  const draw = () => {
    if (!CH.sentence(trace)) return;
    const found = candidates(trace, CH.state.step);
    panel.replaceChildren(told(trace), el("div", { class: "controls", role: "group", "aria-label": t("what_if.force") },
      el("span", { class: "note" }, t("what_if.force")), found));
  };
  draw();
  return () => { redraw?.(); draw(); };
};

// The ticked heads that this trace's model has: others may have been ticked for another one
const chosen = (trace) => [...ticked].map((key) => JSON.parse(key)).filter(([kind, layer, head]) =>
  CH.layers(trace, kind).includes(layer) && head < CH.heads(trace, kind));

function tick(trace, key, isOff) {
  if (isOff) ticked.add(key);
  else ticked.delete(key);
  const go = document.getElementById("without"), n = chosen(trace).length;
  go.disabled = !n;
  go.textContent = t("what_if.go", { n });
}

function boxes(trace, kind) {
  const name = (layer) => t("heads.layer", { n: layer + 1 });
  const row = (layer) => el("div", { class: "controls", role: "group", "aria-label": name(layer) },
    el("span", { class: "note" }, name(layer)), CH.range(CH.heads(trace, kind)).map((head) => {
      const key = JSON.stringify([kind, layer, head]);
      return el("label", { class: "check" }, el("input", { type: "checkbox", id: ["off", kind, layer, head].join("-"),
        "aria-label": CH.headName({ kind, layer, head }), checked: ticked.has(key),
        change: (event) => tick(trace, key, event.target.checked) }), String(head + 1));
    }));
  return CH.layers(trace, kind).map(row);
}

const heads = CH.views.heads;
CH.views.heads = function (root, trace) {
  const redraw = heads(root, trace);
  if (!CH.sentence(trace)) return redraw;
  const n = chosen(trace).length, go = () => ask(trace, { prefix: begun(trace), off: chosen(trace) }, CH.state.step);
  root.append(el("div", { class: "what-if", id: "switch-off" }, CH.part("what_if.off"), CH.note("what_if.off_note"),
    boxes(trace, CH.state.kind), CH.controls(CH.button("without", t("what_if.go", { n }), go,
      { disabled: !n }), CH.button("all-on", t("what_if.all_on"), () => {
      ticked.clear();
      CH.changed(false);
    })), told(trace)));
  return redraw;
};
})(window.CH = window.CH || {});
