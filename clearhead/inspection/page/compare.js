/* Two traces side by side: the same head's weights subtracted, the probabilities of each word, and which words differ. */
(function (CH) {
  "use strict";

  /** Pairs of tokens in a common order: [ours, theirs], null where one side has nothing (longest common subsequence). */
  CH.paired = function (ours, theirs) {
    const length = CH.range(ours.length + 1).map(() => new Uint16Array(theirs.length + 1));
    for (let i = ours.length - 1; i >= 0; i--) {
      for (let j = theirs.length - 1; j >= 0; j--) length[i][j] = ours[i].text === theirs[j].text ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
    const pairs = [];
    let i = 0, j = 0;
    while (i < ours.length || j < theirs.length) {
      if (i < ours.length && j < theirs.length && ours[i].text === theirs[j].text) pairs.push([ours[i++], theirs[j++]]);
      else if (j >= theirs.length || (i < ours.length && length[i + 1][j] >= length[i][j + 1])) pairs.push([ours[i++], null]);
      else pairs.push([null, theirs[j++]]);
    }
    return pairs;
  };

  const same = (a, b) => a.length === b.length && a.every((token, i) => token.text === b[i].text);

  function difference(trace, other) {
    const { kind, layer, head } = CH.state, has = CH.layers(other, kind).includes(layer) && head < CH.heads(other, kind);
    const rows = CH.groups(CH.queryTokens(trace, kind), false, false), cols = CH.groups(CH.keyTokens(trace, kind), false, false);
    if (!has || !same(CH.queryTokens(trace, kind), CH.queryTokens(other, kind)) || !same(CH.keyTokens(trace, kind), CH.keyTokens(other, kind))) return [CH.say("compare.unlike")];
    const ours = CH.weights(trace, kind, layer, head), theirs = CH.weights(other, kind, layer, head);
    const at = (r, c) => CH.masked(kind, r, c) ? null : theirs.at[r * theirs.cols + c] - ours.at[r * ours.cols + c];
    const most = Math.max(...rows.map((_, r) => Math.max(...cols.map((_, c) => Math.abs(at(r, c) || 0)))), 0.01);
    const value = CH.el("p", { class: "say" }), show = (r, c) => { matrix.focus(r, c); value.textContent = rows[r].text + " → " + cols[c].text + CH.t("list.colon") + CH.num(at(r, c) || 0, 3); };
    const matrix = CH.matrix({ id: "compare-table", label: CH.t("compare.matrix"), rows, cols, at, axes: [CH.t(kind === "cross" ? "axis.query_cross" : "axis.query"), CH.t("axis.key")], colour: (r, c, one) => CH.signs(one / most),
      inside: (one) => Math.abs(one) >= 0.045 ? CH.num(one).replace("0.", ".") : "", focus: [CH.clamp(CH.query(), 0, rows.length - 1), -1], onFocus: show, rowLang: CH.queryLang(trace, kind), colLang: CH.keyLang(trace, kind) });
    return [matrix.node, CH.el("p", { class: "note" }, CH.legend(CH.t("compare.less", { most: CH.num(most) }), CH.t("compare.more", { most: CH.num(most) }), true)), value];
  }

  /** Word by word: what both wrote and how likely each found it. */
  function words(trace, other) {
    const logp = (one, token) => token && (one.steps.find((step) => step.t === token.i) || {}).logp;
    const cell = (token, lang) => CH.el("td", { lang }, token ? CH.tokenText(token) : "–");
    return CH.el("div", { class: "scroll" }, CH.el("table", { class: "plain", id: "compare-words" }, CH.el("thead", {}, CH.el("tr", {}, ["compare.a", "compare.b", "compare.logp_a", "compare.logp_b", "compare.change"].map((key) => CH.el("th", { scope: "col" }, CH.t(key))))),
      CH.el("tbody", {}, CH.paired(trace.target.tokens.slice(1), other.target.tokens.slice(1)).map(([ours, theirs]) => {
        const a = logp(trace, ours), b = logp(other, theirs), isPair = typeof a === "number" && typeof b === "number";
        return CH.el("tr", { class: ours && theirs ? null : "differs" }, cell(ours, trace.target.lang), cell(theirs, other.target.lang), [a, b, isPair ? b - a : undefined].map((value) => CH.el("td", { class: "number" }, typeof value === "number" ? CH.num(value) : "–")));
      }))));
  }

  CH.compare = function (root) {
    root.append(CH.title("tab.compare"));
    if (CH.traces.length < 2) return void root.append(CH.say("compare.none"));
    const trace = CH.trace(), other = CH.traces[CH.state.trace === 0 ? 1 : 0];
    const named = (one, key) => [CH.t(key), CH.el("span", {}, one.model.name, CH.t("list.colon"), CH.el("span", { lang: one.source.lang }, one.source.text), " → ", CH.el("span", { lang: one.target.lang }, one.target.text))];
    root.append(CH.facts([named(trace, "compare.a"), named(other, "compare.b")]), CH.part("compare.words"), words(trace, other), CH.part("compare.matrix"), CH.el("div", { class: "controls" }, CH.headChoice("compare", trace), CH.tableSwitch()), ...difference(trace, other));
  };
})(window.CH = window.CH || {});
