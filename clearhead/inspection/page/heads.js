/* All heads of one kind side by side, each as a small picture, on one canvas. */
(function (CH) {
  "use strict";

  const GAP = 14, LEFT = 64, TOP = 26, FOOT = 36;
  const MEASURES = ["align_score", "entropy", "distance", "special_mass", "coverage", "ablate_dlogp"];

  /** The measures that these heads have. */
  CH.measures = (trace, kind) => MEASURES.filter((by) => trace.stats.some((one) => one.kind === kind && typeof one[by] === "number"));

  /** A head's maps in pixels: one pixel a weight, each row against its largest. */
  function thumbnail(weights) {
    const small = document.createElement("canvas");
    [small.width, small.height] = [weights.cols, weights.rows];
    const context = small.getContext("2d"), image = context.createImageData(weights.cols, weights.rows);
    for (let r = 0; r < weights.rows; r++) {
      const row = CH.weightRow(weights, r), most = Math.max(...row) || 1;
      row.forEach((weight, c) => image.data.set([...CH.ramp(weight / most), 255], 4 * (r * weights.cols + c)));
    }
    context.putImageData(image, 0, 0);
    return small;
  }

  /** The heads in rows and columns: by layer, or the largest measure first. */
  function arranged(trace, kind, by, sort) {
    const all = CH.layers(trace, kind).flatMap((layer) => CH.range(CH.heads(trace, kind)).map((head) => ({ layer, head, stats: CH.statistics(trace, kind, layer, head) })));
    const cols = CH.heads(trace, kind);
    if (sort) all.sort((a, b) => (b.stats[by] ?? -Infinity) - (a.stats[by] ?? -Infinity));
    return CH.range(Math.ceil(all.length / cols)).map((r) => all.slice(r * cols, (r + 1) * cols));
  }

  const pattern = (stats) => stats.pattern ? CH.hasText("pattern." + stats.pattern) ? CH.t("pattern." + stats.pattern) : stats.pattern : "";

  /** A measure between 0 and 1 among all heads shown, for its colour. */
  function shade(rows, by) {
    const values = rows.flat().map((one) => one.stats[by]).filter((value) => typeof value === "number"), low = Math.min(...values), high = Math.max(...values);
    return (value) => typeof value === "number" ? (value - low) / (high - low || 1) : 0;
  }

  function draw(canvas, width, focus, { trace, kind, rows, by, sort, places }) {
    const cols = rows[0].length, size = CH.clamp(Math.floor((width - LEFT) / cols) - GAP, 56, 128), high = size + FOOT;
    const context = CH.sized(canvas, LEFT + cols * (size + GAP), TOP + rows.length * (high + GAP));
    const tint = shade(rows, by), font = context.font;
    context.imageSmoothingEnabled = false;
    places.length = 0;
    rows.forEach((row, r) => row.forEach((one, c) => {
      const x = LEFT + c * (size + GAP), y = TOP + r * (high + GAP), isHere = one.layer === CH.state.layer && one.head === CH.state.head;
      const value = one.stats[by], rgb = CH.ramp(tint(value));
      places.push([x, y, size, high, r, c]);
      context.drawImage(thumbnail(CH.weights(trace, kind, one.layer, one.head)), x, y, size, size);
      context.fillStyle = CH.css(rgb);
      context.fillRect(x, y + size + 4, size, 15);
      context.font = font.replace("13px", "11px");
      context.textAlign = "center";
      context.fillStyle = CH.inkOn(rgb);
      context.fillText((sort ? (one.layer + 1) + "·" + (one.head + 1) + "  " : "") + (typeof value === "number" ? CH.num(value) : "–"), x + size / 2, y + size + 12);
      context.fillStyle = CH.colour("muted");
      context.fillText(CH.fitted(context, pattern(one.stats), size), x + size / 2, y + size + 28);
      const isFocus = r === focus[0] && c === focus[1];
      context.strokeStyle = CH.colour(isHere || isFocus ? "accent" : "line");
      context.lineWidth = isHere ? 3 : isFocus ? 2 : 1;
      context.strokeRect(x - 1, y - 1, size + 2, size + 2);
    }));
    if (sort) return;
    context.font = font;
    context.fillStyle = CH.colour("muted");
    rows[0].forEach((one, c) => context.fillText(CH.t("heads.head", { n: one.head + 1 }), LEFT + c * (size + GAP) + size / 2, 12));
    context.textAlign = "left";
    rows.forEach((row, r) => context.fillText(CH.t("heads.layer", { n: row[0].layer + 1 }), 0, TOP + r * (high + GAP) + size / 2));
  }

  /** The three kinds as buttons; the trace may not have all of them. */
  CH.kindChoice = (id, trace) => CH.segments(id, CH.t("choose.kind"), CH.kinds(trace).map((kind) => [kind, CH.t("kind." + kind)]), CH.state.kind, (kind) => CH.set({ kind }));

  CH.headsGrid = function (root) {
    const trace = CH.trace(), { kind, sort } = CH.state, measures = CH.measures(trace, kind);
    if (!CH.kinds(trace).length) return void root.append(CH.title("tab.heads"), CH.say("say.none"));
    const by = measures.includes(CH.state.by) ? CH.state.by : measures[0] || "entropy";
    const rows = arranged(trace, kind, by, sort), places = [], picture = { trace, kind, rows, by, sort, places };
    const start = rows.findIndex((row) => row.some((one) => one.layer === CH.state.layer && one.head === CH.state.head));
    let at = [start, rows[start].findIndex((one) => one.layer === CH.state.layer && one.head === CH.state.head)];
    const caption = CH.el("p", { class: "say", id: "heads-value" });
    const name = (one) => CH.t("head.name", { kind: CH.t("kind." + kind), layer: one.layer + 1, head: one.head + 1 });
    const describe = (one) => name(one) + CH.t("list.colon") + [pattern(one.stats), ...measures.map((measure) => CH.t("measure." + measure) + " " + CH.num(one.stats[measure]))].filter(Boolean).join(CH.t("list.comma"));
    const cell = (r, c) => rows[r][c];
    const show = (r, c) => { if (!cell(r, c)) return; at = [r, c]; caption.textContent = describe(cell(r, c)); grid.focus(r, c); };
    const grid = CH.grid({ id: "heads-table", label: CH.t("heads.label", { kind: CH.t("kind." + kind), measure: CH.t("measure." + by) }), rows: rows.length, cols: rows[0].length, focus: at,
      rowText: (r) => sort ? String(r + 1) : CH.t("heads.layer", { n: rows[r][0].layer + 1 }), colText: (c) => sort ? String(c + 1) : CH.t("heads.head", { n: c + 1 }),
      text: (r, c) => cell(r, c) ? (sort ? (cell(r, c).layer + 1) + "·" + (cell(r, c).head + 1) + " " : "") + (typeof cell(r, c).stats[by] === "number" ? CH.num(cell(r, c).stats[by], 3) : "–") + " " + pattern(cell(r, c).stats) : "",
      draw: (canvas, width, focus) => draw(canvas, width, focus, picture), onFocus: show, onPick: (r, c) => { if (cell(r, c)) CH.set({ layer: cell(r, c).layer, head: cell(r, c).head, view: "head" }); },
      locate: (x, y) => places.find((one) => x >= one[0] && x < one[0] + one[2] && y >= one[1] && y < one[1] + one[3])?.slice(4) });
    root.append(CH.title("tab.heads"), CH.say("heads.say"), CH.el("div", { class: "controls" }, CH.kindChoice("heads-kind", trace),
      measures.length ? CH.choice("heads-by", "heads.by", measures.map((measure) => [measure, CH.t("measure." + measure)]), by, (value) => CH.set({ by: value })) : null,
      measures.length ? CH.check("heads-sort", "heads.sort", sort, (value) => CH.set({ sort: value })) : null, CH.tableSwitch()), grid.node, caption,
      measures.includes(by) ? CH.note("about." + by) : CH.note("heads.no_measures"));
    caption.textContent = describe(cell(...at));
  };

  CH.tableSwitch = () => CH.check("as-table", "choose.table", CH.state.table, (table) => CH.set({ table }));
})(window.CH = window.CH || {});
