/* What is selected: one object, kept in the address after #, so that a link shows the same thing. */
(function (CH) {
  "use strict";

  const VIEWS = ["flow", "heads", "head", "steps", "positions", "decoding", "compare", "health"];
  const CHOICES = { view: VIEWS, kind: ["encoder", "decoder", "cross"], mode: ["matrix", "lines"], scale: ["row", "global"], theme: ["auto", "light", "dark"],
    by: ["align_score", "entropy", "distance", "special_mass", "coverage", "ablate_dlogp"], side: ["target", "source"] };
  // Counted from 1 in the address, as they are on the page.
  const COUNTED = ["trace", "layer", "head", "step", "place", "key"];
  const FOCUS = ["step", "place", "key", "side"];
  const listeners = [];

  CH.VIEWS = VIEWS;

  /** What is shown when the address says nothing: the head that aligns best, the first word. */
  function initial(trace) {
    const kinds = CH.kinds(trace), aligning = trace.alignment;
    return {
      trace: 0, view: trace.model.kind === "rnn" ? "head" : "flow", kind: aligning ? aligning.kind : kinds[kinds.length - 1] || "cross",
      layer: aligning ? aligning.layer : 0, head: aligning ? aligning.head : 0,
      step: 0, place: 0, key: -1, side: "target", picked: [], mode: "matrix", scale: "row", by: "align_score",
      hide: false, words: false, sort: false, unscaled: false, table: false,
      lang: (navigator.language || "en").startsWith("zh") ? "zh" : "en", theme: "auto",
    };
  }

  function parsed(name, text, otherwise) {
    if (COUNTED.includes(name)) return /^\d{1,4}$/.test(text) ? Number(text) - 1 : otherwise;
    if (name === "picked") return text.split(",").filter((one) => /^\d{1,4}$/.test(one)).map((one) => Number(one) - 1);
    if (name === "lang") return text in CH.strings ? text : otherwise;
    if (typeof otherwise === "boolean") return text === "1";
    return CHOICES[name].includes(text) ? text : otherwise;
  }

  const written = (name, value) => COUNTED.includes(name) ? value + 1 : name === "picked" ? value.map((one) => one + 1).join(",") : value === true ? 1 : value === false ? 0 : value;

  /** The number of rows that a kind of attention has. */
  CH.rows = (trace, kind) => kind === "encoder" ? trace.source.tokens.length : trace.target.tokens.length - 1;

  /** Nothing outside the trace can be selected. */
  function bounded(state) {
    const trace = CH.traces[state.trace] || CH.traces[0], kinds = CH.kinds(trace);
    state.trace = CH.clamp(state.trace, 0, CH.traces.length - 1);
    if (kinds.length && !kinds.includes(state.kind)) state.kind = kinds[kinds.length - 1];
    const layers = CH.layers(trace, state.kind);
    if (layers.length && !layers.includes(state.layer)) state.layer = layers[CH.clamp(state.layer, 0, layers.length - 1)];
    state.head = CH.clamp(state.head, 0, Math.max(0, CH.heads(trace, state.kind) - 1));
    state.step = CH.clamp(state.step, 0, CH.rows(trace, "cross") - 1);
    state.place = CH.clamp(state.place, 0, CH.rows(trace, "encoder") - 1);
    const columns = state.kind === "decoder" ? CH.rows(trace, "decoder") : trace.source.tokens.length;
    state.key = CH.clamp(state.key, -1, columns - 1);
    state.picked = state.picked.filter((one) => one >= 0 && one < CH.rows(trace, state.kind));
    return state;
  }

  /** Read the selection from the address. */
  CH.readHash = function () {
    const hash = new URLSearchParams(location.hash.slice(1)), start = CH.traces[Number(hash.get("trace") || 1) - 1] || CH.traces[0];
    const defaults = initial(start), state = { ...defaults };
    for (const [name, text] of hash) if (name in defaults) state[name] = parsed(name, text, defaults[name]);
    CH.state = bounded(state);
  };

  /** The address of a selection: only what differs from the start. */
  CH.hash = function (state) {
    const defaults = initial(CH.trace()), hash = new URLSearchParams();
    for (const name in defaults) {
      if (String(written(name, state[name])) !== String(written(name, defaults[name]))) hash.set(name, written(name, state[name]));
    }
    return "#" + hash.toString().replace(/%2C/g, ",");
  };

  function writeHash() {
    try {
      history.replaceState(null, "", CH.hash(CH.state));
    } catch (refused) {
      if (!(refused instanceof DOMException)) throw refused; // inside a notebook's frame the address cannot be written
    }
  }

  /** The trace that is shown. */
  CH.trace = () => CH.traces[CH.state.trace];

  /** The row in focus of the kind that is shown. */
  CH.query = () => CH.state.kind === "encoder" ? CH.state.place : CH.state.step;

  /** The patch that puts the focus on a row, and on a column if one is meant. */
  CH.focusOn = (row, key = -1) => CH.state.kind === "encoder" ? { place: row, key, side: "source" } : { step: row, key, side: "target" };

  /** Change the selection and tell everyone; `onlyFocus` says that nothing has to be built anew. */
  CH.set = function (patch) {
    const before = CH.state;
    const leaves = "kind" in patch && patch.kind !== before.kind ? { picked: [], key: -1, side: patch.kind === "encoder" ? "source" : "target" } : {};
    CH.state = bounded({ ...before, ...leaves, ...patch });
    const changed = Object.keys(CH.state).filter((name) => String(CH.state[name]) !== String(before[name]));
    if (!changed.length) return;
    writeHash();
    for (const listener of listeners) listener(changed.every((name) => FOCUS.includes(name)));
  };

  /** @param {(onlyFocus: boolean) => void} listener */
  CH.onChange = (listener) => listeners.push(listener);
})(window.CH = window.CH || {});
