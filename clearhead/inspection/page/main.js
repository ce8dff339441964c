/* The page's head, tabs and keys, and drawing again what a change concerns. */
(function (CH) {
"use strict";

const { el, set, t } = CH;
const KEYS = { "[ ]": "layer", ", .": "head", "1 2 3": "kind", m: "mode", s: "steps", Space: "next", e: "export",
  "← ↑ → ↓": "arrows", Enter: "enter", "?": "help" };
const part = (id) => document.getElementById(id);
let focusOpening, focusView;

function drawTop(trace) {
  const { lang, theme } = CH.state, other = lang === "zh" ? "en" : "zh", next = CH.theme() === "dark" ? "light"
    : "dark";
  const sentences = CH.traces.map((one, i) => [i, (i + 1) + "  " + one.source.text.slice(0, 40)]);
  part("top").replaceChildren(el("p", { class: "brand" }, el("b", {}, "Clearhead"), trace.model.name),
    CH.controls(CH.traces.length > 1 && CH.choice("trace", "choose.trace", sentences, CH.state.trace,
      (i) => set({ trace: Number(i), step: 0, place: 0, key: -1, picked: [] })),
      CH.button("language", other === "zh" ? "中文" : "English", () => set({ lang: other }), { lang: other }),
      CH.button("theme", t("theme." + next), () => set({ theme: theme === "auto" ? next : "auto" })),
        CH.button("help", t("choose.keys"), openKeys)));
  part("made").replaceChildren(el("p", {}, t("made.by", { tool: trace.tool, time: trace.made })),
    el("code", {}, trace.command));
}

function drawTabs() {
  const { view } = CH.state, names = Object.keys(CH.views), at = names.indexOf(view),
    tab = (name) => CH.button("tab-" + name, t("tab." + name), () => set({ view: name }),
    { role: "tab", "aria-selected": String(name === view), "aria-controls": "view" });
  const list = el("div", { role: "tablist", "aria-label": t("tab.label") }, names.map(tab)),
    selected = list.children[at];
  CH.roving(list, "[role=tab]", at, (i) => set({ view: names[i] }));
  part("tabs").replaceChildren(list);
  list.scrollLeft = selected.offsetLeft - (list.clientWidth - selected.offsetWidth) / 2;
}

function drawView(trace) {
  const { view } = CH.state, root = part("view");
  CH.pictures = []; // what draws the canvases of this view, once they have their place
  root.replaceChildren(el("h2", {}, t("tab." + view)));
  root.setAttribute("aria-labelledby", "tab-" + view);
  if (/^heads?$/.test(view) && !CH.kinds(trace).length) root.append(CH.say("say.none"));
  else focusView = CH.views[view](root, trace);
  CH.pictures.forEach((paint) => paint());
}

// Everything anew; the keyboard's focus stays where it was
function draw() {
  if (!CH.traces.length) return; // a page that waits for its first trace
  const trace = CH.trace(), { lang, theme } = CH.state, active = document.activeElement?.id;
  CH.useTexts(CH.strings[lang]);
  CH.useTheme();
  document.documentElement.lang = lang === "zh" ? "zh-Hans" : "en";
  document.documentElement.dataset.theme = theme;
  document.title = trace.source.text + " → " + trace.target.text + " · Clearhead";
  focusView = null;
  drawTop(trace);
  focusOpening = CH.opening(part("opening"));
  drawTabs();
  drawView(trace);
  if (active) part(active)?.focus({ preventScroll: true });
}

function openKeys() {
  const line = ([keys, name]) => [el("dt", {}, keys.split(" ").map((key) => el("kbd", {}, key))),
    el("dd", {}, t("key." + name))];
  part("keys").replaceChildren(el("h2", {}, t("choose.keys")), el("dl", {}, Object.entries(KEYS).map(line)),
    CH.button("close-keys", t("choose.close"), () => part("keys").close()));
  part("keys").showModal();
}

function meaning(key) {
  const { kind, layer, head, mode } = CH.state, trace = CH.trace(), layers = CH.layers(trace, kind),
    beside = (by) => set({ layer: layers[CH.clamp(layers.indexOf(layer) + by, 0, layers.length - 1)] });
  return { "[": () => beside(-1), "]": () => beside(1), ",": () => set({ head: head - 1 }),
    ".": () => set({ head: head + 1 }), 1: () => set({ kind: "encoder" }), 2: () => set({ kind: "decoder" }),
    3: () => set({ kind: "cross" }), m: () => set({ view: "head", mode: mode === "matrix" ? "lines" : "matrix" }),
    s: () => set({ view: "steps" }), " ": CH.nextStep, e: CH.exportHead, "?": openKeys }[key];
}

document.addEventListener("keydown", (event) => {
  const { target, key } = event, act = CH.state && meaning(key);
  if (!act || event.ctrlKey || event.metaKey || event.altKey || part("keys").open
    || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  if (key === " " && target.closest("button, summary, [role=button]")) return;
  event.preventDefault();
  act();
});

// Begin again with the traces there are
CH.restart = function () {
  if (CH.traces.length) CH.readHash();
  draw();
};

CH.changed = function (onlyFocus) {
  if (!onlyFocus) return draw();
  focusOpening();
  focusView?.();
};

// Canvases do not follow the theme by themselves
for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", draw);
addEventListener("hashchange", CH.restart);
CH.restart();
})(window.CH = window.CH || {});
