/* Health: what may be wrong with this translation, from numbers that cost nothing more. */
(function (CH) {
  "use strict";

  const list = (tokens, lang) => tokens.flatMap((token, i) => [i ? CH.t("list.comma") : "", CH.word(token, lang)]);

  /** A finding: good or worth a look, and why. */
  const finding = (isGood, nodes) => CH.el("li", { class: isGood ? "good" : "look" }, CH.el("span", { class: "mark", "aria-label": CH.t(isGood ? "health.good" : "health.look") }, isGood ? "✓" : "!"), CH.el("span", {}, nodes));

  function findings(trace) {
    const { health } = trace, low = health.low_contribution.map((i) => trace.target.tokens[i]), unread = health.unread.map((i) => trace.source.tokens[i]);
    const repeated = health.repeated.map((texts) => texts.join(" ")).join(CH.t("list.comma")), ratio = health.length_ratio;
    return CH.el("ul", { class: "findings" },
      finding(!unread.length, unread.length ? CH.tn("health.unread", { words: CH.el("span", {}, list(unread, trace.source.lang)) }) : CH.tn("health.all_read", {})),
      finding(!repeated, repeated ? CH.tn("health.repeated", { texts: CH.el("b", { lang: trace.target.lang }, repeated) }) : CH.tn("health.not_repeated", {})),
      finding(!low.length, low.length ? CH.tn("health.low", { words: CH.el("span", {}, list(low, trace.target.lang)) }) : CH.tn("health.contributed", {})),
      finding(health.special_share < 0.5, CH.tn("health.special", { share: CH.num(health.special_share) })),
      finding(ratio > 0.4 && ratio < 2.5, CH.tn("health.ratio", { ratio: CH.num(ratio) })));
  }

  function occlusion(trace) {
    const change = trace.occlusion;
    if (!change) return [];
    const rows = CH.groups(trace.target.tokens.slice(1), false, false), cols = CH.groups(trace.source.tokens, false, false), values = CH.values(change), most = Math.max(...values.map(Math.abs), 0.01);
    const at = (r, c) => values[r * change.shape[1] + c], value = CH.el("p", { class: "say" });
    const show = (r, c) => { matrix.focus(r, c); value.textContent = CH.t("health.occlusion_value", { row: rows[r].text, col: cols[c].text, value: CH.num(at(r, c)) }); };
    const matrix = CH.matrix({ id: "occlusion-table", label: CH.t("health.occlusion"), rows, cols, at, places: 2, axes: [CH.t("axis.written"), CH.t("axis.hidden")], colour: (r, c, one) => CH.signs(one / most), inside: (one) => Math.abs(one) >= 0.1 ? CH.num(one, 1) : "",
      focus: [CH.clamp(CH.state.step, 0, rows.length - 1), -1], onFocus: show, rowLang: trace.target.lang, colLang: trace.source.lang });
    return [CH.part("health.occlusion"), CH.say("health.occlusion_say"), CH.el("div", { class: "controls" }, CH.tableSwitch()), matrix.node, CH.el("p", { class: "note" }, CH.legend(CH.num(-most), CH.num(most), true)), value];
  }

  CH.health = function (root) {
    const trace = CH.trace(), { coverage } = trace.health;
    const notes = [trace.limits.note, ...trace.notes].filter(Boolean);
    root.append(CH.title("tab.health"), CH.say("health.say"), findings(trace), coverage.length ? CH.part("health.coverage") : "", coverage.length ? CH.bars(coverage.map((value, i) => ({ text: CH.tokenText(trace.source.tokens[i]), lang: trace.source.lang, value, shown: CH.prob(value), strong: trace.health.unread.includes(i) })), { most: 1, label: CH.t("health.coverage") }) : "",
      ...occlusion(trace), CH.part("health.limits"), CH.say(trace.limits.reduced ? "health.reduced" : "health.whole", { error: CH.num(trace.limits.quantisation_max_error, 4) }), ...notes.map((text) => CH.el("p", { class: "note" }, text)));
  };
})(window.CH = window.CH || {});
