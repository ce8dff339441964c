/* One head, one query, in six steps: every number is computed here from what the trace gives, and compared with the model's. */
(function (CH) {
  "use strict";

  const FINE = 1e-4; // what the model's own arithmetic leaves open

  const dot = (a, b) => { let total = 0; for (let i = 0; i < a.length; i++) total += a[i] * b[i]; return total; };
  const apart = (ours, theirs) => { let most = 0; ours.forEach((value, i) => { most = Math.max(most, Math.abs(value - theirs[i])); }); return most; };

  /** W x + b for one vector. */
  function projected(weight, bias, x) {
    const b = bias ? CH.values(bias) : null;
    return Float64Array.from({ length: weight.shape[0] }, (_, i) => dot(CH.row(weight, i), x) + (b ? b[i] : 0));
  }

  function softmax(scores) {
    const most = Math.max(...scores), grown = scores.map((score) => Math.exp(score - most)), total = CH.sum(grown);
    return grown.map((one) => one / total);
  }

  /**
   * The six steps of one query.
   * @returns {{x, q, ks, vs, scores, scaled, allowed, weights, out, differences}} differences: the largest, by step
   */
  CH.sixSteps = function (detail, row, isScaled) {
    const keys = detail.k.shape[0], memory = detail.memory || detail.x, differences = {}, each = CH.range(keys);
    const made = (weight, bias, from, r, given) => weight && from ? projected(weight, bias, CH.row(from, r)) : CH.row(given, r);
    const q = made(detail.w_q, detail.b_q, detail.x, row, detail.q);
    const ks = each.map((c) => made(detail.w_k, detail.b_k, memory, c, detail.k)), vs = each.map((c) => made(detail.w_v, detail.b_v, memory, c, detail.v));
    if (detail.w_q && detail.x) differences.q = apart(q, CH.row(detail.q, row));
    if (detail.w_k && memory) differences.k = Math.max(...each.map((c) => apart(ks[c], CH.row(detail.k, c))));
    if (detail.w_v && memory) differences.v = Math.max(...each.map((c) => apart(vs[c], CH.row(detail.v, c))));
    const scores = ks.map((k) => dot(q, k)), scaled = scores.map((score) => score * (isScaled ? detail.scale : 1));
    const allowed = each.map((c) => detail.mask !== "causal" || c <= row);
    const weights = softmax(scaled.map((score, c) => allowed[c] ? score : -Infinity));
    const out = Float64Array.from({ length: vs[0].length }, (_, i) => CH.sum(vs.map((v, c) => weights[c] * v[i])));
    if (isScaled) differences.out = apart(out, CH.row(detail.out, row));
    return { x: detail.x && CH.row(detail.x, row), q, ks, vs, scores, scaled, allowed, weights, out, differences };
  };

  /** "largest difference from the model 2e-7 ✓" */
  const verdict = (difference) => difference === undefined ? null : CH.el("p", { class: difference <= FINE ? "check-line good" : "check-line bad", "data-difference": difference },
    CH.t(difference <= FINE ? "steps.same" : "steps.differs", { difference: CH.tiny(difference) }));

  const card = (number, key, formula, ...inside) => CH.el("section", { class: "step", id: "step-" + number }, CH.el("h3", {}, CH.el("span", { class: "number" }, number), CH.t(key), CH.el("code", {}, formula)), inside);

  /** Every key's vector on a line of its own. */
  const vectors = (labels, lang, all) => CH.el("div", { class: "vectors" }, all.map((one, c) => CH.el("div", {}, CH.el("span", { class: "name", lang }, labels[c]), CH.vector(one, Math.max(...all.flatMap((v) => [...v.subarray(0, 8)].map(Math.abs)))))));

  function bars(labels, lang, values, allowed, shown, label) {
    return CH.bars(labels.map((text, c) => ({ text, lang, value: allowed[c] ? values[c] : 0, shown: allowed[c] ? shown(values[c]) : CH.t("grid.masked"), faint: !allowed[c] })), { least: Math.min(...values), label });
  }

  const sameAsMap = (trace, weights, row, kept) => CH.el("p", { class: "note" }, CH.t("steps.map", { difference: CH.num(apart(weights, CH.weightRow(kept, row)), 4), allowed: CH.num(trace.limits.quantisation_max_error, 4) }));

  function cards(trace, detail, row) {
    const { kind } = detail, isScaled = !CH.state.unscaled, six = CH.sixSteps(detail, row, isScaled), lang = CH.keyLang(trace, kind), d = detail.q.shape[1];
    const labels = CH.keyTokens(trace, kind).map(CH.tokenText), root = Math.abs(detail.scale * Math.sqrt(d) - 1) < 1e-6 ? "√" + d : CH.num(1 / detail.scale, 3);
    const everywhere = labels.map(() => true), scores = CH.t("steps.scores");
    return [
      card(1, "steps.x", "x", CH.say(kind === "encoder" ? "steps.x_encoder" : "steps.x_target"), six.x ? CH.vector(six.x) : CH.note("steps.no_x")),
      card(2, "steps.qkv", detail.w_q ? "q = W_Q x + b,  k = W_K m + b,  v = W_V m + b" : "q, k, v", CH.say(kind === "cross" ? "steps.qkv_cross" : "steps.qkv_self"),
        CH.el("h4", {}, "q"), CH.vector(six.q), verdict(six.differences.q), CH.el("h4", {}, "k"), vectors(labels, lang, six.ks), verdict(six.differences.k), CH.el("h4", {}, "v"), vectors(labels, lang, six.vs), verdict(six.differences.v)),
      card(3, "steps.dot", "s = q · k", CH.say("steps.dot_say", { d }), bars(labels, lang, six.scores, everywhere, CH.num, scores)),
      card(4, "steps.scale", isScaled ? "s ÷ " + root : "s", CH.say("steps.scale_say", { root }), bars(labels, lang, six.scaled, everywhere, CH.num, scores)),
      card(5, detail.mask ? "steps.softmax_masked" : "steps.softmax", "w = softmax(s)", CH.say(detail.mask ? "steps.mask_say" : "steps.softmax_say"), bars(labels, lang, six.weights, six.allowed, (w) => CH.num(w, 3), CH.t("steps.weights")),
        isScaled ? sameAsMap(trace, six.weights, row, CH.weights(trace, kind, detail.layer, detail.head)) : CH.note("steps.unscaled_note", { most: CH.num(Math.max(...six.weights), 3), before: CH.num(Math.max(...CH.sixSteps(detail, row, true).weights), 3) })),
      card(6, "steps.sum", "out = Σ w v", CH.say("steps.sum_say"), CH.vector(six.out), isScaled ? verdict(six.differences.out) : null),
      isScaled ? CH.el("p", { class: "lead", id: "steps-most", "data-difference": Math.max(...Object.values(six.differences)) }, CH.t("steps.most", { difference: CH.tiny(Math.max(...Object.values(six.differences))) })) : null,
    ];
  }

  CH.steps = function (root) {
    const trace = CH.trace(), { kind, layer, head } = CH.state;
    if (!trace.head_detail.length) return void root.append(CH.title("tab.steps"), CH.say(trace.model.kind === "rnn" ? "steps.rnn" : "steps.none"));
    const detail = CH.detail(trace, kind, layer, head), body = CH.el("div", { class: "steps" });
    const kept = trace.head_detail.map((one, i) => [i, CH.t("head.name", { kind: CH.t("kind." + one.kind), layer: one.layer + 1, head: one.head + 1 })]);
    const choose = (i) => { const one = trace.head_detail[Number(i)]; if (one) CH.set({ kind: one.kind, layer: one.layer, head: one.head }); };
    root.append(CH.title("tab.steps"), CH.say("steps.say"));
    const heads = CH.choice("steps-head", "steps.kept", detail ? kept : [["", "–"], ...kept], detail ? trace.head_detail.indexOf(detail) : "", choose);
    if (!detail) return void root.append(CH.el("div", { class: "controls" }, heads), CH.say("steps.not_kept", { head: CH.t("head.name", { kind: CH.t("kind." + kind), layer: layer + 1, head: head + 1 }) }));
    const rows = CH.queryTokens(trace, kind).map((token, r) => [r, (r + 1) + "  " + CH.tokenText(token) + (kind === "decoder" ? " → " + CH.tokenText(trace.target.tokens[r + 1]) : "")]);
    const query = CH.choice("steps-query", kind === "cross" ? "axis.query_cross" : "axis.query", rows, CH.query(), (r) => CH.set(CH.focusOn(Number(r))));
    root.append(CH.el("div", { class: "controls" }, heads, query, CH.check("unscaled", "steps.unscaled", CH.state.unscaled, (unscaled) => CH.set({ unscaled }))), body);
    let drawn = -1;
    const draw = () => {
      if (drawn === CH.query()) return;
      drawn = CH.query();
      query.querySelector("select").value = drawn;
      body.replaceChildren(...cards(trace, detail, drawn).filter(Boolean));
    };
    draw();
    return draw;
  };
})(window.CH = window.CH || {});
