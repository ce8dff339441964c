/* A translation in words, each with the probability of its tokens. */
(function (CH) {
"use strict";

const END = "</s>"; // of each part
const NO_SPACES = // writing that puts none between words, and its punctuation
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}\u3000-\u303f\uff00-\uffef]/u;

/**
 * Where each token stands in the text. A token that is not found there (a byte, a space, an unknown character) counts
 * for the text up to the next one that is.
 */
function placed(text, tokens) {
  const spans = [], small = text.toLowerCase(); // capitals were translated as a sentence
  let at = 0, part = 0, step = 0, open = []; // tokens that are not found yet
  for (const { piece, log_probability: logp } of tokens) {
    const bare = piece.replaceAll("▁", " ").trim(), token = { logp, step };
    if (piece === END) {
      [part, step, open] = [part + 1, 0, []];
      continue;
    }
    const start = bare ? small.indexOf(bare.toLowerCase(), at) : -1;
    const isNext = start >= 0 && !text.slice(at, start).trim();
    if (isNext || (start >= 0 && (open.length || step === 0))) {
      const from = isNext || step === 0 ? start : at + text.slice(at).search(/\S/), all = [...open, token];
      spans.push({ start: from, end: start + bare.length, part, step: all[0].step, last: step,
        logp: CH.sum(all.map((one) => one.logp)) });
      [at, open] = [start + bare.length, []];
    } else open.push(token);
    step += 1;
  }
  return spans;
}

// Words {start, end, part, step, last, p}: what no space parts is one, except in writing that has no spaces
CH.wordsOf = function (text, tokens) {
  const words = [];
  for (const span of placed(text, tokens)) {
    const before = words.at(-1), isOne = before && before.end === span.start && before.part === span.part
      && !NO_SPACES.test(text[span.start]) && !NO_SPACES.test(text[span.start - 1]);
    if (isOne) Object.assign(before, { end: span.end, last: span.last, logp: before.logp + span.logp });
    else words.push({ ...span });
  }
  return words.map((word) => ({ ...word, text: text.slice(word.start, word.end), p: Math.exp(word.logp) }));
};

// The less sure, the stronger the ground
const ground = (p) => ({ background: "color-mix(in srgb, var(--accent) " + Math.round(52 * (1 - p))
  + "%, transparent)" });

/** The text as nodes, its words marked and ready to be pressed. */
CH.wordNodes = function (text, words, lang) {
  const nodes = [];
  let at = 0;
  words.forEach((word, i) => {
    nodes.push(text.slice(at, word.start), CH.el("span", { id: "word-" + i, role: "button", class: word.p < 0.5
      ? "word unsure" : "word", lang, style: ground(word.p), title: CH.t("live.word", { p: CH.prob(word.p) }) },
      word.text));
    at = word.end;
  });
  return [...nodes, text.slice(at)];
};

CH.sureLegend = () => CH.el("span", { class: "legend" }, CH.t("live.sure"), CH.el("span", { class: "grounds" },
  [1, 0.75, 0.5, 0.25, 0].map((p) => CH.el("i", { style: ground(p) }))), CH.t("live.unsure"));
})(window.CH = window.CH || {});
