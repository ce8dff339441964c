/* Elements, texts and numbers. Text only ever becomes text, never HTML. */
(function (CH) {
"use strict";

let texts = {};

// The views by name: each fills an element, and may return what to do when only the focus changes
CH.views = {};

// Attributes that are functions listen ("click"), `style` is an object; null and false are left out
function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if ((value ?? false) === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "style") for (const key in value) node.style.setProperty(key, value[key]);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  const shown = children.flat(Infinity).filter((one) => (one ?? false) !== false);
  node.append(...shown.map((one) => one.nodeType ? one : String(one)));
  return node;
}

const el = CH.el = (tag, attributes, ...children) => furnish(document.createElement(tag), attributes, children);

CH.svg = (tag, attributes, ...children) =>
  furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

CH.text = (x, y, kind, ...text) => CH.svg("text", { x, y, class: kind }, text);

// The texts of one language, in groups; both languages have the same
CH.useTexts = (ofLanguage) => { texts = ofLanguage; };

// Whether there is a text for "group.name": names that come from the data may be new
CH.hasText = (key) => Object.hasOwn(texts[key.split(".")[0]], key.split(".")[1]);

// The text of "group.name" as strings and nodes, its {names} replaced
const tn = CH.tn = function (key, values) {
  if (!CH.hasText(key)) throw new Error("no text for " + key);
  const text = texts[key.split(".")[0]][key.split(".")[1]];
  return text.split(/\{(\w+)\}/).map((part, i) => i % 2 ? values[part] : part).filter((part) => part !== "");
};

const t = CH.t = (key, values) => tn(key, values).map((part) => part.nodeType ? part.textContent : part).join("");

CH.num = (value, places = 2) => Math.abs(value) < 0.5 * 10 ** -places ? (0).toFixed(places) : value.toFixed(places);

CH.tiny = (value) => value === 0 ? "0" : value.toExponential(0);

// A probability: a small one is not 0.00
CH.prob = (value) => value > 0 && value < 0.005 ? "<0.01" : value.toFixed(2);

// 60500000 as 60 500 000, with spaces that do not break
CH.count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");

CH.clamp = (value, low, high) => Math.max(low, Math.min(high, value));
CH.range = (n) => Array.from({ length: n }, (_, i) => i);
CH.sum = (values) => { let total = 0; for (const value of values) total += value; return total; };
CH.mean = (values) => CH.sum(values) / values.length;

// The largest of many values, or `least`; spreading them into Math.max would overflow
CH.most = (values, least = 1e-9) => { for (const value of values) if (value > least) least = value; return least; };

CH.ranked = (values) => CH.range(values.length).sort((a, b) => values[b] - values[a] || a - b);
CH.argmax = (values) => CH.ranked(values)[0];

/**
 * One stop of the Tab key for a group of elements, at first `start`, and the arrow keys inside.
 * @param {(index: number) => void} chosen hears where the focus goes
 */
CH.roving = function (group, selector, start, chosen) {
  const members = () => [...group.querySelectorAll(selector)];
  const stop = (at) => members().forEach((one, i) => one.setAttribute("tabindex", i === at ? 0 : -1));
  stop(start);
  group.addEventListener("keydown", (event) => {
    const all = members(), at = all.indexOf(event.target), end = all.length - 1;
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0,
      End: end }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = CH.clamp(to, 0, end);
    stop(next);
    all[next].focus();
    chosen(next);
  });
};

CH.check = (id, key, checked, change) => el("label", { class: "check" },
  el("input", { type: "checkbox", id, checked, change: (event) => change(event.target.checked) }), t(key));

// A list to choose from: pairs of value and text
CH.choice = (id, key, choices, value, change) => el("label", { class: "choice" }, el("span", {}, t(key)),
  el("select", { id, change: (event) => change(event.target.value) },
    choices.map(([each, text]) => el("option", { value: each, selected: String(each) === String(value) }, text))));

// A few buttons of which one is pressed: pairs of value and text
CH.segments = (id, key, choices, value, change) => el("div", { class: "segments", role: "group", "aria-label": t(key) },
  choices.map(([each, text]) => CH.button(id + "-" + each, text, () => change(each),
    { "aria-pressed": String(each === value) })));

CH.button = (id, text, click, more) => el("button", { type: "button", id, click, ...more }, text);
CH.controls = (...children) => el("div", { class: "controls" }, children);
CH.part = (key, values) => el("h3", {}, t(key, values));
CH.say = (key, values) => el("p", { class: "say" }, tn(key, values));
CH.note = (key, values) => el("p", { class: "note" }, tn(key, values));
CH.bold = (text, lang) => el("b", { lang, class: "token" }, text);
})(window.CH = window.CH || {});
