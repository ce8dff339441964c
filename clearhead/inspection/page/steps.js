/* Six steps, computed here from the numbers of the trace and compared with the model's. */
(function (CH) {
"use strict";

const { el, note, num, row, say, set, t, vector } = CH;
const FINE = 1e-4; // what the model's own arithmetic leaves open

const dot = (a, b) => { let total = 0; for (let i = 0; i < a.length; i++) total += a[i] * b[i]; return total; };
const apart = (ours, theirs) => { let most = 0; ours.forEach((value,
  i) => { most = Math.max(most, Math.abs(value - theirs[i])); }); return most; };

function softmax(scores) {
  const most = Math.max(...scores), grown = scores.map((score) => Math.exp(score - most)), total = CH.sum(grown);
  return grown.map((one) => one / total);
}

// The six steps of one query from a head_detail; `differences` are the largest from the model's q, k, v and out
CH.sixSteps = function (detail, query, isScaled) {
  const keys = CH.range(detail.k.shape[0]), memory = detail.memory || detail.x, differences = {};
  function made(name, from, places) { // W x + b, or what was given where W or x was not kept
    const weight = detail["w_" + name], bias = detail["b_" + name] && CH.values(detail["b_" + name]),
      given = places.map((r) => row(detail[name], r));
    if (!weight || !from) return given;
    const ours = places.map((r) => Float64Array.from({ length: weight.shape[0] },
      (_, i) => dot(row(weight, i), row(from, r)) + (bias ? bias[i] : 0)));
    differences[name] = CH.most(ours.map((one, i) => apart(one, given[i])), 0);
    return ours;
  }
  const [q] = made("q", detail.x, [query]), k = made("k", memory, keys), v = made("v", memory, keys);
  const scores = k.map((one) => dot(q, one)), scaled = scores.map((score) => score * (isScaled ? detail.scale : 1));
  const allowed = keys.map((c) => detail.mask !== "causal" || c <= query),
    weights = softmax(scaled.map((score, c) => allowed[c] ? score : -Infinity));
  const out = Float64Array.from(v[0], (_, i) => CH.sum(v.map((one, c) => weights[c] * one[i])));
  if (isScaled) differences.out = apart(out, row(detail.out, query));
  return { x: detail.x && row(detail.x, query), q, k, v, scores, scaled, allowed, weights, out, differences };
};

const verdict = (difference) => difference === undefined ? null
  : el("p", { class: difference <= FINE ? "note" : "bad", "data-difference": difference },
  t(difference <= FINE ? "steps.same" : "steps.differs", { difference: CH.tiny(difference) }));

const card = (number, key, formula, ...inside) => el("section", { class: "step", id: "step-" + number },
  el("h3", {}, el("span", { class: "number" }, number), t("steps." + key), el("code", {}, formula)), inside);

function cards(trace, detail, query) {
  const { kind } = detail, isScaled = !CH.state.unscaled, six = CH.sixSteps(detail, query, isScaled),
    lang = CH.langs(trace, kind).colLang, d = detail.q.shape[1], { differences } = six;
  const names = CH.keyTokens(trace, kind).map(CH.tokenText), root = Math.abs(detail.scale * Math.sqrt(d) - 1) < 1e-6
    ? "√" + d : num(1 / detail.scale, 3), all = names.map(() => true);
  const bars = (values, allowed, places) => CH.bars(names.map((text, c) => ({ text, lang, value: allowed[c] ? values[c]
    : 0, shown: allowed[c] ? num(values[c], places) : t("grid.masked"), faint: !allowed[c] })),
    { least: Math.min(...values), label: t("steps.numbers") });
  const vectors = (name) => el("div", { class: "vectors" }, el("h4", {}, name),
    six[name].map((one, c) => el("div", {}, el("span", { class: "name", lang }, names[c]),
    vector(one, CH.most(six[name].map((each) => CH.most(each.subarray(0, 8).map(Math.abs))))))),
    verdict(differences[name]));
  const kept = CH.weightRow(CH.weights(trace, detail), query), most = CH.most(Object.values(differences), 0);
  return [
    card(1, "x", "x", say(kind === "encoder" ? "steps.x_encoder" : "steps.x_target"), six.x ? vector(six.x)
      : note("steps.no_x")),
    card(2, "qkv", detail.w_q ? "q = W_Q x + b,  k = W_K m + b,  v = W_V m + b" : "q, k, v",
      say(kind === "cross" ? "steps.qkv_cross" : "steps.qkv_self"), el("h4", {}, "q"), vector(six.q),
      verdict(differences.q), el("div", { class: "columns even" }, vectors("k"), vectors("v"))),
    el("div", { class: "columns thirds" }, card(3, "dot", "s = q · k", say("steps.dot_say", { d }),
      bars(six.scores, all)),
      card(4, "scale", isScaled ? "s ÷ " + root : "s", say("steps.scale_say", { root }), bars(six.scaled, all)),
      card(5, detail.mask ? "masked" : "softmax", "w = softmax(s)",
        say(detail.mask ? "steps.mask_say" : "steps.softmax_say"), bars(six.weights, six.allowed, 3),
        isScaled ? note("steps.map", { difference: num(apart(six.weights, kept), 4),
          allowed: num(trace.limits.quantisation_max_error, 4) })
          : note("steps.unscaled_note", { most: num(CH.most(six.weights), 3),
          before: num(CH.most(CH.sixSteps(detail, query, true).weights), 3) }))),
    card(6, "sum", "out = Σ w v", say("steps.sum_say"), vector(six.out), verdict(differences.out)),
    isScaled ? el("p", { class: "lead", id: "steps-most", "data-difference": most },
      t(most <= FINE ? "steps.most" : "steps.differs", { difference: CH.tiny(most) })) : "",
  ];
}

CH.views.steps = function (root, trace) {
  const kept = trace.head_detail, { kind } = CH.state, body = el("div");
  if (!kept.length) return void root.append(say(trace.model.kind === "rnn" ? "steps.rnn" : "steps.none"));
  const detail = CH.ofHead(kept, CH.state), names = kept.map((one, i) => [i, CH.headName(one)]);
  const heads = CH.choice("steps-head", "choose.head", detail ? names : [["", "–"], ...names], kept.indexOf(detail),
    (i) => { if (i) set({ kind: kept[i].kind, layer: kept[i].layer, head: kept[i].head }); });
  if (!detail) return void root.append(say("steps.say"), CH.controls(heads),
    say("steps.not_kept", { head: CH.headName(CH.state) }));
  const rows = CH.queryTokens(trace, kind).map((token, r) => [r, (r + 1) + "  " + CH.tokenText(token)]),
    query = CH.choice("steps-query", kind === "cross" ? "axis.query_cross" : "axis.query", rows, CH.query(),
    (r) => set(CH.focusOn(Number(r))));
  root.append(say("steps.say"), CH.controls(heads, query, CH.check("unscaled", "steps.unscaled", CH.state.unscaled,
    (unscaled) => set({ unscaled }))), body);
  const draw = () => {
    const at = String(CH.query());
    if (body.dataset.query === at) return;
    body.dataset.query = query.querySelector("select").value = at;
    body.replaceChildren(...cards(trace, detail, CH.query()));
  };
  draw();
  return draw;
};
})(window.CH = window.CH || {});
