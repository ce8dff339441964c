/* What is selected, kept in the address after #, so that a link shows the same. */
(function (CH) {
"use strict";

const { clamp } = CH;
const MEASURES = CH.MEASURES = ["align_score", "entropy", "distance", "special_mass", "coverage", "ablate_dlogp"];
const CHOICES = { by: MEASURES, kind: ["encoder", "decoder", "cross"], mode: ["matrix", "lines"],
  scale: ["row", "global"], theme: ["auto", "light", "dark"], side: ["target", "source"], lang: ["en", "zh"] };
const COUNTED = ["trace", "layer", "head", "step", "place", "key"]; // from 1 in the address, as on the page
const FOCUS = ["step", "place", "key", "side"]; // these alone need nothing built anew
let writing;

/**
 * What is shown when the address says nothing: the head that aligns best, the first word. `step` is a row of the decoder,
 * `place` one of the encoder, `key` a column or -1; `side` says in which of the two sentences the focus is.
 */
function initial(trace) {
  const { kind, layer, head } = trace.alignment || { kind: "cross", layer: 0, head: 0 };
  return { trace: 0, view: trace.model.kind === "rnn" ? "head" : "flow", kind, layer, head,
    step: 0, place: 0, key: -1, side: "target", picked: [], mode: "matrix", scale: "row", by: "align_score",
    hide: false, words: false, sort: false, unscaled: false, table: false,
    lang: (navigator.language || "en").startsWith("zh") ? "zh" : "en", theme: "auto" };
}

function parsed(name, text, otherwise) {
  if (COUNTED.includes(name)) return /^\d{1,4}$/.test(text) ? text - 1 : otherwise;
  if (name === "picked") return text.split(",").filter((one) => /^\d{1,4}$/.test(one)).map((one) => one - 1);
  if (typeof otherwise === "boolean") return text === "1";
  return (name === "view" ? Object.hasOwn(CH.views, text) : CHOICES[name].includes(text)) ? text : otherwise;
}

function written(name, value) {
  if (COUNTED.includes(name)) return String(value + 1);
  return name === "picked" ? value.map((one) => one + 1).join(",") : String(typeof value === "boolean" ? Number(value)
    : value);
}

CH.rows = (trace, kind) => kind === "encoder" ? trace.source.tokens.length : trace.target.tokens.length - 1;

// Nothing outside the trace can be selected
function bounded(state) {
  state.trace = clamp(state.trace, 0, CH.traces.length - 1);
  const trace = CH.traces[state.trace], kinds = CH.kinds(trace);
  if (kinds.length && !kinds.includes(state.kind)) state.kind = kinds.at(-1);
  const layers = CH.layers(trace, state.kind), { kind } = state;
  if (layers.length && !layers.includes(state.layer)) state.layer = layers[clamp(state.layer, 0, layers.length - 1)];
  state.head = clamp(state.head, 0, Math.max(0, CH.heads(trace, kind) - 1));
  state.step = clamp(state.step, 0, CH.rows(trace, "cross") - 1);
  state.place = clamp(state.place, 0, CH.rows(trace, "encoder") - 1);
  state.key = clamp(state.key, -1, (kind === "decoder" ? CH.rows(trace, kind) : trace.source.tokens.length) - 1);
  state.picked = state.picked.filter((one) => one >= 0 && one < CH.rows(trace, kind));
  return state;
}

CH.readHash = function () {
  const hash = new URLSearchParams(location.hash.slice(1));
  const state = initial(CH.traces[hash.get("trace") - 1] || CH.traces[0]);
  for (const [name, text] of hash) if (Object.hasOwn(state, name)) state[name] = parsed(name, text, state[name]);
  CH.state = bounded(state);
};

// Only what differs from the start
CH.writeHash = function () {
  const defaults = initial(CH.trace()), hash = new URLSearchParams();
  for (const name in defaults) {
    const text = written(name, CH.state[name]);
    if (text !== written(name, defaults[name])) hash.set(name, text);
  }
  try {
    history.replaceState(null, "", "#" + hash);
  } catch (refused) {
    if (!(refused instanceof DOMException)) throw refused; // as in a notebook
  }
};

CH.trace = () => CH.traces[CH.state.trace];

CH.query = () => CH.state.kind === "encoder" ? CH.state.place : CH.state.step;

// The patch that puts the focus on a row, and on a column if one is meant
CH.focusOn = (row, key = -1) =>
  CH.state.kind === "encoder" ? { place: row, key, side: "source" } : { step: row, key, side: "target" };

CH.set = function (patch) {
  const before = CH.state, isOther = "kind" in patch && patch.kind !== before.kind;
  const left = isOther ? { picked: [], key: -1, side: patch.kind === "encoder" ? "source" : "target" } : {};
  CH.state = bounded({ ...before, ...left, ...patch });
  const changed = Object.keys(before).filter((name) => String(CH.state[name]) !== String(before[name]));
  if (!changed.length) return;
  clearTimeout(writing);
  writing = setTimeout(CH.writeHash, 100); // browsers refuse more
  CH.changed(changed.every((name) => FOCUS.includes(name)));
};
})(window.CH = window.CH || {});
