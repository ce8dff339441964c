/* The whole model as a diagram, bottom to top as in the paper, with this sentence's shapes. */
(function (CH) {
"use strict";

const { el, mean, num, svg, t, text } = CH;
const WIDE = 288, ENCODER = 10, DECODER = 342, SMALL = 30, LARGE = 46, GAP = 24;
const shape = (...sizes) => "[" + sizes.join(", ") + "]";

// How long the vectors were, on average, before and after
const norms = (first, last) => first ? "‖x‖ " + num(mean(first.norm_in), 1) + " → " + num(mean(last.norm_out), 1) : "";

// A box with a name, smaller text on the right and below, and what pressing it does
function box(x, y, high, name, right, { look = "", press, label, below } = {}) {
  const line = y + (below ? 19 : high / 2 + 5);
  return svg("g", { class: "box " + look, role: press && "button", "aria-label": press && label, click: press,
    keydown: press && ((event) => { if (event.key === "Enter" || event.key === " ") press(event.preventDefault()); }) },
  svg("rect", { x, y, width: WIDE, height: high, rx: 6 }), text(x + 12, line, "", name),
    text(x + WIDE - 12, line, "tick end", right), below && text(x + 12, y + 36, "tick", below));
}

// An arrow upwards with the shape that flows there
const arrow = (x, from, to, label) => [svg("path", { d: "M" + x + " " + from + "V" + (to + 2), class: "arrow",
  "marker-end": "url(#tip)" }), text(x + 10, (from + to) / 2 + 4, "tick", label)];

// The sublayers of a block: name, kind of attention, and what happens inside, in shapes
function sublayers({ model, source, target }, stack) {
  const S = source.tokens.length, T = target.tokens.length - 1, rows = stack === "encoder" ? S : T,
    { heads, d_k: d } = model;
  const reads = (name, kind, cols) => [name, kind,
    t("flow.inner", { q: shape(1, heads, rows, d), w: shape(1, heads, rows, cols) })];
  return [reads("attention", stack, rows), ...(stack === "decoder" ? [reads("cross_attention", "cross", S)] : []),
    ["feed_forward", null, t("flow.inner_ff", { shape: shape(1, rows, model.d_ff) })]];
}

// One stack from the embedding up, the selected block opened
function stack(trace, name, x) {
  const { model, residual } = trace, isEncoder = name === "encoder", count = isEncoder ? model.layers_enc
    : model.layers_dec;
  const opened = CH.clamp(CH.state.layer, 0, count - 1), middle = x + WIDE / 2, rows = CH.rows(trace, name),
    flows = shape(1, rows, model.d_model);
  const nodes = [text(middle, 42, "middle", t("flow." + name + "_in")), arrow(middle, 26, 0, shape(1, rows)),
    box(x, -SMALL, SMALL, t("flow.embedding"), t("flow.positions", { kind: model.positions }))];
  let y = -SMALL, cross = y;
  for (let layer = 0; layer < count; layer++) {
    const parts = residual.filter((one) => one.stack === name && one.layer === layer),
      block = t("flow.block", { n: layer + 1 });
    const pressed = (kind) => kind && CH.layers(trace, kind).includes(layer)
      ? { press: () => CH.set({ kind, layer }), label: t("kind." + kind) + " " + block } : {};
    nodes.push(arrow(middle, y, y - GAP, layer ? "" : flows));
    y -= GAP;
    if (layer !== opened) {
      y -= SMALL;
      nodes.push(box(x, y, SMALL, block, norms(parts[0], parts.at(-1)),
        { look: "closed", ...pressed(isEncoder ? name : "cross") }));
      continue;
    }
    const each = sublayers(trace, name), high = each.length * (LARGE + 8) + 32, norm = "flow.norm_" + model.norm;
    nodes.push(svg("rect", { x: x - 8, y: y - high, width: WIDE + 16, height: high, rx: 10, class: "opened" }),
      text(x, y - high + 19, "axis", block, CH.hasText(norm) ? " · " + t(norm) : ""));
    each.forEach(([sublayer, kind, below], i) => {
      const at = y - 6 - (i + 1) * (LARGE + 8) + 8, part = parts.find((one) => one.sublayer === sublayer),
        label = sublayer === "attention" && !isEncoder ? "masked_attention" : sublayer;
      if (kind === "cross") cross = at + LARGE / 2;
      nodes.push(box(x, at, LARGE, t("flow." + label), norms(part, part),
        { below, look: kind === CH.state.kind && layer === CH.state.layer ? "selected" : "", ...pressed(kind) }));
    });
    y -= high;
  }
  return { nodes, y, cross, middle, flows };
}

function diagram(trace) {
  const left = stack(trace, "encoder", ENCODER), right = stack(trace, "decoder", DECODER), out = right.y - GAP - SMALL,
    top = Math.min(left.y - 50, out - 60);
  const gate = (ENCODER + WIDE + DECODER) / 2,
    memory = "M" + left.middle + " " + left.y + "V" + (left.y - 18) + "H" + gate + "V" + right.cross + "H" + (DECODER - 1);
  const picture = svg("svg", { viewBox: "0 " + top + " 640 " + (52 - top), class: "flow", role: "group",
    "aria-label": t("flow.say") },
    svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerUnits: "userSpaceOnUse",
      markerWidth: 9, markerHeight: 9, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8Z", class: "tip" }))),
    left.nodes, right.nodes, svg("path", { d: memory, class: "arrow memory", "marker-end": "url(#tip)" }),
      text(left.middle, left.y - 26, "tick middle", t("flow.memory", { shape: left.flows })),
    arrow(right.middle, right.y, right.y - GAP, right.flows), box(DECODER, out, SMALL, t("flow.output"), ""),
    arrow(right.middle, out, out - GAP, shape(1, CH.rows(trace, "cross"), trace.model.vocabulary)),
      text(right.middle, out - GAP - 8, "middle", t("flow.out")));
  CH.roving(picture, "[role=button]", 0, () => {});
  return el("div", { class: "scroll" }, picture);
}

function growth(trace) {
  const curve = (name) => {
    const parts = trace.residual.filter((one) => one.stack === name), all = parts.length
      ? [parts[0].norm_in, ...parts.map((one) => one.norm_out)] : [];
    return { name: t("kind." + name), points: all.map((one, i) => [i, mean(one), Math.min(...one), Math.max(...one)]) };
  };
  const curves = ["encoder", "decoder"].map(curve).filter((one) => one.points.length);
  return curves.length ? [CH.part("flow.norms"),
    CH.lines(curves, { label: t("flow.norms"), x: t("flow.norms_x"), y: "‖x‖" }), CH.note("flow.norms_note")] : [];
}

CH.views.flow = function (root, trace) {
  const { model } = trace;
  if (model.kind === "rnn") return void root.append(CH.say("flow.rnn"));
  const facts = [["name", model.name], ["params", CH.count(model.params)],
    ["layers", model.layers_enc + " + " + model.layers_dec], ["heads", model.heads + " × d_k " + model.d_k],
    ["width", model.d_model],
    ["inner", model.d_ff], ["vocabulary", CH.count(model.vocabulary)], ["norm", model.norm],
      ["positions", model.positions], ["dtype", model.dtype]];
  root.append(CH.say("flow.say"),
    el("div", { class: "columns" }, diagram(trace),
    el("div", {}, CH.facts(facts.map(([key, value]) => [t("model." + key), value])), growth(trace))));
};
})(window.CH = window.CH || {});
