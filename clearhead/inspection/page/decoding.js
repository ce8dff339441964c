/* Decoding: what could have been written at each step, and what was read for it. */
(function (CH) {
  "use strict";

  /** All words written, each as likely as its shade; choosing one goes to its step. */
  function strip(trace, chosen) {
    const row = CH.el("div", { class: "strip", role: "listbox", "aria-label": CH.t("decoding.strip") }, trace.steps.map((step, r) => {
      const p = Math.exp(step.logp), rgb = CH.ramp(p);
      return CH.el("span", { role: "option", lang: trace.target.lang, click: () => chosen(r), title: "p = " + CH.prob(p), style: { background: CH.css(rgb), color: CH.inkOn(rgb) } }, CH.tokenText(trace.target.tokens[step.t]));
    }));
    CH.roving(row, "span", CH.state.step, chosen);
    return row;
  }

  /** The likeliest words of a step; what they leave of the probability is said too. */
  function candidates(trace, step) {
    const items = step.top.map(([id, logp], i) => ({ text: step.top_text[i], lang: trace.target.lang, value: Math.exp(logp), shown: CH.prob(Math.exp(logp)), strong: id === step.chosen }));
    if (!step.top.some(([id]) => id === step.chosen)) items.push({ text: CH.tokenText(trace.target.tokens[step.t]), value: Math.exp(step.logp), shown: CH.prob(Math.exp(step.logp)), strong: true });
    const others = Math.max(0, 1 - CH.sum(items.map((one) => one.value)));
    return CH.bars([...items, { text: CH.t("decoding.others", { n: CH.count(trace.model.vocabulary - items.length) }), value: others, shown: CH.prob(others), faint: true }], { most: 1, label: CH.t("decoding.candidates") });
  }

  /** What was read (attention), and what mattered (occlusion), source word by source word. */
  function reading(trace, row) {
    const source = trace.source.tokens.map((token) => ({ text: CH.tokenText(token), lang: trace.source.lang })), found = [];
    const head = CH.state.kind === "cross" ? CH.state : trace.alignment;
    if (head && CH.kinds(trace).includes("cross")) {
      const weights = CH.weightRow(CH.weights(trace, "cross", head.layer, head.head), row), best = CH.argmax(weights);
      found.push(CH.el("div", {}, CH.part("decoding.read", { layer: head.layer + 1, head: head.head + 1 }), CH.bars(source.map((one, c) => ({ ...one, value: weights[c], shown: CH.prob(weights[c]), strong: c === best })), { most: 1, label: CH.t("decoding.read", { layer: head.layer + 1, head: head.head + 1 }) })));
    }
    if (trace.occlusion) {
      const all = CH.values(trace.occlusion), change = CH.row(trace.occlusion, row), best = CH.argmax(change.map((one) => -one));
      found.push(CH.el("div", {}, CH.part("decoding.occlusion"), CH.bars(source.map((one, c) => ({ ...one, value: change[c], shown: CH.num(change[c]), strong: c === best })), { least: Math.min(...all), most: Math.max(0, ...all), label: CH.t("decoding.occlusion") }), CH.note("decoding.occlusion_note")));
    }
    return found;
  }

  CH.decoding = function (root) {
    const trace = CH.trace(), last = trace.steps.length - 1, body = CH.el("div", { class: "columns thirds" }), line = CH.el("p", { class: "lead" });
    const go = (step) => CH.set({ step, key: -1, side: "target" });
    const slider = CH.el("input", { type: "range", id: "step", min: 1, max: last + 1, value: CH.state.step + 1, "aria-label": CH.t("decoding.step"), input: (event) => go(Number(event.target.value) - 1) });
    const words = strip(trace, go);
    root.append(CH.title("tab.decoding"), CH.say(trace.target.forced ? "decoding.say_forced" : "decoding.say"), CH.el("div", { class: "scroll" }, words),
      CH.el("div", { class: "controls" }, CH.el("label", { class: "choice wide" }, CH.el("span", {}, CH.t("decoding.step")), slider), CH.button("next-step", "decoding.next", CH.nextStep)), line, body, ...CH.beam(trace));
    let drawn = -1;
    const draw = () => {
      if (drawn === CH.state.step) return;
      drawn = CH.state.step;
      const step = trace.steps[drawn];
      slider.value = drawn + 1;
      words.querySelectorAll("span").forEach((one, r) => one.setAttribute("aria-selected", String(r === drawn)));
      line.replaceChildren(...CH.tn("decoding.line", { n: drawn + 1, of: last + 1, word: CH.word(trace.target.tokens[step.t], trace.target.lang), p: CH.prob(Math.exp(step.logp)), logp: CH.num(step.logp), entropy: CH.num(step.entropy), choices: CH.num(Math.exp(step.entropy), 1) }),
        ...(typeof step.source_contrib === "number" ? [" ", CH.t("decoding.contribution", { share: CH.num(step.source_contrib) })] : []));
      body.replaceChildren(CH.el("div", {}, CH.part("decoding.candidates"), candidates(trace, step)), ...reading(trace, drawn));
    };
    draw();
    return draw;
  };

  /** The next word; after the last the first again. */
  CH.nextStep = () => CH.set({ step: (CH.state.step + 1) % CH.trace().steps.length, key: -1, side: "target" });
})(window.CH = window.CH || {});
