/* A picture on a canvas and the same as a table: one stop of Tab, arrow keys inside (WAI-ARIA's grid). */
(function (CH) {
"use strict";

const { clamp, el, num, range, t } = CH;
const MOST = 32; // rows and columns of a table
const FONT = "system-ui, 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'WenQuanYi Micro Hei', sans-serif";
const LONGEST = 132, TILT = Math.PI / 3.4; // of the names beside a matrix

// At most so many places, `at` among them
const around = (at, count) => range(Math.min(MOST, count)).map((i) => i + clamp(at - MOST / 2, 0,
  Math.max(0, count - MOST)));

/**
 * A canvas with its table: `rows` × `cols` cells with `rowText(r)`, `colText(c)`, `text(r, c)`; `onFocus(r, c)` is called by
 * mouse and keys, `onPick(r, c)` by click and Enter, `locate(x, y)` finds the cell at a point of the canvas.
 * @returns {{node: Element, focus: (r: number, c: number) => void}}
 */
CH.grid = function (grid) {
  let [row, col] = grid.focus;
  const canvas = el("canvas", { "aria-hidden": "true" }), frame = el("div", { class: "scroll" }, canvas);
  const table = el("table", { id: grid.id, role: "grid", tabindex: 0, class: CH.state.table ? "twin seen" : "twin",
    "aria-label": grid.label, "aria-rowcount": grid.rows + 1, "aria-colcount": grid.cols + 1 });
  const node = el("div", { class: "picture" }, table, frame);
  const draw = () => { if (frame.clientWidth) grid.draw(canvas, frame.clientWidth, [row, col]); };
  const cellId = (r, c) => grid.id + "-" + r + "-" + c;

  // Make the table, or only move its mark: it is made when the focus first comes
  function fill() {
    const rows = around(row, grid.rows), cols = around(col, grid.cols), from = rows[0] + " " + cols[0];
    if (table.dataset.from !== from) {
      table.dataset.from = from;
      const cut = grid.rows > MOST || grid.cols > MOST ? " " + t("grid.part", { rows: grid.rows, cols: grid.cols })
        : "";
      table.replaceChildren(el("caption", {}, grid.label, cut),
        el("thead", {}, el("tr", {}, el("td"),
          cols.map((c) => el("th", { scope: "col", lang: grid.colLang }, grid.colText(c))))),
        el("tbody", {}, rows.map((r) => el("tr", {}, el("th", { scope: "row", lang: grid.rowLang }, grid.rowText(r)),
          cols.map((c) => el("td", { role: "gridcell", id: cellId(r, c) }, grid.text(r, c)))))));
    }
    table.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
    table.querySelector("#" + cellId(row, Math.max(0, col)))?.setAttribute("aria-selected", "true");
    table.setAttribute("aria-activedescendant", cellId(row, Math.max(0, col)));
  }

  const move = (r, c) => { if (r !== row || c !== col) grid.onFocus(r, c); };
  table.addEventListener("focus", fill);
  table.addEventListener("keydown", (event) => {
    const to = { ArrowUp: [row - 1, col], ArrowDown: [row + 1, col], ArrowLeft: [row, col - 1],
      ArrowRight: [row, col + 1],
      Home: [row, 0], End: [row, grid.cols - 1] }[event.key];
    if (event.key === "Enter" && grid.onPick) grid.onPick(row, Math.max(0, col));
    else if (to) move(clamp(to[0], 0, grid.rows - 1), clamp(to[1], 0, grid.cols - 1));
    else return;
    event.preventDefault();
  });
  const listen = (name, act) => canvas.addEventListener(name, (event) => {
    const cell = grid.locate(event.offsetX, event.offsetY);
    if (cell && act) act(...cell);
  });
  listen("mousemove", move);
  listen("click", grid.onPick);
  new ResizeObserver(draw).observe(frame);
  CH.pictures.push(draw);
  if (CH.state.table) fill();
  return { node, focus(r, c) {
    [row, col] = [r, c];
    draw();
    if (table.dataset.from) fill();
  } };
};

// A canvas of a size in CSS pixels, sharp on every screen
const sized = CH.sized = function (canvas, width, height) {
  const density = devicePixelRatio;
  const context = canvas.getContext("2d"), size = [width * density, height * density].map(Math.round);
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  canvas.style.setProperty("width", width + "px");
  canvas.style.setProperty("height", height + "px");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  return context;
};

// Write on a canvas; what is wider than `most` ends with …
const write = CH.write = function (context, text, x, y, { size = 13, align = "left", colour = "ink", fill, weight = "",
  most } = {}) {
  context.font = weight + " " + size + "px " + FONT;
  context.textAlign = align;
  context.fillStyle = fill || CH.colour(colour);
  let letters = [...text];
  while (most && letters.length > 1
    && context.measureText(letters.join("")).width > most) letters = [...letters.slice(0, -2), "…"];
  context.fillText(letters.join(""), x, y);
};

// Where everything is on a matrix about `width` wide
function measured(matrix, width) {
  const context = el("canvas").getContext("2d"), named = !matrix.cellHeight;
  context.font = "13px " + FONT;
  const widest = (items) => Math.min(LONGEST, CH.most(items.map((one) => context.measureText(one.text).width)));
  const across = named ? widest(matrix.cols) : 0, left = Math.ceil(named ? widest(matrix.rows) + 26 : 40);
  const top = Math.ceil(named ? across * Math.sin(TILT) + 48 : 26), right = across * Math.cos(TILT) + 8;
  const room = (width - left - right) / matrix.cols.length;
  const cellWidth = named ? clamp(Math.floor(room), matrix.cols.length > 64 ? 4 : 15, 44)
    : clamp(Math.floor(room * 2) / 2, 1, 12);
  const cellHeight = named ? Math.min(cellWidth, 34) : matrix.cellHeight,
    rows = matrix.rows.length + (matrix.sum ? 1.4 : 0);
  return { left, top, cellWidth, cellHeight, named, across: cellWidth * matrix.cols.length,
    width: Math.max(left + right + cellWidth * matrix.cols.length, 200), height: top + cellHeight * rows + 4 };
}

// The cells, without names and focus: drawn once, copied for each change of focus
function drawCells(context, matrix, { left, top, cellWidth, cellHeight }) {
  const gap = cellWidth > 12 ? 1 : 0;
  function cell(r, c, value, rgb) {
    const x = left + c * cellWidth, y = top + r * cellHeight;
    context.fillStyle = CH.css(rgb);
    context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
    const text = cellWidth < 32 ? "" : matrix.inside(value), fill = CH.inkOn(rgb);
    if (text) write(context, text, x + cellWidth / 2, y + cellHeight / 2 + 1, { size: 11, align: "center", fill });
  }
  matrix.rows.forEach((_, r) => matrix.cols.forEach((_, c) => {
    const value = matrix.at(r, c);
    if (value !== null) cell(r, c, value, matrix.colour(r, value));
    else if (gap) write(context, "–", left + (c + 0.5) * cellWidth, top + (r + 0.5) * cellHeight,
      { align: "center", colour: "line" });
  }));
  const { sum } = matrix, last = matrix.rows.length + 0.4;
  if (!sum) return;
  sum.values.forEach((value, c) => cell(last, c, value, CH.ramp(value / CH.most(sum.values))));
  write(context, sum.label, left - 8, top + (last + 0.5) * cellHeight, { align: "right" });
}

function drawNames(context, { rows, cols }, { left, top, cellWidth, cellHeight }, [row, col]) {
  const look = (item, isFocus) => ({ most: LONGEST, colour: isFocus ? "accent" : item.special ? "faint" : "ink",
    weight: isFocus ? "600" : "" });
  rows.forEach((item, r) => {
    if (cellHeight < 12 && r !== row) return;
    const text = (item.picked ? "● " : "") + item.text;
    write(context, text, left - 8, top + (r + 0.5) * cellHeight, { ...look(item, r === row), align: "right" });
  });
  cols.forEach((item, c) => {
    if (cellWidth < 12 && c !== col) return;
    context.save();
    context.translate(left + (c + 0.5) * cellWidth, top - 8);
    context.rotate(-TILT);
    write(context, item.text, 0, 0, look(item, c === col));
    context.restore();
  });
}

function drawFocus(context, { left, top, cellWidth, cellHeight, across }, [row, col]) {
  context.strokeStyle = CH.colour("accent");
  context.lineWidth = 1;
  if (row >= 0) context.strokeRect(left - 1.5, top + row * cellHeight - 1.5, across + 2, cellHeight + 2);
  context.lineWidth = 2.5;
  if (row >= 0 && col >= 0) context.strokeRect(left + col * cellWidth - 1, top + row * cellHeight - 1, cellWidth + 1,
    cellHeight + 1);
}

/**
 * A matrix as a heat map, on a grid: `rows` and `cols` are lists of {text, special, picked}, `at(r, c)` is a value or null,
 * `colour(r, value)` its red, green and blue, `inside(value)` the text in large cells, `axes` names the two sides, `sum` is
 * one more row {label, values}; `cellHeight` makes it a plain map without names.
 */
CH.matrix = function (matrix) {
  const { rows, cols, at } = matrix, base = el("canvas"), title = { size: 12, weight: "600", colour: "muted" };
  let place = null, drawnFor = "";
  function draw(canvas, width, focus) {
    const now = [width, CH.theme(), devicePixelRatio].join();
    if (now !== drawnFor) {
      place = measured(matrix, width);
      drawCells(sized(base, place.width, place.height), matrix, place);
      drawnFor = now;
    }
    const context = sized(canvas, place.width, place.height);
    context.drawImage(base, 0, 0, place.width, place.height);
    if (place.named) drawNames(context, matrix, place, focus);
    write(context, "→ " + matrix.axes[1], 0, 8, title);
    if (place.named) write(context, "↓ " + matrix.axes[0], 0, 26, title);
    drawFocus(context, place, focus);
    for (const name of ["left", "top", "cellWidth", "cellHeight"]) canvas.dataset[name] = place[name];
  }
  function locate(x, y) {
    const c = Math.floor((x - place.left) / place.cellWidth), r = Math.floor((y - place.top) / place.cellHeight);
    return r >= 0 && r < rows.length && c < cols.length ? [r, Math.max(0, c)] : null;
  }
  return CH.grid({ ...matrix, rows: rows.length, cols: cols.length, draw, locate, rowText: (r) => rows[r].text,
    colText: (c) => cols[c].text, text: (r, c) => at(r, c) === null ? t("grid.masked") : num(at(r, c), 3) });
};

// A matrix of values with signs, its legend, and a line for the value in focus
CH.signedMatrix = function (matrix, describe, low, high) {
  const line = el("p", { class: "say" }),
    values = range(matrix.rows.length).flatMap((r) => range(matrix.cols.length).map((c) => matrix.at(r, c)));
  const most = CH.most(values.map(Math.abs), 0.01), limit = num(most);
  const show = (r, c) => { map.focus(r, c); line.replaceChildren(describe(r, c)); };
  const map = CH.matrix({ colour: (r, value) => CH.signs(value / most), focus: [0, -1], onFocus: show,
    inside: (value) => Math.abs(value) >= most / 10 ? num(value, most < 1 ? 2 : 1).replace(/^(-?)0/, "$1") : "",
      ...matrix });
  return [map.node, el("p", { class: "note" }, CH.legend(low + " −" + limit, "+" + limit + " " + high,
    (x) => CH.signs(2 * x - 1))), line];
};

CH.tableSwitch = () => CH.check("as-table", "choose.table", CH.state.table, (table) => CH.set({ table }));
})(window.CH = window.CH || {});
