/* What a model is asked: for a translation, or to continue a text; and how a text that was continued is shown. */
(function (CH) {
"use strict";

const { el, t } = CH;
const MOST_WAYS = 4; // translations of one text
const SEEDS = 2 ** 31, LENGTHS = [30, 60, 120, 240, 500], TEMPERATURES = [0, 0.5, 0.8, 1, 1.3];
const chosen = { temperature: 0.8, length: 120 };

CH.writes = (model) => Boolean(model) && model.task === "generate";

// The path and the body; of a text to be continued another one each time
CH.question = (text, { model, info }) => CH.writes(model)
  ? ["v1/generate", { prompt: text, model: model.name, ...chosen, seed: Math.floor(SEEDS * Math.random()) }]
  : ["v1/translate", { texts: [text], model: model.name, tokens: true,
    n_best: Math.min(model.beam, MOST_WAYS, info.limits.beam) }];

// A text that was continued has nothing of what only translations have
CH.resultOf = ({ results: [result] }, { model }) => CH.writes(model)
  ? { ...result, tokens: {}, alternatives: [], warnings: [], confidence: null } : result;

const choice = (id, key, values) => CH.choice(id, key, values.map((value) => [value, String(value)]), chosen[id],
  (value) => { chosen[id] = Number(value); });

CH.writeControls = (limits) => CH.controls(choice("temperature", "write.temperature", TEMPERATURES),
  choice("length", "write.length", LENGTHS.filter((length) => length <= limits.length)));

// The whole text so far, of which the beginning was given
CH.writtenNodes = (text, given, lang) => text.startsWith(given)
  ? [el("span", { class: "given", lang }, given), text.slice(given.length)] : [text];

// A look inside needs something to begin with
CH.writtenMore = ({ prompt, text, model, score }) => [CH.note("write.score", { score: CH.num(score) }), prompt.trim()
  ? CH.button("look-inside", t("write.look"), () => {
    CH.look({ model: model.name, source: prompt, target: text, isGiven: true }, null);
    CH.bringLook();
  }, { class: "link" }) : ""];
})(window.CH = window.CH || {});
