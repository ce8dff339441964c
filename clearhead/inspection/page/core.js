/* Elements, texts and numbers: what every other file builds on. Text only ever becomes text, never HTML. */
(function (CH) {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  let texts = {};

  /**
   * Give a node its attributes and children. Attributes that are functions listen ("click"), `style` is an object.
   * @param {Element} node
   * @param {Object<string, *>} attributes
   * @param {Array<Node|string|number|null|Array>} children
   */
  function furnish(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") node.addEventListener(name, value);
      else if (name === "style") for (const key in value) node.style.setProperty(key, value[key]);
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat().filter((one) => one !== null && one !== undefined).map((one) => one.nodeType ? one : String(one)));
    return node;
  }

  /** An HTML element. */
  CH.el = (tag, attributes, ...children) => furnish(document.createElement(tag), attributes, children);

  /** An SVG element. */
  CH.svg = (tag, attributes, ...children) => furnish(document.createElementNS(SVG, tag), attributes, children);

  /** The texts of one language; both languages have the same keys. */
  CH.useTexts = (ofLanguage) => { texts = ofLanguage; };

  /** The text of a key, its {names} replaced. */
  CH.t = (key, values) => CH.tn(key, values).map((part) => part.nodeType ? part.textContent : part).join("");

  /** The same as a list of strings and nodes, so that values can be elements. */
  CH.tn = function (key, values) {
    if (!(key in texts)) throw new Error("no text for " + key);
    return texts[key].split(/\{(\w+)\}/).map((part, i) => i % 2 ? values[part] : part).filter((part) => part !== "");
  };

  /** Whether there is a text for this key: names that come from the data may be new. */
  CH.hasText = (key) => key in texts;

  /** A number for reading: two places, or what is given. */
  CH.num = (value, places = 2) => Math.abs(value) < 0.5 * 10 ** -places ? (0).toFixed(places) : value.toFixed(places);

  /** A small difference: 2e-7, or 0. */
  CH.tiny = (value) => value === 0 ? "0" : value.toExponential(0);

  /** A probability: small ones are said to be small instead of 0.00. */
  CH.prob = (value) => value > 0 && value < 0.005 ? "<0.01" : value.toFixed(2);

  /** 60500000 as 60 500 000, with spaces that do not break. */
  CH.count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  CH.clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  CH.range = (n) => Array.from({ length: n }, (_, i) => i);
  CH.sum = (values) => { let total = 0; for (const value of values) total += value; return total; };
  CH.mean = (values) => CH.sum(values) / values.length;

  /** Where the largest value is. */
  CH.argmax = function (values) {
    let best = 0;
    for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
    return best;
  };

  /** Indices from the largest value down. */
  CH.ranked = (values) => CH.range(values.length).sort((a, b) => values[b] - values[a] || a - b);

  /**
   * One stop of the Tab key for a group, the arrow keys inside it; what has the focus is passed to `chosen`.
   * @param {Element} group
   * @param {string} selector of its members
   * @param {number} start the member that Tab reaches
   * @param {(index: number) => void} chosen
   */
  CH.roving = function (group, selector, start, chosen) {
    const members = () => [...group.querySelectorAll(selector)];
    members().forEach((one, i) => one.setAttribute("tabindex", i === start ? 0 : -1));
    group.addEventListener("keydown", (event) => {
      const all = members(), at = all.indexOf(event.target);
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const next = all[CH.clamp(to, 0, all.length - 1)];
      all.forEach((one) => one.setAttribute("tabindex", one === next ? 0 : -1));
      next.focus();
      chosen(all.indexOf(next));
    });
  };

  /** A switch with a label. */
  CH.check = (id, key, checked, change) => CH.el("label", { class: "check" },
    CH.el("input", { type: "checkbox", id, checked, change: (event) => change(event.target.checked) }), CH.t(key));

  /** A list to choose from. @param {Array<[string|number, string]>} choices value and text */
  CH.choice = (id, key, choices, value, change) => CH.el("label", { class: "choice" }, CH.el("span", {}, CH.t(key)),
    CH.el("select", { id, change: (event) => change(event.target.value) },
      choices.map(([each, text]) => CH.el("option", { value: each, selected: String(each) === String(value) }, text))));

  /** A few buttons of which one is pressed. @param {Array<[string, string]>} choices value and text */
  CH.segments = (id, label, choices, value, change) => CH.el("div", { class: "segments", role: "group", "aria-label": label },
    choices.map(([each, text]) => CH.el("button", { type: "button", id: id + "-" + each, "aria-pressed": String(each === value), click: () => change(each) }, text)));

  CH.button = (id, key, click) => CH.el("button", { type: "button", id, click }, CH.t(key));
  CH.title = (key, ...more) => CH.el("h2", {}, CH.t(key), ...more);
  CH.part = (key, values) => CH.el("h3", {}, CH.t(key, values));
  CH.say = (key, values) => CH.el("p", { class: "say" }, CH.tn(key, values));
  CH.note = (key, values) => CH.el("p", { class: "note" }, CH.tn(key, values));
})(window.CH = window.CH || {});
