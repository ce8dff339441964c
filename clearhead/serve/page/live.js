/* The live part: what is typed is translated as it is typed, and an older answer never stands where a newer belongs. */
(function (CH) {
"use strict";

const { chosenTheme, el, isDark, language, nameOf, t } = CH;
const STILL = 350; // milliseconds without a key, after which is translated
const HARMLESS = ["copied", "split", "protected", "recased", "control_characters"]; // warnings of how, not of what
const part = (id) => document.getElementById(id);
const live = { info: null, model: null, result: null, words: [], partial: "", problem: null, isBusy: false,
  isStopped: false, seconds: 0, needsKey: false };
let turn = 0, starts = 0, asking = new AbortController(), waiting, clock, example = "", drawnFor = "";

const box = el("textarea", { id: "text", rows: 5, spellcheck: "false", autocapitalize: "off", input: typed,
  keydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate(); } });

const keyBox = el("input", { id: "key", type: "password", autocomplete: "off", required: true });

CH.live = () => live;

// -- translating -----------------------------------------------------------------------------------------------------

function typed(event) {
  clearTimeout(waiting);
  if (!event.isComposing && !CH.writes(live.model)) waiting = setTimeout(translate, box.value.trim() ? STILL : 0);
  drawCount();
}
box.addEventListener("compositionend", typed);

const size = () => [...box.value].length;

function begin() {
  clearTimeout(waiting);
  asking.abort();
  asking = new AbortController();
  Object.assign(live, { problem: null, partial: "", isBusy: true, isStopped: false, seconds: 0 });
  clearInterval(clock);
  clock = setInterval(() => { live.seconds += 1; drawStatus(); }, 1000);
  return ++turn;
}

function end(patch) {
  clearInterval(clock);
  Object.assign(live, { isBusy: false, partial: "" }, patch);
  drawAnswer();
}

async function translate() {
  if (!live.model) return;
  const mine = begin(), { signal } = asking, isNow = () => mine === turn, most = live.info.limits.characters;
  const text = box.value;
  if (!text.trim() && !CH.writes(live.model)) return end({ result: null, words: [] });
  if (size() > most) return end({ result: null, words: [], problem: new CH.Refusal("too_long") });
  drawAnswer();
  const partial = (said) => { if (isNow()) { Object.assign(live, { partial: said, problem: null }); drawAnswer(); } },
    tell = (problem) => { if (isNow()) { live.problem = problem; drawAnswer(); } };
  try {
    const asked = CH.question(text, live);
    const answer = await CH.insist(() => CH.stream(...asked, signal, partial), tell, signal);
    if (!isNow()) return;
    const result = CH.resultOf(answer, live);
    end({ result: { ...result, of: text, model: answer.model, seconds: answer.seconds.total }, problem: null,
      words: CH.wordsOf(result.text, result.tokens.target || []) });
    part("heard").textContent = result.text;
    if (CH.looksAt() && live.words.length) lookAt(live.words[0]);
  } catch (problem) {
    if (!isNow()) return;
    if (problem.name === "AbortError") return end({ isStopped: true, problem: null });
    if (!(problem instanceof CH.Refusal)) throw problem;
    if (problem.wantsKey) live.needsKey = true;
    end({ problem, result: null, words: [] });
    if (problem.wantsKey) draw();
  }
}

const sentenceOf = (word) => ({ model: live.result.model.name, ...live.result.tokens.parts[word.part] });
const lookAt = (word) => CH.look(sentenceOf(word), word.step);

function takeExample() {
  if (box.value !== example || document.activeElement === box) return; // somebody has typed, or is about to
  const { source, example: own } = live.model, key = "example." + source;
  example = box.value = own || (CH.hasText(key) ? t(key) : "");
}

async function start() {
  const mine = ++starts, isNow = () => mine === starts;
  const tell = (problem) => { if (isNow()) { live.problem = problem; drawStatus(); } };
  tell(null);
  try {
    const settings = await CH.insist(() => CH.ask("frontend/settings"), tell);
    if (settings.keyRequired && !CH.key()) throw new CH.Refusal("key_needed");
    const info = await CH.insist(async () => {
      const told = await CH.ask("v1/info");
      if (told.models.length) return told;
      throw new CH.Refusal("starting");
    }, tell);
    if (!isNow()) return;
    keyBox.value = "";
    Object.assign(live, { info, model: info.models[0], needsKey: false, problem: null });
  } catch (problem) {
    if (!(problem instanceof CH.Refusal)) throw problem;
    if (!isNow()) return;
    Object.assign(live, { info: null, model: null, needsKey: problem.wantsKey, problem });
    return draw();
  }
  takeExample();
  draw();
  CH.takeEarlyFile();
  if (!CH.writes(live.model)) translate();
}

// -- drawing ---------------------------------------------------------------------------------------------------------

function chooser() {
  const { info, model } = live;
  if (!info) return "";
  if (info.models.length === 1) return el("span", {}, pairOf(model) + " · " + model.name);
  const choices = info.models.map((one) => [one.name, pairOf(one) + " · " + one.name]);
  return CH.choice("model", "live.model", choices, model.name, (name) => {
    live.model = info.models.find((one) => one.name === name);
    asking.abort();
    Object.assign(live, { result: null, words: [] });
    takeExample();
    draw();
    if (!CH.writes(live.model)) translate();
  });
}

const pairOf = (model) => CH.writes(model) ? t("write.task") : nameOf(model.source) + " → " + nameOf(model.target);

function drawTop() {
  const other = language() === "zh" ? "en" : "zh", next = isDark() ? "light" : "dark";
  part("live-top").replaceChildren(el("h1", { class: "brand" }, el("b", {}, "Clearhead")), chooser(),
    CH.controls(CH.button("live-language", other === "zh" ? "中文" : "English", () => CH.choose({ lang: other }),
      { lang: other === "zh" ? "zh-Hans" : "en" }),
    CH.button("live-theme", t("theme." + next), () => CH.choose({ theme: chosenTheme() === "auto" ? next : "auto" })),
    CH.key() && !live.needsKey && CH.button("change-key", t("live.key_change"), () => {
      live.needsKey = true;
      draw();
      part("key").focus();
    })));
}

function keyForm() {
  if (!live.needsKey) return "";
  const take = (event) => {
    event.preventDefault();
    const key = keyBox.value.trim();
    if (!/^[\x21-\x7e]+$/.test(key)) {
      live.problem = new CH.Refusal("invalid_key");
      return drawStatus();
    }
    CH.key(key);
    return start();
  };
  return el("form", { class: "controls", id: "key-form", submit: take }, el("label", { for: "key" }, t("live.key")),
    keyBox,
    el("button", { id: "use-key" }, t("live.key_use")), el("span", { class: "note" }, t("live.key_note")));
}

function frame() {
  const { model } = live, [source, target] = model ? [nameOf(model.source), nameOf(model.target)] : ["…", "…"];
  const isWriter = CH.writes(model);
  box.setAttribute("lang", model ? model.source : "");
  box.setAttribute("placeholder", t("live.placeholder"));
  part("live").replaceChildren(keyForm(), el("div", { class: "pair" },
    el("div", { class: "side" }, el("label", { for: "text", class: "tag" }, isWriter ? t("write.prompt")
      : t("live.from", { name: source })), box, isWriter ? CH.writeControls(live.info.limits) : "",
      el("p", { class: "under" }, el("span", { id: "count", class: "note" }), CH.button("go", "", () =>
        live.isBusy ? asking.abort() : translate()))),
    el("div", { class: "side" }, el("h2", { class: "tag", id: "translation-name" },
      isWriter ? t("write.text") : t("live.to", { name: target })),
      el("div", { id: "translation", role: "group", "aria-labelledby": "translation-name" }),
      el("div", { class: "under" }, el("span", { id: "sureness", class: "note" }),
        navigator.clipboard && CH.button("copy", t("live.copy"), () =>
          navigator.clipboard.writeText(live.result ? live.result.text : ""))))),
    el("p", { id: "status", role: "status" }), el("div", { id: "more" }), el("div", { id: "file", hidden: isWriter }));
}

function drawCount() {
  const most = live.info ? live.info.limits.characters : 0, isOver = most && size() > most;
  part("count").textContent = most ? t("live.count", { n: CH.count(size()), of: CH.count(most) }) : "";
  part("count").classList.toggle("bad", Boolean(isOver));
}

function drawStatus() {
  const { problem, isBusy, isStopped, seconds, result } = live, status = part("status");
  status.classList.toggle("bad", Boolean(problem));
  const busy = CH.writes(live.model) ? t("write.busy") : t("live.busy");
  status.textContent = problem ? problem.words : isBusy ? busy + (seconds ? t("live.busy_for", { n: seconds }) : "")
    : isStopped ? t("live.stopped") : result ? t("live.done", { seconds: CH.num(result.seconds) })
    : live.info ? "" : t("live.connecting");
  part("live").classList.toggle("busy", isBusy);
}

// All words are one stop of the Tab key; the arrows go from one to the next
function drawWords(root) {
  const { result, words, model } = live;
  if (CH.writes(model)) return root.replaceChildren(...CH.writtenNodes(result.text, result.prompt, model.target));
  root.replaceChildren(...CH.wordNodes(result.text, words, model.target));
  const spans = [...root.querySelectorAll(".word")], press = (event) => {
    const at = spans.indexOf(event.target.closest(".word"));
    if (at < 0 || (event.key && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    lookAt(words[at]);
    CH.bringLook();
  };
  spans.forEach((span) => { span.addEventListener("click", press); span.addEventListener("keydown", press); });
  if (!root.dataset.roving) CH.roving(root, ".word", 0, (at) => { if (CH.looksAt()) lookAt(live.words[at]); });
  root.dataset.roving = "yes";
  spans.forEach((span, i) => span.setAttribute("tabindex", i === 0 ? 0 : -1));
}

function alternatives() {
  const { result } = live, { parts } = result.tokens;
  const look = (text, i) => parts.length === 1 && CH.button("look-" + i, t("live.look"), () =>
    {
    CH.look({ model: result.model.name, source: parts[0].source, target: text }, 0);
    CH.bringLook();
  }, { class: "link" });
  return [el("h2", { class: "tag" }, t("live.others")), el("ol", { id: "alternatives" }, result.alternatives.map(
    (one, i) => el("li", {}, el("span", { lang: live.model.target }, one.text),
      el("em", {}, t("beam.final", { score: CH.num(one.score) })), look(one.text, i))))];
}

const percent = (share) => Math.round(100 * share) + " %";

function drawMore() {
  const { result } = live, told = (word) => CH.hasText("warning." + word) ? t("warning." + word) : word;
  part("sureness").replaceChildren(...(result && live.words.length ? [CH.sureLegend(),
    result.confidence === null ? "" : t("live.confidence", { share: percent(result.confidence) })] : []));
  part("more").replaceChildren(...(!result ? [] : [
    result.warnings.length ? el("ul", { id: "warnings" }, result.warnings.map((word) => el("li",
      { class: HARMLESS.includes(word) ? "note" : null }, told(word)))) : "",
    ...(CH.writes(live.model) ? CH.writtenMore(result) : []),
    live.words.length ? CH.note("live.press") : "", ...(result.alternatives.length ? alternatives() : [])]));
}

function drawAnswer() {
  const root = part("translation"), { isBusy, partial, result } = live;
  root.setAttribute("aria-busy", isBusy);
  root.setAttribute("lang", live.model ? live.model.target : "");
  root.classList.toggle("stale", isBusy && !partial);
  root.dataset.of = isBusy || !result ? "" : result.of; // the text that this is the translation of
  part("go").textContent = isBusy ? t("live.stop") : CH.writes(live.model) ? t("write.go") : t("live.go");
  if (isBusy) {
    if (partial) root.replaceChildren(...CH.writtenNodes(partial, CH.writes(live.model) ? box.value : ""));
  } else {
    if (result) drawWords(root);
    else root.replaceChildren();
    drawMore();
    mark();
  }
  drawStatus();
}

// The word of the translation that the views look at
function mark() {
  const seen = CH.looksAt(), { step } = CH.state || {};
  live.words.forEach((word, i) => {
    const { source, target } = sentenceOf(word), isSeen = seen && seen.source === source && seen.target === target
      && CH.state.trace === 0 && word.step <= step && step <= word.last;
    part("word-" + i)?.setAttribute("aria-pressed", Boolean(isSeen));
  });
}

// Everything anew; the keyboard's focus stays where it was
CH.redraw = draw;
function draw() {
  const active = document.activeElement?.id;
  drawnFor = language() + chosenTheme();
  CH.useTexts(CH.strings[language()]);
  document.documentElement.lang = language() === "zh" ? "zh-Hans" : "en";
  document.documentElement.dataset.theme = chosenTheme();
  drawTop();
  frame();
  drawCount();
  drawAnswer();
  CH.drawFile();
  CH.drawLook();
  if (active) part(active)?.focus({ preventScroll: true });
}

const changed = CH.changed;
CH.changed = function (onlyFocus) {
  if (CH.traces.length) changed(onlyFocus);
  if (drawnFor !== language() + chosenTheme()) draw();
  else mark();
};
addEventListener("hashchange", () => { if (drawnFor !== language() + chosenTheme()) draw(); });

// The report's page becomes the lower half of this one
document.querySelector("main").prepend(el("section", { id: "live" }),
  el("p", { id: "heard", role: "status", "aria-live": "polite" }), el("section", { id: "look", hidden: true },
    el("div", { class: "bar" }, el("div", { id: "look-head" }), part("top")), part("opening"), part("tabs"),
    part("view")));
document.body.prepend(el("header", { id: "live-top" }));
draw();
start();
})(window.CH = window.CH || {});
