/* The page: its head, the tabs, the keys, and drawing again whatever a change concerns. */
(function (CH) {
  "use strict";

  const views = { flow: CH.flow, heads: CH.headsGrid, head: CH.head, steps: CH.steps, positions: CH.positions, decoding: CH.decoding, compare: CH.compare, health: CH.health };
  const KEYS = [["[ ]", "layer"], [", .", "head"], ["1 2 3", "kind"], ["m", "mode"], ["s", "steps"], ["Space", "next"], ["e", "export"], ["← ↑ → ↓", "arrows"], ["Enter", "enter"], ["?", "help"]];
  const part = (id) => document.getElementById(id);
  const pictures = []; // [node, draw] of every canvas on the page
  let focusOpening = () => {}, focusView = () => {};

  /** Canvases do not follow the theme by themselves. */
  CH.onRedraw = (node, draw) => pictures.push([node, draw]);

  function redraw() {
    for (const [node, draw] of pictures) if (node.isConnected) draw();
  }

  /** Build a part anew, and leave the keyboard's focus where it was. */
  function rebuild(build) {
    const id = document.activeElement && document.activeElement.id;
    build();
    const same = id && document.getElementById(id);
    if (same && document.activeElement !== same) same.focus({ preventScroll: true });
  }

  function drawTop() {
    const { lang, theme, trace } = CH.state, other = lang === "zh" ? "en" : "zh", next = CH.theme() === "dark" ? "light" : "dark";
    const chosen = CH.traces.length > 1 ? CH.choice("trace", "choose.trace", CH.traces.map((one, i) => [i, (i + 1) + "  " + one.source.text.slice(0, 40)]), trace, (i) => CH.set({ trace: Number(i), step: 0, place: 0, key: -1, picked: [] })) : null;
    part("top").replaceChildren(CH.el("p", { class: "brand" }, CH.el("b", {}, "Clearhead"), " ", CH.trace().model.name), CH.el("div", { class: "controls" }, chosen,
      CH.el("button", { type: "button", id: "language", lang: other, click: () => CH.set({ lang: other }) }, other === "zh" ? "中文" : "English"),
      CH.el("button", { type: "button", id: "theme", click: () => CH.set({ theme: theme === next ? "auto" : next }) }, CH.t("theme." + next)), CH.button("help", "choose.keys", openKeys)));
    part("made").replaceChildren(CH.el("p", {}, CH.t("made.by", { tool: CH.trace().tool, time: CH.trace().made })), CH.el("p", {}, CH.el("code", {}, CH.trace().command)));
  }

  function drawTabs() {
    const list = CH.el("div", { role: "tablist", "aria-label": CH.t("tab.label") }, CH.VIEWS.map((view) => CH.el("button", { type: "button", role: "tab", id: "tab-" + view, "aria-selected": String(view === CH.state.view), "aria-controls": "view", click: () => CH.set({ view }) }, CH.t("tab." + view))));
    CH.roving(list, "[role=tab]", CH.VIEWS.indexOf(CH.state.view), (i) => CH.set({ view: CH.VIEWS[i] }));
    part("tabs").replaceChildren(list);
    const [selected, strip] = [part("tab-" + CH.state.view), list];
    strip.scrollLeft = selected.offsetLeft - (strip.clientWidth - selected.offsetWidth) / 2;
  }

  function drawView() {
    const root = part("view");
    pictures.length = 0;
    root.replaceChildren();
    root.className = "view-" + CH.state.view;
    root.setAttribute("aria-labelledby", "tab-" + CH.state.view);
    focusView = views[CH.state.view](root) || (() => {});
  }

  function draw() {
    const { lang, theme } = CH.state;
    CH.useTexts(CH.strings[lang]);
    document.documentElement.lang = lang === "zh" ? "zh-Hans" : "en";
    document.documentElement.dataset.theme = theme;
    document.title = CH.trace().source.text + " → " + CH.trace().target.text + " · Clearhead";
    rebuild(() => { drawTop(); focusOpening = CH.opening(part("opening")); drawTabs(); drawView(); });
  }

  function openKeys() {
    part("keys").replaceChildren(CH.el("h2", {}, CH.t("choose.keys")), CH.el("dl", {}, KEYS.flatMap(([keys, name]) => [CH.el("dt", {}, keys.split(" ").map((key) => CH.el("kbd", {}, key))), CH.el("dd", {}, CH.t("key." + name))])),
      CH.button("close-keys", "choose.close", () => part("keys").close()));
    part("keys").showModal();
  }

  /** The one before or after in a list. */
  const beside = (list, value, by) => list[CH.clamp(list.indexOf(value) + by, 0, list.length - 1)];

  function pressed(event) {
    const { target, key } = event, { kind, layer, head, mode } = CH.state, trace = CH.trace(), layers = CH.layers(trace, kind), kinds = CH.kinds(trace);
    if (event.ctrlKey || event.metaKey || event.altKey || part("keys").open || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    const of = (name) => kinds.includes(name) ? { kind: name } : {};
    if (key === " " && !target.closest("button, summary, [role=button]")) CH.nextStep();
    else if (key === "[" || key === "]") CH.set({ layer: beside(layers, layer, key === "[" ? -1 : 1) });
    else if (key === "," || key === ".") CH.set({ head: head + (key === "," ? -1 : 1) });
    else if (key === "1" || key === "2" || key === "3") CH.set(of(["encoder", "decoder", "cross"][key - 1]));
    else if (key === "m") CH.set({ view: "head", mode: mode === "matrix" ? "lines" : "matrix" });
    else if (key === "s") CH.set({ view: "steps" });
    else if (key === "e") CH.exportHead();
    else if (key === "?") openKeys();
    else return;
    event.preventDefault();
  }

  /** Begin again with the traces there are; a page that waits for its first trace shows nothing yet. */
  CH.restart = function () {
    if (!CH.traces.length) return;
    CH.readHash();
    draw();
  };

  CH.onChange((onlyFocus) => {
    if (!onlyFocus) return draw();
    focusOpening();
    focusView();
  });
  document.addEventListener("keydown", pressed);
  addEventListener("hashchange", CH.restart);
  for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", redraw);
  CH.restart();
})(window.CH = window.CH || {});
