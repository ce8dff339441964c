/* A picture on a canvas and the same as a table: one stop of the Tab key, arrow keys inside (WAI-ARIA's grid). */
(function (CH) {
  "use strict";

  const MOST = 40; // rows and columns of a table
  const FONT = "13px system-ui, 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'WenQuanYi Micro Hei', sans-serif";

  /** The first of at most 40 places, so that `at` is among them. */
  const windowAt = (at, count) => CH.clamp(at - MOST / 2, 0, Math.max(0, count - MOST));

  /**
   * @typedef {Object} Grid
   * @property {string} id
   * @property {string} label what the picture shows
   * @property {number} rows
   * @property {number} cols
   * @property {(r: number) => string} rowText
   * @property {(c: number) => string} colText
   * @property {(r: number, c: number) => string} text of a cell
   * @property {[number, number]} focus
   * @property {(r: number, c: number) => void} onFocus by mouse and by key
   * @property {(r: number, c: number) => void} [onPick] by click and by Enter
   * @property {(canvas: HTMLCanvasElement, width: number, focus: [number, number]) => void} draw
   * @property {(x: number, y: number) => ?[number, number]} locate the cell at a point of the canvas
   * @property {string} [rowLang]
   * @property {string} [colLang]
   */

  /** @param {Grid} grid @returns {{node: Element, focus: (r: number, c: number) => void}} */
  CH.grid = function (grid) {
    let [row, col] = grid.focus;
    const canvas = CH.el("canvas", { "aria-hidden": "true" });
    const table = CH.el("table", { id: grid.id, role: "grid", tabindex: 0, class: CH.state.table ? "twin seen" : "twin", "aria-label": grid.label,
      "aria-rowcount": grid.rows + 1, "aria-colcount": grid.cols + 1 });
    const frame = CH.el("div", { class: "scroll" }, canvas);
    const node = CH.el("div", { class: "picture" }, table, frame);
    const draw = () => { if (frame.clientWidth) grid.draw(canvas, frame.clientWidth, [row, col]); };

    function fill() {
      const top = windowAt(row, grid.rows), left = windowAt(col, grid.cols);
      const rows = CH.range(Math.min(MOST, grid.rows)).map((i) => i + top), cols = CH.range(Math.min(MOST, grid.cols)).map((i) => i + left);
      if (table.dataset.from !== top + " " + left) {
        table.dataset.from = top + " " + left;
        const cut = grid.rows > MOST || grid.cols > MOST ? " " + CH.t("grid.part", { rows: grid.rows, cols: grid.cols }) : "";
        table.replaceChildren(CH.el("caption", {}, grid.label + cut),
          CH.el("thead", {}, CH.el("tr", {}, CH.el("td", {}), cols.map((c) => CH.el("th", { scope: "col", lang: grid.colLang }, grid.colText(c))))),
          CH.el("tbody", {}, rows.map((r) => CH.el("tr", {}, CH.el("th", { scope: "row", lang: grid.rowLang }, grid.rowText(r)),
            cols.map((c) => CH.el("td", { role: "gridcell", id: grid.id + "-" + r + "-" + c, "data-row": r, "data-col": c }, grid.text(r, c)))))));
      }
      table.querySelectorAll("[aria-selected]").forEach((one) => one.removeAttribute("aria-selected"));
      const cell = document.getElementById(grid.id + "-" + row + "-" + col) || table.querySelector("[data-row='" + row + "'][data-col='" + col + "']");
      if (cell) cell.setAttribute("aria-selected", "true");
      table.setAttribute("aria-activedescendant", grid.id + "-" + row + "-" + col);
    }

    const isFilled = () => "from" in table.dataset;
    function move(r, c) {
      if (r !== row || c !== col) grid.onFocus(r, c);
    }
    table.addEventListener("focus", fill);
    table.addEventListener("keydown", (event) => {
      const to = { ArrowUp: [row - 1, col], ArrowDown: [row + 1, col], ArrowLeft: [row, col - 1], ArrowRight: [row, col + 1], Home: [row, 0], End: [row, grid.cols - 1] }[event.key];
      if (event.key === "Enter" && grid.onPick) grid.onPick(row, Math.max(0, col));
      else if (to) move(CH.clamp(to[0], 0, grid.rows - 1), CH.clamp(to[1], 0, grid.cols - 1));
      else return;
      event.preventDefault();
    });
    const at = (event) => grid.locate(event.offsetX, event.offsetY);
    canvas.addEventListener("mousemove", (event) => { const cell = at(event); if (cell) move(...cell); });
    canvas.addEventListener("click", (event) => { const cell = at(event); if (cell && grid.onPick) grid.onPick(...cell); });
    new ResizeObserver(draw).observe(frame);
    CH.onRedraw(node, draw);
    if (CH.state.table) fill();
    return {
      node,
      focus(r, c) {
        [row, col] = [r, c];
        draw();
        if (isFilled()) fill();
      },
    };
  };

  /** A canvas of a size in CSS pixels, sharp on every screen. */
  CH.sized = function (canvas, width, height) {
    const density = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    canvas.style.setProperty("width", width + "px");
    canvas.style.setProperty("height", height + "px");
    const context = canvas.getContext("2d");
    context.setTransform(density, 0, 0, density, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    return context;
  };

  /** Text that is cut with … where it would be wider. */
  CH.fitted = function (context, text, width) {
    if (context.measureText(text).width <= width) return text;
    let letters = [...text];
    while (letters.length > 1 && context.measureText(letters.join("") + "…").width > width) letters = letters.slice(0, -1);
    return letters.join("") + "…";
  };

  const LONGEST = 132, TILT = Math.PI / 3.4;

  /** Where everything is on the canvas of a matrix that is at most `width` wide. */
  function measured(matrix, width) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = FONT;
    const widest = (items, least) => Math.min(LONGEST, Math.max(least, ...items.map((one) => context.measureText(one.text).width)));
    const named = matrix.cellHeight === undefined;
    const left = Math.ceil(named ? widest(matrix.rows, 40) + 26 : 40), across = widest(matrix.cols, 0);
    const top = Math.ceil(named ? across * Math.sin(TILT) + 44 : 26), right = Math.ceil(named ? across * Math.cos(TILT) : 8);
    const room = (width - left - right) / matrix.cols.length;
    const cellWidth = named ? CH.clamp(Math.floor(room), matrix.cols.length > 64 ? 4 : 15, 44) : Math.max(1, Math.min(12, Math.floor(room * 2) / 2));
    const cellHeight = named ? Math.min(cellWidth, 34) : matrix.cellHeight;
    const sum = matrix.sum ? cellHeight + 12 : 0;
    return { left, top, cellWidth, cellHeight, named, width: left + right + cellWidth * matrix.cols.length, height: top + cellHeight * matrix.rows.length + sum + 4 };
  }

  /** The cells and their names, without the focus: drawn once, copied for each change of focus. */
  function drawCells(context, matrix, place) {
    const { left, top, cellWidth, cellHeight } = place, gap = cellWidth > 8 ? 1 : 0;
    const cell = (x, y, value, rgb, text) => {
      context.fillStyle = CH.css(rgb);
      context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
      if (cellWidth < 32 || !text) return;
      context.fillStyle = CH.inkOn(rgb);
      context.fillText(text, x + cellWidth / 2, y + cellHeight / 2 + 1);
    };
    context.textAlign = "center";
    context.font = FONT.replace("13px", "11px");
    matrix.rows.forEach((_, r) => matrix.cols.forEach((_, c) => {
      const value = matrix.at(r, c);
      if (value !== null) cell(left + c * cellWidth, top + r * cellHeight, value, matrix.colour(r, c, value), matrix.inside(value));
      else if (cellWidth > 8) {
        context.fillStyle = CH.colour("line");
        context.fillRect(left + (c + 0.5) * cellWidth - 2, top + (r + 0.5) * cellHeight - 1, 3, 1);
      }
    }));
    if (!matrix.sum) return;
    const y = top + matrix.rows.length * cellHeight + 8, most = Math.max(...matrix.sum.values) || 1;
    matrix.sum.values.forEach((value, c) => cell(left + c * cellWidth, y, value, CH.ramp(value / most), matrix.inside(value)));
    context.font = FONT;
    context.textAlign = "right";
    context.fillStyle = CH.colour("ink");
    context.fillText(matrix.sum.label, left - 8, y + cellHeight / 2);
  }

  function drawNames(context, matrix, place, [row, col]) {
    const { left, top, cellWidth, cellHeight } = place;
    const ink = (item, isFocus) => {
      context.fillStyle = CH.colour(isFocus ? "accent" : item.special ? "faint" : "ink");
      context.font = (isFocus ? "600 " : "") + FONT;
    };
    context.textAlign = "right";
    matrix.rows.forEach((item, r) => {
      if (cellHeight < 12 && r !== row) return;
      ink(item, r === row);
      context.fillText((item.picked ? "● " : "") + CH.fitted(context, item.text, LONGEST), left - 8, top + (r + 0.5) * cellHeight);
    });
    context.textAlign = "left";
    matrix.cols.forEach((item, c) => {
      if (cellWidth < 12 && c !== col) return;
      ink(item, c === col);
      context.save();
      context.translate(left + (c + 0.5) * cellWidth, top - 8);
      context.rotate(-TILT);
      context.fillText(CH.fitted(context, item.text, LONGEST), 0, 0);
      context.restore();
    });
  }

  function drawFocus(context, place, [row, col]) {
    const { left, top, cellWidth, cellHeight } = place;
    context.strokeStyle = CH.colour("accent");
    context.lineWidth = 1;
    if (row >= 0) context.strokeRect(left - 1.5, top + row * cellHeight - 1.5, place.across + 2, cellHeight + 2);
    context.lineWidth = 2.5;
    if (row >= 0 && col >= 0) context.strokeRect(left + col * cellWidth - 1, top + row * cellHeight - 1, cellWidth + 1, cellHeight + 1);
  }

  /**
   * A matrix as a heat map. On top of a grid: `rows` and `cols` are lists of {text, special, picked}, `at` a value or null,
   * `colour` its red, green and blue, `inside` what is written into large cells, `axes` the names of the two sides, and
   * `sum` one more row. `cellHeight` makes it a plain map without names.
   */
  CH.matrix = function (matrix) {
    let place = null, base = null, drawnFor = "";
    function draw(canvas, width, focus) {
      const key = width + CH.theme() + (window.devicePixelRatio || 1);
      if (key !== drawnFor) {
        place = measured(matrix, width);
        place.across = place.cellWidth * matrix.cols.length;
        base = document.createElement("canvas");
        drawCells(CH.sized(base, place.width, place.height), matrix, place);
        drawnFor = key;
      }
      const context = CH.sized(canvas, place.width, place.height);
      context.drawImage(base, 0, 0, place.width, place.height);
      if (place.named) drawNames(context, matrix, place, focus);
      context.font = "600 " + FONT.replace("13px", "12px");
      context.fillStyle = CH.colour("muted");
      context.textAlign = "left";
      context.fillText(matrix.axes[1] + " →", place.left, 8);
      if (place.named) context.fillText(matrix.axes[0] + " ↓", 0, Math.min(28, place.top - 14));
      drawFocus(context, place, focus);
      for (const name of ["left", "top", "cellWidth", "cellHeight"]) canvas.dataset[name] = place[name];
    }
    function locate(x, y) {
      const c = Math.floor((x - place.left) / place.cellWidth), r = Math.floor((y - place.top) / place.cellHeight);
      return r >= 0 && r < matrix.rows.length && c < matrix.cols.length ? [r, Math.max(0, c)] : null;
    }
    return CH.grid({ ...matrix, rows: matrix.rows.length, cols: matrix.cols.length, draw, locate,
      rowText: (r) => matrix.rows[r].text, colText: (c) => matrix.cols[c].text,
      text: (r, c) => matrix.at(r, c) === null ? CH.t("grid.masked") : CH.num(matrix.at(r, c), matrix.places || 3) });
  };
})(window.CH = window.CH || {});
