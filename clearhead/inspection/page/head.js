/* One head as a matrix or as lines. */
(function (CH) {
"use strict";

const { bold, el, num, set, t } = CH;

CH.headChoice = function (id, trace) {
  const { kind, layer, head } = CH.state, pick = (name, list, value) => CH.choice(id + "-" + name, "choose." + name,
    list.map((n) => [n, n + 1]), value, (n) => set({ [name]: Number(n) }));
  return [CH.kindChoice(id + "-kind", trace), pick("layer", CH.layers(trace, kind), layer),
    pick("head", CH.range(CH.heads(trace, kind)), head)];
};

// In the decoder a row is at one word and writes the next
const rowNames = (trace, { kind, words }, groups) => kind !== "decoder" || words ? groups
  : groups.map((group) => ({ ...group,
    text: group.text + " → " + CH.tokenText(trace.target.tokens[group.places[0] + 1]) }));

function sumLine(rows, cols, picked, { values }, lang) {
  const best = CH.ranked(values).slice(0, 3).filter((c) => values[c] > 0),
    names = picked.map((r) => rows[r].text).join(" + ");
  return el("p", { class: "say", id: "picked-sum" }, t("head.summed", { rows: names }), " ",
    best.map((c, i) => [i ? t("list.comma") : "", bold(cols[c].text, lang), " " + num(values[c])]), " ",
      CH.button("clear-picked", t("head.clear"), () => set({ picked: [] }), { class: "link" }));
}

// Matrix or lines of what is shown; pressing a row picks it
function picture(shown, rows, picked, sum, common) {
  const { mode, scale } = CH.state, tops = shown.rows.map((_, r) => CH.most(shown.cols.map((_, c) => shown.at(r, c)))),
    highest = CH.most(tops), place = (r) => shown.rows[r].places[0];
  if (mode === "lines") return CH.lineView({ ...common, id: "head-lines", rows,
    onFocus: (r) => set(CH.focusOn(place(r))) });
  const toggled = (one) => CH.state.picked.includes(one) ? CH.state.picked.filter((each) => each !== one)
    : [...CH.state.picked, one];
  return CH.matrix({ ...common, id: "head-table", sum, inside: (value) => value >= 0.045 ? num(value).replace(/^0/, "")
    : "", rows: rows.map((row, r) => ({ ...row, picked: picked.includes(r) })),
    colour: (r, value) => CH.ramp(value / (scale === "row" ? tops[r] : highest)),
      onFocus: (r, c) => set(CH.focusOn(place(r), shown.cols[c].places[0])),
      onPick: (r) => set({ picked: toggled(place(r)) }) });
}

function controls(trace) {
  const { mode, scale, hide, words } = CH.state, isMatrix = mode === "matrix",
    both = (name, values, value) => CH.segments(name, "choose." + name,
    values.map((each) => [each, t(name + "." + each)]), value, (each) => set({ [name]: each }));
  return CH.controls(CH.headChoice("pick", trace), both("mode", ["matrix", "lines"], mode), isMatrix
    && both("scale", ["row", "global"], scale), CH.check("hide", "choose.hide", hide, (each) => set({ hide: each })),
    CH.check("words", "choose.words", words, (each) => set({ words: each, picked: [] })), isMatrix && CH.tableSwitch(),
      CH.button("export", t("choose.export"), CH.exportHead));
}

CH.views.head = function (root, trace) {
  const { kind, mode, hide, words, scale } = CH.state, shown = CH.shown(trace, CH.state),
    rows = rowNames(trace, CH.state, shown.rows), isMatrix = mode === "matrix", langs = CH.langs(trace, kind);
  const picked = [...new Set(CH.state.picked.map((place) => CH.groupOf(shown.rows, place)))].filter((r) => r >= 0);
  const sum = picked.length && isMatrix
    ? { label: "Σ", values: shown.cols.map((_, c) => CH.sum(picked.map((r) => shown.at(r, c)))) } : null;
  const focus = () => [CH.groupOf(shown.rows, CH.query()), CH.groupOf(shown.cols, CH.state.key)],
    line = el("p", { class: "say", id: "head-value" });
  const map = picture(shown, rows, picked, sum, { ...langs, label: CH.headName(CH.state), at: shown.at,
    cols: shown.cols, axes: CH.axes(kind), focus: focus() });
  const describe = ([r, c]) => {
    const value = r >= 0 && c >= 0 ? shown.at(r, c) : null, names = r >= 0 && c >= 0
      ? { row: bold(rows[r].text, langs.rowLang), col: bold(shown.cols[c].text, langs.colLang),
      weight: num(value || 0, 3) } : null;
    line.replaceChildren(...(names ? CH.tn(value === null ? "head.masked" : "head.value", names) : []));
  };
  root.append(el("p", { class: "lead" }, CH.headName(CH.state)), controls(trace), map.node, line,
    sum ? sumLine(rows, shown.cols, picked, sum, langs.colLang) : "",
      el("p", { class: "note" }, isMatrix ? CH.legend("0", t("scale." + scale + "_end"), CH.ramp)
      : t("head.lines_note"), " ", t("head.rows_" + kind), " ",
      isMatrix && !sum ? t("head.pick") : "", hide && " " + t("head.hidden"), words && " " + t("head.words_note"),
        shown.rest && " " + t("head.top")));
  describe(focus());
  return () => { map.focus(...focus()); describe(focus()); };
};
})(window.CH = window.CH || {});
