"use strict";
(() => {
  Bokeh.set_log_level("warn");
  const root = document.documentElement;
  const { kinds, plots } = JSON.parse(document.getElementById("plots").textContent);
  const shown = new Map(); // the id of a place on the page -> the plot drawn there
  const hidden = new Set(); // methods that are switched off

  // -- tables: a click on a heading sorts, another turns it round

  function key(row, column) {
    const cell = row.cells[column];
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent.trim();
  }

  function compare(a, b, sign) {
    const numbers = [typeof a === "number", typeof b === "number"];
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1; // what has no number comes last, either way
    return sign * (numbers[0] ? a - b : a.localeCompare(b));
  }

  function sort(heading) {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const was = heading.getAttribute("aria-sort");
    const first = column === 0 ? "ascending" : "descending";
    const now = was === null ? first : was === "ascending" ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", now);
    const sign = now === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(key(a, column), key(b, column), sign));
    table.tBodies[0].append(...rows);
  }

  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  // -- plots: drawn when they come near the window, in the colours of the page

  function paint(plot) {
    const style = getComputedStyle(root);
    const [card, ink, grid] = ["--card", "--ink", "--grid"].map((name) => style.getPropertyValue(name).trim());
    Object.assign(plot, { background_fill_color: card, border_fill_color: card, outline_line_color: grid });
    if (plot.title) plot.title.text_color = ink;
    for (const axis of [...plot.below, ...plot.left]) {
      Object.assign(axis, {
        axis_label_text_color: ink, major_label_text_color: ink,
        axis_line_color: grid, major_tick_line_color: grid, minor_tick_line_color: grid,
      });
    }
    for (const one of plot.center) if ("grid_line_color" in one) one.grid_line_color = grid;
  }

  function veil(plot) {
    for (const one of plot.renderers) one.visible = !hidden.has(one.tags[0]);
  }

  // All plots of a kind share a frame, so each gets identifiers of its own.
  function frame(place) {
    const { kind, spans } = plots[place.id];
    const item = JSON.parse(JSON.stringify(kinds[kind]).replace(/"(p\d+)"/g, `"${place.id}-$1"`));
    const axes = item.doc.roots[0].attributes;
    [axes.x_range, axes.y_range].forEach((range, which) => {
      const [start, end] = spans[which];
      range.attributes = { start, end };
    });
    return item;
  }

  function line(plot, { method, name, colour, dashed, points, x, y }) {
    const { Line, Scatter, ColumnDataSource } = Bokeh.Models;
    const gaps = (values) => values.map((value) => value ?? NaN);
    const source = new ColumnDataSource({ data: { x: gaps(x), y: gaps(y) } });
    const at = { x: { field: "x" }, y: { field: "y" } };
    const look = dashed
      ? { line_width: 1.2, line_dash: [5, 3], line_alpha: 0.75 }
      : { line_width: 2 };
    const more = { name, tags: [method] };
    plot.add_glyph(new Line({ ...at, ...look, line_color: colour }), source, more);
    if (points) {
      plot.add_glyph(new Scatter({ ...at, size: 6, fill_color: colour, line_color: colour }), source, more);
    }
  }

  async function draw(place) {
    if (shown.has(place.id)) return;
    shown.set(place.id, null);
    const views = await Bokeh.embed.embed_item(frame(place), place.id);
    const plot = [...views][0].model;
    for (const one of plots[place.id].lines) line(plot, one);
    shown.set(place.id, plot);
    paint(plot);
    veil(plot);
  }

  const places = [...document.querySelectorAll(".plot")];
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "400px" });
  places.forEach((place) => watch.observe(place));
  addEventListener("beforeprint", () => places.forEach(draw));

  const drawn = () => [...shown.values()].filter((plot) => plot !== null);

  for (const chip of document.querySelectorAll(".chips button")) {
    chip.addEventListener("click", () => {
      const off = !hidden.has(chip.dataset.method);
      hidden[off ? "add" : "delete"](chip.dataset.method);
      chip.setAttribute("aria-pressed", String(!off));
      drawn().forEach(veil);
    });
  }

  // -- light and dark: as the system has it, until the button is clicked

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const button = document.getElementById("theme");

  function repaint() {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    drawn().forEach(paint);
  }

  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    repaint();
  });
  dark.addEventListener("change", repaint);
  repaint();
})();
