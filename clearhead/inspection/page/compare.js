/* Two traces: which words differ, how likely each was, and one head's weights subtracted. */
(function (CH) {
"use strict";

const { el, num, t } = CH;

// Tokens in pairs [ours, theirs], null where one side has nothing (longest common subsequence)
CH.paired = function (ours, theirs) {
  const same = (i, j) => i < ours.length && j < theirs.length && ours[i].text === theirs[j].text, pairs = [];
  const length = CH.range(ours.length + 1).map(() => new Uint16Array(theirs.length + 1)); // that is common from here on
  for (let i = ours.length - 1; i >= 0; i--) {
    for (let j = theirs.length - 1; j >= 0; j--) length[i][j] = same(i, j) ? length[i + 1][j + 1] + 1
      : Math.max(length[i + 1][j], length[i][j + 1]);
  }
  for (let i = 0, j = 0; i < ours.length || j < theirs.length;) {
    if (same(i, j)) pairs.push([ours[i++], theirs[j++]]);
    else if (j === theirs.length || (i < ours.length && length[i + 1][j] >= length[i][j + 1])) pairs.push([ours[i++],
      null]);
    else pairs.push([null, theirs[j++]]);
  }
  return pairs;
};

// Word by word: what both wrote and how likely each found it
function words(trace, other) {
  const logp = (one, token) => token ? one.steps.find((step) => step.t === token.i)?.logp : undefined,
    number = (value) => el("td", {}, typeof value === "number" ? num(value) : "–");
  const cell = (token, { target }) => el("td", { lang: target.lang }, token ? CH.tokenText(token) : "–");
  const line = ([ours, theirs]) => {
    const a = logp(trace, ours), b = logp(other, theirs);
    return el("tr", { class: ours && theirs ? null : "differs" }, cell(ours, trace), cell(theirs, other), number(a),
      number(b), number(ours && theirs ? b - a : undefined));
  };
  return el("table", { class: "plain", id: "compare-words" },
    el("thead", {}, el("tr", {}, ["A", "B", "log p A", "log p B", "B − A"].map((name) => el("th", { scope: "col" },
    name)))),
    el("tbody", {}, CH.paired(trace.target.tokens.slice(1), other.target.tokens.slice(1)).map(line)));
}

// B's weights minus A's, where both have the same tokens
function difference(trace, other) {
  const { kind, layer, head } = CH.state,
    texts = (one) => JSON.stringify([CH.queryTokens(one, kind),
    CH.keyTokens(one, kind)].map((list) => list.map((token) => token.text)));
  if (!CH.layers(other, kind).includes(layer) || head >= CH.heads(other, kind)
    || texts(trace) !== texts(other)) return [CH.say("compare.unlike")];
  const plain = { kind, layer, head, words: false, hide: false }, ours = CH.shown(trace, plain),
    theirs = CH.shown(other, plain), { rows, cols } = ours;
  const at = (r, c) => ours.at(r, c) === null ? null : theirs.at(r, c) - ours.at(r, c);
  return CH.signedMatrix({ id: "compare-table", label: t("compare.matrix"), rows, cols, at, axes: CH.axes(kind),
    ...CH.langs(trace, kind) }, (r, c) => rows[r].text + " → " + cols[c].text + t("list.colon") + num(at(r, c) || 0, 3),
    t("compare.less"), t("compare.more"));
}

CH.views.compare = function (root, trace) {
  if (CH.traces.length < 2) return void root.append(CH.say("compare.none"));
  const other = CH.traces[CH.state.trace === 0 ? 1 : 0],
    named = (one) => el("span", {}, one.model.name, t("list.colon"),
    el("span", { lang: one.source.lang }, one.source.text), " → ",
    el("span", { lang: one.target.lang }, one.target.text));
  root.append(CH.facts([["A", named(trace)], ["B", named(other)]]), words(trace, other), CH.part("compare.matrix"),
    CH.kinds(trace).length ? CH.controls(CH.headChoice("compare", trace), CH.tableSwitch()) : "",
    ...difference(trace, other));
};
})(window.CH = window.CH || {});
