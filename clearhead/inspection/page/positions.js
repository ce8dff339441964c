/* The table of positions, how its rows relate, and their length. */
(function (CH) {
"use strict";

const { el, num, range, t } = CH;
const MOST = 64; // rows and offsets shown

// The dot product of two rows by how far they are apart: [offset, mean, least, most] over all places
function byOffset(table) {
  const rows = range(table.shape[0]).map((p) => CH.row(table, p));
  return range(Math.min(rows.length, MOST)).map((offset) => {
    const products = range(rows.length - offset).map((p) => CH.sum(rows[p].map((value,
      i) => value * rows[p + offset][i])));
    return [offset, CH.mean(products), Math.min(...products), Math.max(...products)];
  });
}

CH.views.positions = function (root, trace) {
  const { positions, source, model } = trace;
  if (!positions) return void root.append(CH.say("positions." + (model.kind === "rnn" ? "rnn" : model.positions)));
  const { table, embedding_norms: embeddings, position_norms: places } = positions, [rows, width] = table.shape,
    numbered = (n) => range(n).map((i) => ({ text: i }));
  const bar = (value, text, more) => ({ value, shown: num(value, 1), text, ...more });
  root.append(CH.say("positions.say", { kind: positions.kind }), CH.controls(CH.tableSwitch()),
    ...CH.signedMatrix({ id: "positions-table", label: t("positions.label"), rows: numbered(Math.min(rows, MOST)),
      cols: numbered(width), cellHeight: rows > 40 ? 5 : 10, axes: ["", t("positions.dimension")],
        at: (r, c) => CH.row(table, r)[c],
      focus: [0, 0] },
      (r, c) => t("positions.value", { row: r, col: c, value: num(CH.row(table, r)[c], 3) }), "", ""),
    el("div", { class: "columns even" },
      el("div", {}, CH.part("positions.dot"), CH.lines([{ name: "", points: byOffset(table) }],
      { label: t("positions.dot"), x: t("positions.offset"), y: "p · p′" }), CH.note("positions.dot_note")),
      el("div", {}, CH.part("positions.norms"),
        CH.bars(embeddings.flatMap((norm, i) => [bar(norm, CH.tokenText(source.tokens[i]), { lang: source.lang }),
        bar(places[i], t("positions.its"), { faint: true })]),
        { label: t("positions.norms"), most: CH.most([...embeddings, ...places]) }), CH.note("positions.norms_note"))));
};
})(window.CH = window.CH || {});
