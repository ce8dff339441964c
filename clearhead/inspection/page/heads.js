/* All heads of one kind, each as a small picture, on one canvas. */
(function (CH) {
"use strict";

const { num, set, t, write } = CH;
const GAP = 14, LEFT = 64, TOP = 26, FOOT = 36;

// The weights of a head in pixels, each row against its largest
function thumbnail(weights) {
  const small = CH.el("canvas"), { rows, cols } = weights;
  [small.width, small.height] = [cols, rows];
  const context = small.getContext("2d"), image = context.createImageData(cols, rows);
  for (let r = 0; r < rows; r++) {
    const row = CH.weightRow(weights, r), most = CH.most(row);
    row.forEach((weight, c) => image.data.set([...CH.ramp(weight / most), 255], 4 * (r * cols + c)));
  }
  context.putImageData(image, 0, 0);
  return small;
}

// The heads in rows: by layer, or the largest measure first
function arranged(trace, { kind, sort }, by) {
  const cols = CH.heads(trace, kind), all = CH.layers(trace, kind).flatMap((layer) => CH.range(cols).map((head) => {
    const one = { kind, layer, head };
    return { ...one, stats: CH.ofHead(trace.stats, one) || {} };
  }));
  if (sort) all.sort((a, b) => (b.stats[by] ?? -Infinity) - (a.stats[by] ?? -Infinity));
  return CH.range(Math.ceil(all.length / cols)).map((r) => all.slice(r * cols, (r + 1) * cols));
}

const pattern = ({ pattern }) => !pattern ? "" : CH.hasText("pattern." + pattern) ? t("pattern." + pattern) : pattern;
const isChosen = (one) => one.layer === CH.state.layer && one.head === CH.state.head;

const caption = (one, by) => (CH.state.sort ? (one.layer + 1) + "·" + (one.head + 1) + "  "
  : "") + (typeof one.stats[by] === "number" ? num(one.stats[by]) : "–");

function draw(canvas, width, focus, { trace, rows, by, places }) {
  const cols = rows[0].length, size = CH.clamp(Math.floor((width - LEFT) / cols) - GAP, 56, 128), high = size + FOOT;
  const context = CH.sized(canvas, LEFT + cols * (size + GAP), TOP + rows.length * (high + GAP));
  const known = rows.flat().map((one) => one.stats[by]).filter((value) => typeof value === "number"),
    low = Math.min(...known), span = Math.max(...known) - low || 1;
  const centred = { align: "center", size: 11, most: size };
  context.imageSmoothingEnabled = false;
  places.length = 0;
  rows.forEach((row, r) => row.forEach((one, c) => {
    const x = LEFT + c * (size + GAP), y = TOP + r * (high + GAP), rgb = CH.ramp(((one.stats[by] ?? low) - low) / span),
      isFocus = r === focus[0] && c === focus[1];
    places.push({ x, y, size, high, cell: [r, c] });
    context.drawImage(thumbnail(CH.weights(trace, one)), x, y, size, size);
    context.fillStyle = CH.css(rgb);
    context.fillRect(x, y + size + 4, size, 16);
    write(context, caption(one, by), x + size / 2, y + size + 13, { ...centred, fill: CH.inkOn(rgb) });
    write(context, pattern(one.stats), x + size / 2, y + size + 29, { ...centred, colour: "muted" });
    context.strokeStyle = CH.colour(isChosen(one) || isFocus ? "accent" : "line");
    context.lineWidth = isChosen(one) ? 3 : isFocus ? 2 : 1;
    context.strokeRect(x - 1, y - 1, size + 2, size + 2);
    if (!r && !CH.state.sort) write(context, t("heads.head", { n: one.head + 1 }), x + size / 2, 12,
      { align: "center", colour: "muted" });
    if (!c && !CH.state.sort) write(context, t("heads.layer", { n: one.layer + 1 }), 0, y + size / 2,
      { colour: "muted" });
  }));
}

CH.kindChoice = (id, trace) => CH.segments(id, "choose.kind", CH.kinds(trace).map((kind) => [kind, t("kind." + kind)]),
  CH.state.kind, (kind) => set({ kind }));

CH.views.heads = function (root, trace) {
  const { kind, sort } = CH.state,
    measures = CH.MEASURES.filter((by) => trace.stats.some((one) => one.kind === kind && typeof one[by] === "number"));
  const by = measures.includes(CH.state.by) ? CH.state.by : measures[0], rows = arranged(trace, CH.state, by),
    picture = { trace, rows, by, places: [] };
  const start = rows.findIndex((row) => row.some(isChosen)), line = CH.el("p", { class: "say", id: "heads-value" }),
    label = [t("tab.heads"), t("kind." + kind), by ? t("measure." + by) : ""].join(" ");
  const say = (one) => { line.textContent = CH.headName(one) + t("list.colon") + [pattern(one.stats),
    ...measures.filter((each) => typeof one.stats[each] === "number").map((each) => t("measure." + each) + " "
      + num(one.stats[each]))].filter(Boolean).join(t("list.comma")); };
  const focus = [start, rows[start].findIndex(isChosen)], name = (key, n) => sort ? String(n + 1)
    : t("heads." + key, { n: n + 1 });
  const grid = CH.grid({ id: "heads-table", label, focus, rows: rows.length, cols: rows[0].length,
    rowText: (r) => name("layer", rows[r][0].layer), colText: (c) => name("head", c),
    text: (r, c) => caption(rows[r][c], by) + " " + pattern(rows[r][c].stats),
      draw: (canvas, width, at) => draw(canvas, width, at, picture),
      locate: (x, y) => picture.places.find((one) => x >= one.x && x < one.x + one.size && y >= one.y
      && y < one.y + one.high)?.cell,
    onFocus: (r, c) => { say(rows[r][c]); grid.focus(r, c); },
      onPick: (r, c) => set({ layer: rows[r][c].layer, head: rows[r][c].head, view: "head" }) });
  const choices = by ? [CH.choice("heads-by", "heads.by", measures.map((each) => [each, t("measure." + each)]), by,
    (each) => set({ by: each })), CH.check("heads-sort", "heads.sort", sort, (each) => set({ sort: each }))] : [];
  root.append(CH.say("heads.say"), CH.controls(CH.kindChoice("heads-kind", trace), choices, CH.tableSwitch()),
    grid.node, line, by ? CH.note("about." + by) : "");
  say(rows[focus[0]][focus[1]]);
};
})(window.CH = window.CH || {});
