"use strict";
// Builds the page from its sections, and draws its charts: a legend of buttons, the canvas, and a line that reads out the
// point that the arrow keys are on. A chart's holder says data-drawn="true" once it was drawn.

(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  page.model = page.sections(report);
  const specs = new Map();  // of charts, by the id of their figure
  const svg = "http://www.w3.org/2000/svg";
  const drawn = [];

  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  // Text of the sources, each character visible and in the order of writing.
  const legible = (text) => text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  const text = (name, words, properties = {}) => element(name, { textContent: legible(words), ...properties });
  const labelled = (made, attributes) => {
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, legible(value));
    return made;
  };

  // A variant's name or a path is one long word: its line may break after each of its parts, and nowhere else.
  const cell = (name, words, properties) => {
    const made = element(name, properties);
    let length = 0, part = "";
    for (const character of legible(words)) {
      part += character;
      length = character === " " ? 0 : length + 1;
      if (length < 12 || !",:/_=".includes(character)) continue;
      made.append(part, document.createElement("wbr"));
      part = "";
    }
    made.append(part);
    return made;
  };

  const tableOf = ({ title, columns, rows }) => {
    const right = columns.map((column) => column.startsWith(">"));
    const named = (scope, index) => ({ scope, className: right[index] ? "n" : "" });
    const head = element("tr", {}, ...columns.map((column, index) => text("th", right[index] ? column.slice(1) : column, named("col", index))));
    const body = rows.map((row) => element("tr", {}, ...row.map((words, index) => (index === 0
      ? cell("th", words, { scope: "row" }) : cell("td", words, { className: right[index] ? "n" : "" })))));
    // Wider than a phone: it scrolls by itself, with the keyboard too.
    return labelled(element("div", { className: "scroll", tabIndex: 0 }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))),
      { role: "region", "aria-label": "Table: " + title });
  };

  const figureOf = (figure) => {
    const { id, title, caption, chart, rows } = figure;
    const made = labelled(element("figure", { id }, element("figcaption", {}, text("h3", title, { id: id + "-title" }), ...(caption ? [text("p", caption)] : []))),
      { "aria-labelledby": id + "-title" });
    if (!chart) {
      made.append(tableOf(figure));
      return made;
    }
    specs.set(id, { ...chart, title });
    const holder = element("div", { className: "chart" });
    holder.dataset.chart = id;
    made.append(holder, element("details", { open: rows.length <= 12 }, element("summary", { textContent: "The figures as a table" }), tableOf(figure)));
    return made;
  };

  const sectionOf = ({ id, title, lead, tiles, figures }) => labelled(element("section", { id },
    text("h2", title, { id: id + "-title" }),
    ...(lead ? [text("p", lead, { className: "lead" })] : []),
    ...(tiles && tiles.length ? [element("dl", { className: "tiles" }, ...tiles.map(([label, value, note]) => element("div", {},
      text("dt", label), element("dd", {}, text("span", value, { className: "value" }), text("span", note, { className: "note" })))))] : []),
    ...figures.map(figureOf)), { "aria-labelledby": id + "-title" });

  const write = () => {
    document.title = report.title;
    document.querySelector("h1").textContent = legible(report.title);
    document.getElementById("made").textContent = legible(report.made);
    document.querySelector("nav ul").append(...page.model.map(({ id, title }) => element("li", {}, text("a", title, { href: "#" + id }))));
    document.getElementById("main").append(...page.model.map(sectionOf));
  };

  const outlines = {
    circle: "M8 2a6 6 0 1 0 .01 0Z", rectRot: "M8 1 15 8 8 15 1 8Z", triangle: "M8 2 15 14H1Z", rect: "M2 2H14V14H2Z",
    crossRot: "M3 3 13 13M13 3 3 13", star: "M8 1V15M1 8H15M3 3 13 13M13 3 3 13", rectRounded: "M4 2H12L14 4V12L12 14H4L2 12V4Z",
    bar: "M1 3H15V13H1Z", line: "M0 8H16",
  };
  const swatch = (dataset, type) => {
    const shape = type === "bar" ? "bar" : dataset.showLine ? "line" : dataset.pointStyle;
    const picture = document.createElementNS(svg, "svg");
    picture.setAttribute("viewBox", "0 0 16 16");
    picture.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(svg, "path");
    path.setAttribute("d", outlines[shape]);
    path.style.fill = page.inkValue(dataset.inkName, "");
    path.style.stroke = page.inkValue(dataset.inkName, "-line");
    path.setAttribute("stroke-width", shape === "line" ? "3" : "1.5");
    picture.append(path);
    return picture;
  };

  const legendOf = (view) => {
    const legend = element("div", { className: "legend" });
    legend.setAttribute("role", "group");
    legend.setAttribute("aria-label", "Shown in the chart");
    view.chart.data.datasets.forEach((dataset, index) => {
      const button = element("button", { type: "button" }, swatch(dataset, view.chart.config.type), dataset.label);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const shown = !view.chart.isDatasetVisible(index);
        view.chart.setDatasetVisibility(index, shown);
        button.setAttribute("aria-pressed", String(shown));
        view.hidden[shown ? "delete" : "add"](index);
        view.chart.update();
      });
      legend.append(button);
    });
    return legend;
  };

  // The points that are shown, by row and then by series; without rows from left to right.
  const stops = (view) => {
    const { chart } = view;
    const all = [];
    chart.data.datasets.forEach((dataset, datasetIndex) => {
      if (!chart.isDatasetVisible(datasetIndex) || dataset.showLine) return;
      dataset.data.forEach((value, index) => {
        if (value === null) return;
        const place = chart.getDatasetMeta(datasetIndex).data[index];
        all.push({ datasetIndex, index, row: dataset.rows ? dataset.rows[index] : view.spec.categories ? index : 0, x: place.x });
      });
    });
    return all.sort((a, b) => a.row - b.row || (view.spec.kind === "lanes" || !view.spec.categories ? a.x - b.x : a.datasetIndex - b.datasetIndex));
  };

  const show = (view, stop) => {
    const { chart } = view;
    chart.setActiveElements(stop ? [stop] : []);
    const place = stop ? chart.getDatasetMeta(stop.datasetIndex).data[stop.index].tooltipPosition() : { x: 0, y: 0 };
    chart.tooltip.setActiveElements(stop ? [stop] : [], place);
    chart.update();
    const dataset = stop && chart.data.datasets[stop.datasetIndex];
    const category = stop ? view.categoryOf(stop.datasetIndex, stop.index) : "";
    view.reading.textContent = stop ? `${category ? category + ", " : ""}${dataset.label}: ${dataset.words[stop.index]}` : "";
  };

  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  const pressed = (view, event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = stops(view);
    const last = all.length - 1;
    if (event.key === "Escape") view.at = null;
    else if (event.key === "Home") view.at = 0;
    else if (event.key === "End") view.at = last;
    else if (event.key in steps) view.at = view.at === null ? 0 : Math.min(Math.max(view.at + steps[event.key], 0), last);
    else return;
    event.preventDefault();
    show(view, view.at === null ? null : all[view.at]);
  };

  const build = (view) => {
    const width = view.holder.clientWidth;
    const made = page.configuration(view.spec, width, () => { view.holder.dataset.drawn = "true"; });
    view.plot.style.height = made.height + "px";
    view.categoryOf = made.categoryOf;
    view.width = width;
    view.at = null;
    if (view.chart) view.chart.destroy();
    view.chart = new Chart(view.canvas, made.configuration);
    for (const index of view.hidden) view.chart.setDatasetVisibility(index, false);
    if (view.hidden.size) view.chart.update();
  };

  const draw = (holder) => {
    const spec = specs.get(holder.dataset.chart);
    const canvas = element("canvas", { tabIndex: 0 });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Chart: ${spec.title}. Arrow keys step through its points; the table below holds all figures.`);
    const plot = element("div", { className: "plot" }, canvas);
    const reading = element("p", { className: "reading" });
    reading.setAttribute("aria-live", "polite");
    holder.append(plot, reading);
    const view = { holder, spec, canvas, plot, reading, chart: null, at: null, hidden: new Set() };
    build(view);
    if (view.chart.data.datasets.length > 1) holder.prepend(legendOf(view));
    canvas.addEventListener("keydown", (event) => pressed(view, event));
    canvas.addEventListener("blur", () => { if (view.at !== null) { view.at = null; show(view, null); } });
    drawn.push(view);
  };

  const rebuild = () => drawn.forEach(build);

  write();
  document.querySelectorAll("[data-chart]").forEach(draw);
  document.documentElement.dataset.charts = String(drawn.length);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => drawn.filter((view) => view.holder.clientWidth !== view.width).forEach(build));
  });

  // On paper everything is unfolded and dark on light.
  let folded = [];
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.printing = "true";
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
    rebuild();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.printing;
    for (const one of folded) one.open = false;
    rebuild();
  });

  // The section that is read is marked in the list of sections.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));
})();
