/* Tokens as they are read, which of them label a matrix, and words put together from pieces. */
(function (CH) {
"use strict";

const { t } = CH;

// A token's text: a byte piece as ⟨E5⟩, a space as ␣
const tokenText = CH.tokenText = function (token) {
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token.piece);
  if (byte) return "⟨" + byte[1].toUpperCase() + "⟩";
  return token.text.replace(/\s/g, "␣") || "␣";
};

CH.word = (token, lang) => CH.bold(tokenText(token), lang);

// The tokens that ask, row by row: in cross attention the one that the row writes, else the one at its place
CH.queryTokens = function (trace, kind) {
  if (kind === "encoder") return trace.source.tokens;
  return kind === "cross" ? trace.target.tokens.slice(1) : trace.target.tokens.slice(0, -1);
};

CH.keyTokens = (trace, kind) => kind === "decoder" ? trace.target.tokens.slice(0, -1) : trace.source.tokens;

CH.langs = (trace, kind) => ({ rowLang: (kind === "encoder" ? trace.source : trace.target).lang,
  colLang: (kind === "decoder" ? trace.target : trace.source).lang });

CH.axes = (kind) => [t(kind === "cross" ? "axis.query_cross" : "axis.query"), t("axis.key")];

// In the decoder, what comes after a row may not be read by it
CH.masked = (kind, row, col) => kind === "decoder" && col > row;

CH.numbers = ({ layer, head }) => ({ layer: layer + 1, head: head + 1 }); // people count from 1
CH.headName = (one) => t("head.name", { kind: t("kind." + one.kind), ...CH.numbers(one) });

// Tokens in groups {text, special, places}: each alone, or the pieces of a word together; special ones may be hidden
CH.groups = function (tokens, words, hide) {
  const groups = [];
  let word = null;
  tokens.forEach((token, place) => {
    if (hide && token.special) return;
    const goesOn = words && token.word !== null && token.word === word;
    word = token.word;
    if (!goesOn) groups.push({ text: "", special: token.special, places: [] });
    groups.at(-1).text += tokenText(token);
    groups.at(-1).places.push(place);
  });
  return groups;
};

/**
 * A head's weights as they are shown: words as one (keys summed, queries averaged), without special tokens if they are
 * hidden (and the rows made to sum to 1 again), null where the mask forbids.
 * @returns {{rows: Array, cols: Array, at: (row: number, col: number) => ?number}}
 */
CH.shown = function (trace, { kind, layer, head, words, hide }) {
  const weights = CH.weights(trace, { kind, layer, head });
  const rows = CH.groups(CH.queryTokens(trace, kind), words, hide), cols = CH.groups(CH.keyTokens(trace, kind), words,
    hide);
  const table = rows.map((row) => cols.map((col) => {
    if (col.places.every((c) => row.places.every((r) => CH.masked(kind, r, c)))) return null;
    return CH.mean(row.places.map((r) => CH.sum(col.places.map((c) => weights.at[r * weights.cols + c]))));
  }));
  for (const row of hide ? table : []) {
    const total = CH.sum(row) || 1;
    row.forEach((value, c) => { if (value !== null) row[c] = value / total; });
  }
  return { rows, cols, at: (r, c) => table[r][c], rest: weights.rest };
};

CH.groupOf = (groups, place) => groups.findIndex((group) => group.places.includes(place));
})(window.CH = window.CH || {});
