/* Positions: the table that is added to the embeddings, how its rows relate, and how long both are. */
(function (CH) {
  "use strict";

  /** The dot product of two rows by how far they are apart: mean, least and most over all places. */
  function byOffset(table) {
    const [rows, width] = table.shape, values = CH.values(table);
    return CH.range(Math.min(rows, 64)).map((offset) => {
      const products = CH.range(rows - offset).map((p) => {
        let total = 0;
        for (let i = 0; i < width; i++) total += values[p * width + i] * values[(p + offset) * width + i];
        return total;
      });
      return { offset, mean: CH.mean(products), least: Math.min(...products), most: Math.max(...products) };
    });
  }

  function heatMap(table) {
    const [rows, width] = table.shape, values = CH.values(table), shownRows = Math.min(rows, 64), most = Math.max(...values.map(Math.abs), 1e-9);
    const numbered = (n) => CH.range(n).map((i) => ({ text: String(i) })), value = CH.el("p", { class: "say" });
    const show = (r, c) => { map.focus(r, c); value.textContent = CH.t("positions.value", { row: r, col: c, value: CH.num(values[r * width + c], 3) }); };
    const map = CH.matrix({ id: "positions-table", label: CH.t("positions.label"), rows: numbered(shownRows), cols: numbered(width), cellHeight: 5, axes: [CH.t("positions.place"), CH.t("positions.dimension")],
      at: (r, c) => values[r * width + c], colour: (r, c, one) => CH.signs(one / most), inside: () => "", focus: [0, 0], onFocus: show });
    show(0, 0);
    return [map.node, CH.el("p", { class: "note" }, CH.legend(CH.num(-most), CH.num(most), true), " ", CH.t("positions.rows")), value];
  }

  CH.positions = function (root) {
    const trace = CH.trace(), positions = trace.positions;
    root.append(CH.title("tab.positions"));
    if (!positions) return void root.append(CH.say(trace.model.kind === "rnn" ? "positions.rnn" : "positions.none", { kind: trace.model.positions }));
    const offsets = byOffset(positions.table), most = Math.max(...positions.embedding_norms, ...positions.position_norms);
    const bar = (norms, i) => ({ value: norms[i], shown: CH.num(norms[i], 1) });
    root.append(CH.say("positions.say", { kind: positions.kind }), CH.el("div", { class: "controls" }, CH.tableSwitch()), ...heatMap(positions.table),
      CH.el("div", { class: "columns even" }, CH.el("div", {}, CH.part("positions.dot"), CH.lines([{ name: CH.t("positions.mean"), points: offsets.map((one) => [one.offset, one.mean]), band: offsets.map((one) => [one.offset, one.least, one.most]) }],
        { label: CH.t("positions.dot"), x: CH.t("positions.offset"), y: "p · p′" }), CH.note("positions.dot_note")),
      CH.el("div", {}, CH.part("positions.norms"), CH.bars(positions.embedding_norms.flatMap((_, i) => [{ ...bar(positions.embedding_norms, i), text: CH.tokenText(trace.source.tokens[i]), lang: trace.source.lang }, { ...bar(positions.position_norms, i), text: CH.t("positions.its"), faint: true }]),
        { most, label: CH.t("positions.norms") }), CH.note("positions.norms_note"))));
  };
})(window.CH = window.CH || {});
