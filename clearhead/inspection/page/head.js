/* One head: its weights as a matrix or as lines. */
(function (CH) {
  "use strict";

  /** Which head: kind, layer and head, as controls. */
  CH.headChoice = function (id, trace) {
    const { kind, layer, head } = CH.state, numbered = (list) => list.map((n) => [n, String(n + 1)]);
    return [CH.kindChoice(id + "-kind", trace), CH.choice(id + "-layer", "choose.layer", numbered(CH.layers(trace, kind)), layer, (n) => CH.set({ layer: Number(n) })),
      CH.choice(id + "-head", "choose.head", numbered(CH.range(CH.heads(trace, kind))), head, (n) => CH.set({ head: Number(n) }))];
  };

  /** How the rows are named: in the decoder a row is at one word and writes the next. */
  function rowNames(trace, kind, groups, words) {
    const next = kind === "decoder" && !words ? trace.target.tokens : null;
    return groups.map((group) => ({ ...group, text: next ? group.text + " → " + CH.tokenText(next[group.places[0] + 1]) : group.text }));
  }

  /** The rows that were picked, added up: for each column, how much of all of them went there. */
  function summed(shown, picked) {
    if (!picked.length) return null;
    const values = shown.cols.map((_, c) => CH.sum(picked.map((r) => shown.at(r, c) || 0)));
    return { label: CH.t("head.sum", { n: picked.length }), values };
  }

  function sumSentence(shown, picked, sum, lang) {
    const best = CH.ranked(sum.values).slice(0, 3).filter((c) => sum.values[c] > 0);
    return CH.el("p", { class: "say", id: "picked-sum" }, CH.t("head.summed", { rows: picked.map((r) => shown.rows[r].text).join(" + ") }), " ",
      best.flatMap((c, i) => [i ? CH.t("list.comma") : "", CH.el("b", { lang, class: "token" }, shown.cols[c].text), " " + CH.num(sum.values[c])]), " ",
      CH.el("button", { type: "button", class: "link", id: "clear-picked", click: () => CH.set({ picked: [] }) }, CH.t("head.clear")));
  }

  const axes = (kind) => [CH.t(kind === "cross" ? "axis.query_cross" : "axis.query"), CH.t("axis.key")];

  function scaleNote(kind, scale, hide, words) {
    return CH.el("p", { class: "note" }, CH.legend("0", scale === "row" ? CH.t("scale.row_end") : CH.t("scale.global_end")), " ", CH.t(kind === "decoder" ? "head.rows_decoder" : kind === "cross" ? "head.rows_cross" : "head.rows_encoder"),
      hide ? " " + CH.t("head.hidden") : "", words ? " " + CH.t("head.words_note") : "");
  }

  CH.head = function (root) {
    const trace = CH.trace(), { kind, layer, head, mode, hide, words, scale } = CH.state;
    if (!CH.kinds(trace).length) return void root.append(CH.title("tab.head"), CH.say("say.none"));
    const weights = CH.weights(trace, kind, layer, head), shown = CH.shown(trace, kind, weights, words, hide);
    const rows = rowNames(trace, kind, shown.rows, words), highest = Math.max(...shown.rows.map((_, r) => Math.max(...shown.cols.map((_, c) => shown.at(r, c) || 0))), 1e-9);
    const tops = shown.rows.map((_, r) => Math.max(...shown.cols.map((_, c) => shown.at(r, c) || 0), 1e-9));
    const picked = CH.state.picked.map((place) => CH.groupOf(shown.rows, place)).filter((r, i, all) => r >= 0 && all.indexOf(r) === i), sum = summed(shown, picked);
    const focus = () => [CH.groupOf(shown.rows, CH.query()), CH.groupOf(shown.cols, CH.state.key)];
    const name = CH.t("head.name", { kind: CH.t("kind." + kind), layer: layer + 1, head: head + 1 }), value = CH.el("p", { class: "say", id: "head-value" });
    const common = { label: name, at: shown.at, cols: shown.cols, axes: axes(kind), rowLang: CH.queryLang(trace, kind), colLang: CH.keyLang(trace, kind) };
    const pick = (r) => { const place = shown.rows[r].places[0]; CH.set({ picked: CH.state.picked.includes(place) ? CH.state.picked.filter((one) => one !== place) : [...CH.state.picked, place] }); };
    const picture = mode === "matrix" ? CH.matrix({ ...common, id: "head-table", focus: focus(), sum, inside: (one) => one >= 0.045 ? CH.num(one).replace(/^0/, "") : "",
      rows: rows.map((row, r) => ({ ...row, picked: picked.includes(r) })), colour: (r, c, one) => CH.ramp(one / (scale === "row" ? tops[r] : highest)),
      onFocus: (r, c) => CH.set(CH.focusOn(shown.rows[r].places[0], shown.cols[c].places[0])), onPick: pick })
      : CH.lineView({ ...common, id: "head-lines", rows, focus: focus()[0], onFocus: (r) => CH.set(CH.focusOn(shown.rows[r].places[0])) });
    const describe = () => {
      const [r, c] = focus();
      value.replaceChildren(...(r < 0 ? [""] : c < 0 ? CH.saying() : CH.tn(shown.at(r, c) === null ? "head.masked" : "head.value",
        { row: CH.el("b", { lang: common.rowLang, class: "token" }, rows[r].text), col: CH.el("b", { lang: common.colLang, class: "token" }, shown.cols[c].text), weight: CH.num(shown.at(r, c) || 0, 3) })));
    };
    const aligning = CH.isAligning(trace, kind, layer, head) ? CH.el("span", { class: "badge" }, CH.t("head.aligns")) : null;
    root.append(CH.title("tab.head"), CH.el("p", { class: "lead" }, name, " ", aligning), CH.el("div", { class: "controls" }, CH.headChoice("pick", trace),
      CH.segments("mode", CH.t("choose.mode"), [["matrix", CH.t("mode.matrix")], ["lines", CH.t("mode.lines")]], mode, (each) => CH.set({ mode: each })),
      CH.segments("scale", CH.t("choose.scale"), [["row", CH.t("scale.row")], ["global", CH.t("scale.global")]], scale, (each) => CH.set({ scale: each })),
      CH.check("hide", "choose.hide", hide, (each) => CH.set({ hide: each })), CH.check("words", "choose.words", words, (each) => CH.set({ words: each, picked: [] })), CH.tableSwitch(), CH.button("export", "choose.export", CH.exportHead)),
    picture.node, value, sum ? sumSentence({ ...shown, rows }, picked, sum, common.colLang) : CH.note(mode === "matrix" ? "head.pick" : "head.lines_note"), scaleNote(kind, scale, hide, words), weights.rest ? CH.note("head.top") : null);
    describe();
    return () => { mode === "matrix" ? picture.focus(...focus()) : picture.focus(focus()[0]); describe(); };
  };
})(window.CH = window.CH || {});
