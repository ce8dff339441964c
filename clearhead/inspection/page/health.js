/* What may be wrong with this translation. */
(function (CH) {
"use strict";

const { el, num, part, say, t, tn } = CH;

const finding = (isGood, ...nodes) => el("li", { class: isGood ? "good" : "look" },
  el("span", { class: "mark", role: "img", "aria-label": t(isGood ? "health.good" : "health.look") }, isGood ? "✓"
  : "!"), el("span", {}, nodes));

function findings({ health, source, target }) {
  const named = (side, places) => el("span", {},
    places.map((i, n) => [n ? t("list.comma") : "", CH.word(side.tokens[i], side.lang)]));
  const either = (list, bad, values, good) => finding(!list.length, list.length ? tn(bad, values) : t(good)),
    { unread, repeated, low_contribution: low, special_share: share, length_ratio: ratio } = health;
  return el("ul", { class: "findings" }, either(unread, "health.unread", { words: named(source, unread) },
    "health.all_read"),
    either(repeated, "health.repeated",
      { texts: CH.bold(repeated.map((texts) => texts.join(" ")).join(t("list.comma")), target.lang) },
      "health.not_repeated"),
    either(low, "health.low", { words: named(target, low) }, "health.contributed"),
      finding(share < 0.5, t("health.special", { share: num(share) })),
      finding(ratio > 0.4 && ratio < 2.5, t("health.ratio", { ratio: num(ratio) })));
}

function occlusion({ occlusion: change, source, target }) {
  if (!change) return [];
  const rows = CH.groups(target.tokens.slice(1)), cols = CH.groups(source.tokens), at = (r, c) => CH.row(change, r)[c];
  return [part("decoding.occlusion"), say("health.occlusion_say"), CH.controls(CH.tableSwitch()),
    ...CH.signedMatrix({ id: "occlusion-table", label: t("decoding.occlusion"), rows, cols, at,
    axes: [t("axis.written"), t("axis.hidden")],
    rowLang: target.lang, colLang: source.lang },
      (r, c) => t("health.occlusion_value", { row: rows[r].text, col: cols[c].text, value: num(at(r, c)) }), "", "")];
}

CH.views.health = function (root, trace) {
  const { health: { coverage, unread }, source, limits } = trace, error = num(limits.quantisation_max_error, 4);
  const bar = (value, i) => ({ text: CH.tokenText(source.tokens[i]), lang: source.lang, value, shown: CH.prob(value),
    strong: unread.includes(i) });
  root.append(say("health.say"), findings(trace),
    ...(coverage.length ? [part("health.coverage"),
    CH.bars(coverage.map(bar), { most: 1, label: t("health.coverage") })] : []), ...occlusion(trace),
    part("health.limits"), say(limits.reduced ? "health.reduced" : "health.whole", { error }),
      ...[limits.note, ...trace.notes].filter(Boolean).map((note) => el("p", { class: "note" }, note)));
};
})(window.CH = window.CH || {});
