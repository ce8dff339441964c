/* Where a word of the translation looked: the trace of its sentence, in the views of the report. */
(function (CH) {
"use strict";

const { el, t } = CH;
const KEPT = 4; // traces, so that two can be compared
const part = (id) => document.getElementById(id);
const state = { shown: null, problem: null, isBusy: false };
let turn = 0, asking = new AbortController();

const sentences = new WeakMap(); // what each trace is of

// One sentence, one translation, one model, and what was changed
const named = ({ model, source, target, change }) => JSON.stringify([model, source, target, change]);

CH.looksAt = () => part("look").hidden ? null : state.shown;
CH.sentence = (trace) => sentences.get(trace);

// The model's own translation of it; where another engine wrote what is shown, that is looked at as given
async function traced({ model, source, target, change, isGiven }, signal) {
  if (isGiven) return (await CH.ask("v1/inspect", { text: source, model, translation: target }, signal)).trace;
  const { trace } = await CH.ask("v1/inspect", { text: source, model, ...change }, signal);
  if (change) return trace;
  if (trace.target.text === target) return trace;
  return (await CH.ask("v1/inspect", { text: source, model, translation: target }, signal)).trace;
}

function place(step) {
  if (step !== null) CH.set({ trace: 0, step, side: "target", key: -1 });
}

/**
 * @param {{model: string, source: string, target: string, change: ?object, of: ?object}} sentence what to look at, and
 *   the word's first step. With a change (a prefix in ids, heads that are off) there is no target yet, and `of` is the
 *   sentence that was changed.
 */
CH.look = async function (sentence, step) {
  const mine = ++turn;
  asking.abort();
  asking = new AbortController();
  part("look").hidden = false;
  if (state.shown && named(state.shown) === named(sentence) && !state.problem) {
    Object.assign(state, { isBusy: false });
    CH.drawLook();
    return place(step);
  }
  Object.assign(state, { isBusy: true, problem: null });
  CH.drawLook();
  try {
    const tell = (problem) => { if (mine === turn) CH.drawLook(problem); };
    const trace = await CH.insist(() => traced(sentence, asking.signal), tell, asking.signal);
    if (mine !== turn) return;
    sentences.set(trace, { ...sentence, target: trace.target.text });
    Object.assign(state, { shown: sentence, isBusy: false });
    CH.drawLook();
    CH.show([trace, ...CH.traces].slice(0, KEPT));
    CH.set({ trace: 0, step: step ?? 0, side: "target", key: -1 });
    CH.changed(true);
  } catch (problem) {
    if (mine !== turn || problem.name === "AbortError") return;
    if (!(problem instanceof CH.Refusal)) throw problem;
    Object.assign(state, { isBusy: false, problem });
    CH.drawLook();
  }
};

// To where it can be seen, if it was below
CH.bringLook = function () {
  if (part("look").getBoundingClientRect().top < 0.6 * innerHeight) return;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  part("look").scrollIntoView({ block: "start", behavior });
};

CH.closeLook = function () {
  turn += 1;
  asking.abort();
  state.isBusy = false;
  part("look").hidden = true;
  CH.changed(true);
};

// The line above the views: what is going on, and the way out
CH.drawLook = function (passing = null) {
  const problem = passing || state.problem;
  part("look").setAttribute("aria-busy", state.isBusy);
  part("look").classList.toggle("empty", !state.shown || Boolean(state.problem));
  part("look-head").replaceChildren(el("h2", {}, t("look.title")),
    el("p", { role: "status", class: problem ? "bad" : "note" }, problem ? problem.words : state.isBusy
      ? t("look.busy") : ""),
    CH.button("close-look", t("look.close"), CH.closeLook));
};
})(window.CH = window.CH || {});
