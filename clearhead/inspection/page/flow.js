/* The whole model as a diagram, bottom to top as in the paper, with the shapes this sentence has. */
(function (CH) {
  "use strict";

  const WIDE = 270, ENCODER = 14, DECODER = 356, SMALL = 30, LARGE = 46;
  const shape = (...sizes) => "[" + sizes.join(", ") + "]";

  /** What a part of the residual stream was long, on average, before and after a sublayer. */
  const norms = (part) => part ? CH.num(CH.mean(part.norm_in), 1) + " → " + CH.num(CH.mean(part.norm_out), 1) : "";

  const sublayers = (stack) => stack === "encoder" ? ["attention", "feed_forward"] : ["attention", "cross_attention", "feed_forward"];
  const kindOf = (stack, sublayer) => sublayer === "cross_attention" ? "cross" : stack;

  /** A box with a name on the left, something smaller on the right, and a way to press it. */
  function box(x, y, high, name, right, { style = "", press, label, below } = {}) {
    const group = CH.svg("g", { class: "box " + style, role: press ? "button" : null, "aria-label": press ? label || name : null, click: press },
      CH.svg("rect", { x, y, width: WIDE, height: high, rx: 6 }), CH.svg("text", { x: x + 12, y: y + (below ? 19 : high / 2 + 5) }, name),
      CH.svg("text", { x: x + WIDE - 12, y: y + (below ? 19 : high / 2 + 5), class: "tick end" }, right));
    if (below) group.append(CH.svg("text", { x: x + 12, y: y + 36, class: "tick" }, below));
    if (press) group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); } });
    return group;
  }

  /** An arrow upwards with the shape that flows there. */
  const arrow = (x, from, to, text) => [CH.svg("path", { d: "M" + x + " " + from + "V" + (to + 2), class: "arrow", "marker-end": "url(#tip)" }),
    text ? CH.svg("text", { x: x + 10, y: (from + to) / 2 + 4, class: "tick" }, text) : null];

  /** What happens inside an attention sublayer, in shapes. */
  function inner(trace, stack, sublayer) {
    const { heads, d_k: d, d_ff: ff } = trace.model, S = trace.source.tokens.length, T = trace.target.tokens.length - 1;
    const rows = stack === "encoder" ? S : T, cols = sublayer === "cross_attention" ? S : rows;
    if (sublayer === "feed_forward") return CH.t("flow.inner_ff", { shape: shape(1, rows, ff) });
    return CH.t("flow.inner", { q: shape(1, heads, rows, d), w: shape(1, heads, rows, cols) });
  }

  /** One stack from the embedding up; returns its nodes, the top and where cross attention comes in. */
  function stack(trace, name, x, bottom) {
    const count = name === "encoder" ? trace.model.layers_enc : trace.model.layers_dec, rows = name === "encoder" ? trace.source.tokens.length : trace.target.tokens.length - 1;
    const opened = (name === "encoder") === (CH.state.kind === "encoder") ? CH.state.layer : CH.clamp(CH.state.layer, 0, count - 1), middle = x + WIDE / 2;
    const flows = shape(1, rows, trace.model.d_model), nodes = [];
    let y = bottom - SMALL, cross = y;
    nodes.push(CH.svg("text", { x: middle, y: bottom + 42, class: "middle" }, CH.t("flow." + name + "_in")), arrow(middle, bottom + 26, bottom, shape(1, rows)));
    nodes.push(box(x, y, SMALL, CH.t("flow.embedding"), CH.t("flow.positions", { kind: trace.model.positions })));
    for (let layer = 0; layer < count; layer++) {
      const parts = trace.residual.filter((one) => one.stack === name && one.layer === layer), has = (kind) => CH.layers(trace, kind).includes(layer);
      const press = (kind) => has(kind) ? () => CH.set({ kind, layer }) : null, label = CH.t("flow.block", { n: layer + 1 });
      nodes.push(arrow(middle, y, y - 24, layer ? "" : flows));
      y -= 24;
      if (layer !== opened) {
        const whole = parts.length ? { norm_in: parts[0].norm_in, norm_out: parts[parts.length - 1].norm_out } : null;
        nodes.push(box(x, y - SMALL, SMALL, label, whole ? "‖x‖ " + norms(whole) : "", { style: "closed", press: press(name === "encoder" ? "encoder" : "cross"), label: CH.t("kind." + name) + " " + label }));
        if (name === "decoder") cross = layer ? cross : y - SMALL / 2;
        y -= SMALL;
        continue;
      }
      const each = sublayers(name), high = each.length * (LARGE + 8) + 32;
      nodes.push(CH.svg("rect", { x: x - 8, y: y - high, width: WIDE + 16, height: high, rx: 10, class: "opened" }), CH.svg("text", { x, y: y - high + 19, class: "axis" }, label + " · " + CH.t("flow.norm_" + (CH.hasText("flow.norm_" + trace.model.norm) ? trace.model.norm : "other"))));
      each.forEach((sublayer, i) => {
        const at = y - 6 - (i + 1) * (LARGE + 8) + 8, kind = kindOf(name, sublayer), part = parts.find((one) => one.sublayer === sublayer);
        const isSelected = sublayer !== "feed_forward" && kind === CH.state.kind && layer === CH.state.layer;
        if (sublayer === "cross_attention") cross = at + LARGE / 2;
        nodes.push(box(x, at, LARGE, CH.t("flow." + (sublayer === "attention" && name === "decoder" ? "masked_attention" : sublayer)), part ? "‖x‖ " + norms(part) : "",
          { style: sublayer + (isSelected ? " selected" : ""), press: sublayer === "feed_forward" ? null : press(kind), label: CH.t("flow.press", { kind: CH.t("kind." + kind), layer: layer + 1 }), below: inner(trace, name, sublayer) }));
      });
      y -= high;
    }
    return { nodes, y, cross, middle, flows };
  }

  function diagram(trace) {
    const bottom = 0, left = stack(trace, "encoder", ENCODER, bottom), right = stack(trace, "decoder", DECODER, bottom);
    const T = trace.target.tokens.length - 1, top = Math.min(left.y, right.y - 2 * 24 - SMALL) - 30, gate = (ENCODER + WIDE + DECODER) / 2;
    const svg = CH.svg("svg", { viewBox: "0 " + top + " 640 " + (52 - top), class: "flow", role: "group", "aria-label": CH.t("flow.label"), style: { "min-width": "540px" } },
      CH.svg("defs", {}, CH.svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, CH.svg("path", { d: "M0 0L8 4L0 8Z", class: "tip" }))),
      CH.svg("path", { d: "M" + left.middle + " " + left.y + "V" + (left.y - 18) + "H" + gate + "V" + right.cross + "H" + (DECODER - 9), class: "arrow memory", "marker-end": "url(#tip)" }),
      CH.svg("text", { x: left.middle + 8, y: left.y - 24, class: "tick" }, CH.t("flow.memory", { shape: left.flows })),
      left.nodes, right.nodes, arrow(right.middle, right.y, right.y - 24, right.flows), box(DECODER, right.y - 24 - SMALL, SMALL, CH.t("flow.output"), ""),
      arrow(right.middle, right.y - 24 - SMALL, right.y - 48 - SMALL, shape(1, T, trace.model.vocabulary)), CH.svg("text", { x: right.middle, y: right.y - 54 - SMALL, class: "middle" }, CH.t("flow.out")));
    CH.roving(svg, "[role=button]", 0, () => {});
    return CH.el("div", { class: "scroll" }, svg);
  }

  /** How long the vectors get, sublayer by sublayer. */
  function growth(trace) {
    const curves = ["encoder", "decoder"].map((name) => {
      const parts = trace.residual.filter((one) => one.stack === name);
      if (!parts.length) return null;
      const all = [parts[0].norm_in, ...parts.map((one) => one.norm_out)];
      return { name: CH.t("kind." + name), points: all.map((one, i) => [i, CH.mean(one)]), band: all.map((one, i) => [i, Math.min(...one), Math.max(...one)]) };
    }).filter(Boolean);
    return curves.length ? [CH.part("flow.norms"), CH.lines(curves, { label: CH.t("flow.norms"), x: CH.t("flow.norms_x"), y: "‖x‖" }), CH.note("flow.norms_note")] : [];
  }

  CH.flow = function (root) {
    const trace = CH.trace(), model = trace.model;
    if (model.kind === "rnn") return void root.append(CH.title("tab.flow"), CH.say("flow.rnn"));
    root.append(CH.title("tab.flow"), CH.say("flow.say"), CH.el("div", { class: "columns" }, CH.el("div", {}, diagram(trace)), CH.el("div", {}, CH.facts([
      [CH.t("model.name"), model.name], [CH.t("model.params"), CH.count(model.params)], [CH.t("model.layers"), model.layers_enc + " + " + model.layers_dec], [CH.t("model.heads"), model.heads + " × d_k " + model.d_k],
      ["d_model", model.d_model], ["d_ff", model.d_ff], [CH.t("model.vocabulary"), CH.count(model.vocabulary)], [CH.t("model.norm"), model.norm], [CH.t("model.positions"), model.positions], [CH.t("model.dtype"), model.dtype]]), growth(trace))));
  };
})(window.CH = window.CH || {});
