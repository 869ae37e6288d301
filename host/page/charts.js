"use strict";
// Draws charts with Chart.js: colours as the style sheet has them, numbers as a person reads them, what Chart.js does not
// draw by itself, and one function a kind of chart from the page's data to what Chart.js takes.

const page = {};

// The colour of an ink as the style sheet writes it: a name of the palette, or "hue-137" past it.
page.inkValue = (ink, part) => {
  if (!ink.startsWith("hue-")) return `var(--${ink}${part})`;
  return `hsl(${ink.slice(4)} ${part ? 70 : 50}% var(--hue${part}))`;
};

page.theme = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  return {
    of,
    fill: (ink) => (ink.startsWith("hue-") ? `hsl(${ink.slice(4)} 50% ${of("hue")})` : of(ink)),
    line: (ink) => (ink.startsWith("hue-") ? `hsl(${ink.slice(4)} 70% ${of("hue-line")})` : of(ink + "-line")),
    font: getComputedStyle(document.body).fontFamily,
  };
};

// Thousands are parted by a narrow space, at which lines do not break.
page.grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

// Three significant digits.
page.number = (value) => {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-4) return value.toExponential(1);
  if (size < 1000) return String(Number(value.toPrecision(3)));
  return page.grouped(value);
};

// Where a text may end so that no word is broken: behind the last space or sign between words; 0: it is one word.
page.endOfWords = (text, most) => {
  const ends = [...text.slice(0, most + 1).matchAll(/[ ,:/_=-]/g)].map((at) => at.index + (at[0] === " " ? 0 : 1));
  return ends.filter((end) => end <= most).at(-1) || 0;
};

page.shortened = (text, most) => {
  if (text.length <= most) return text;
  return text.slice(0, page.endOfWords(text, most - 1) || most - 1).trimEnd() + "…";
};

// The lines of a category, none longer than there is room for: one that is goes on in a second, and is shortened there.
page.lines = (text, most) => text.split("\n").flatMap((line) => {
  if (line.length <= most) return [line];
  // A word that is longer than a line is shortened, never broken.
  const end = page.endOfWords(line, most);
  return end === 0 ? [page.shortened(line, most)] : [line.slice(0, end).trimEnd(), page.shortened(line.slice(end).trimStart(), most)];
});

// What Chart.js does not draw: spreads, lines across, names of rows above them where there is no room beside, names of
// points, and what bars add up to. Each looks for its facts in chart.options.kiln, which charts.js puts there.

page.marks = (() => {
  const text = (ctx, options, size, weight) => {
    ctx.font = (weight || 400) + " " + size + "px " + options.font;
    ctx.textBaseline = "middle";
  };

  // From the least to the most of each point, along the scale of values.
  const spreads = {
    id: "spreads",
    beforeDatasetsDraw(chart) {
      const scale = chart.scales.x;
      chart.data.datasets.forEach((dataset, index) => {
        if (!dataset.spreads || !chart.isDatasetVisible(index)) return;
        const { ctx } = chart;
        ctx.save();
        ctx.strokeStyle = dataset.borderColor;
        ctx.lineWidth = 1.5;
        chart.getDatasetMeta(index).data.forEach((element, at) => {
          const spread = dataset.spreads[at];
          if (!spread || element.skip) return;
          const from = scale.getPixelForValue(spread[0]), to = scale.getPixelForValue(spread[1]);
          ctx.beginPath();
          ctx.moveTo(from, element.y); ctx.lineTo(to, element.y);
          ctx.moveTo(from, element.y - 4); ctx.lineTo(from, element.y + 4);
          ctx.moveTo(to, element.y - 4); ctx.lineTo(to, element.y + 4);
          ctx.stroke();
        });
        ctx.restore();
      });
    },
  };

  // A value that stands for something, as 1 of a ratio.
  const lineAcross = {
    id: "lineAcross",
    beforeDatasetsDraw(chart) {
      const { kiln } = chart.options;
      if (!kiln.mark) return;
      const { ctx, chartArea } = chart;
      const x = chart.scales.x.getPixelForValue(kiln.mark.value);
      ctx.save();
      ctx.strokeStyle = kiln.soft;
      ctx.setLineDash([5, 4]);
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top); ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      ctx.setLineDash([]);
      text(ctx, kiln, 12);
      ctx.fillStyle = kiln.soft;
      const half = ctx.measureText(kiln.mark.text).width / 2;
      ctx.textAlign = "center";
      ctx.fillText(kiln.mark.text, Math.min(Math.max(x, chartArea.left + half), chart.width - half), chartArea.top - 9);
      ctx.restore();
    },
  };

  const rowNames = {
    id: "rowNames",
    afterDatasetsDraw(chart) {
      const { kiln } = chart.options;
      if (!kiln.namesAbove) return;
      const { ctx, chartArea } = chart;
      const band = chartArea.height / kiln.categories.length;
      ctx.save();
      text(ctx, kiln, 12, 500);
      ctx.textAlign = "left";
      kiln.categories.forEach((name, row) => {
        page.lines(name, kiln.nameRoom).forEach((line, index) => {
          const y = chartArea.top + row * band + kiln.nameDrop + 15 * index;
          ctx.fillStyle = kiln.card;  // no grid behind words
          ctx.fillRect(chartArea.left, y - 7, ctx.measureText(line).width + 3, 14);
          ctx.fillStyle = kiln.text;
          ctx.fillText(line, chartArea.left + 1, y);
        });
      });
      ctx.restore();
    },
  };

  // Beside its point, where no other name stands yet.
  const pointNames = {
    id: "pointNames",
    afterDatasetsDraw(chart) {
      const { kiln } = chart.options;
      if (!kiln.pointNames) return;
      const { ctx, chartArea } = chart;
      const taken = [];
      ctx.save();
      text(ctx, kiln, 11);
      ctx.fillStyle = kiln.soft;
      const meets = (a) => taken.some((b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]);
      const inside = (a) => a[0] >= chartArea.left && a[2] <= chartArea.right && a[1] >= chartArea.top && a[3] <= chartArea.bottom;
      const points = [];
      chart.data.datasets.forEach((dataset, index) => {
        if (dataset.showLine || !chart.isDatasetVisible(index)) return;
        chart.getDatasetMeta(index).data.forEach((element, at) => {
          taken.push([element.x - 5, element.y - 5, element.x + 5, element.y + 5]);
          points.push([element, dataset.notes[at]]);
        });
      });
      for (const [element, name] of points) {
        const width = ctx.measureText(name).width;
        const places = [[9, -7], [-9 - width, -7], [-width / 2, -20], [-width / 2, 7]];
        for (const [dx, dy] of places) {
          const box = [element.x + dx, element.y + dy, element.x + dx + width, element.y + dy + 13];
          if (meets(box) || !inside(box)) continue;
          taken.push(box);
          ctx.textAlign = "left";
          ctx.fillText(name, box[0], box[1] + 7);
          break;
        }
      }
      ctx.restore();
    },
  };

  // What the parts of a row that are shown add up to; of bars beside each other each one's value.
  const barEnds = {
    id: "barEnds",
    afterDatasetsDraw(chart) {
      const { kiln } = chart.options;
      if (!kiln.barEnds) return;
      const { ctx } = chart;
      const ends = new Map();
      chart.data.datasets.forEach((dataset, index) => {
        if (!chart.isDatasetVisible(index)) return;
        chart.getDatasetMeta(index).data.forEach((element, at) => {
          const value = dataset.data[at];
          if (value === null || value === undefined) return;
          const key = kiln.barEnds === "stacked" ? at : index + "/" + at;
          const end = ends.get(key) || { sum: 0, x: 0, y: element.y };
          end.sum += value;
          end.x = Math.max(end.x, element.x);
          ends.set(key, end);
        });
      });
      ctx.save();
      text(ctx, kiln, 12);
      ctx.fillStyle = kiln.text;
      ctx.textAlign = "left";
      for (const end of ends.values()) ctx.fillText(page.number(end.sum), end.x + 6, end.y);
      ctx.restore();
    },
  };

  return [spreads, lineAcross, rowNames, pointNames, barEnds];
})();

// From the page's data to what Chart.js takes: one function a kind of chart.

page.configuration = (() => {
  const shapes = ["circle", "rectRot", "triangle", "rect", "crossRot", "star", "rectRounded"];
  const narrow = (width) => width < 620;
  // Characters of a row's name: beside the plot, or above the row where the page is narrow.
  const room = (width) => Math.floor(narrow(width) ? (width - 24) / 6.4 : width / 18);

  // Round values within a logarithmic scale, no more than there is room for.
  const logarithmicTicks = (least, most, room) => {
    const sets = [[1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8], [1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
    for (const set of sets) {
      const ticks = [];
      for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); ++power) {
        for (const digit of set) {
          const value = Number((digit * 10 ** power).toPrecision(3));
          if (value >= least * 0.999 && value <= most * 1.001) ticks.push(value);
        }
      }
      if (ticks.length <= room && ticks.length >= 2) return ticks;
    }
    const ticks = [];
    const decades = Math.ceil((Math.log10(most) - Math.log10(least)) / room) || 1;
    for (let power = Math.ceil(Math.log10(least)); 10 ** power <= most; power += decades) ticks.push(10 ** power);
    return ticks.length >= 2 ? ticks : [least, most].map((value) => Number(value.toPrecision(2)));
  };

  const bounds = (values, mark) => {
    const all = values.filter((value) => value > 0);
    if (mark) all.push(mark.value);
    const least = Math.min(...all), most = Math.max(...all);
    const room = Math.max(1.08, (most / least) ** 0.04);
    return [least / room, most * room];
  };

  const scaleOf = (axis, theme, values, width, direction) => {
    const logarithmic = axis.scale === "logarithmic" && values.some((value) => value > 0);
    const scale = {
      type: logarithmic ? "logarithmic" : "linear",
      title: { display: true, text: axis.title, color: theme.of("soft"), font: { size: 13 } },
      grid: { color: theme.of("grid"), borderColor: theme.of("edge"), tickColor: theme.of("edge") },
      ticks: { color: theme.of("soft"), font: { size: 12 }, maxRotation: 0, callback: (value) => page.number(value) },
    };
    if (logarithmic) {
      [scale.min, scale.max] = bounds(values, axis.mark);
      const room = direction === "x" ? (narrow(width) ? 5 : 10) : 7;
      scale.afterBuildTicks = (built) => {
        built.ticks = logarithmicTicks(built.min, built.max, room).map((value) => ({ value }));
      };
      scale.ticks.autoSkip = false;
    } else {
      scale.beginAtZero = true;
      scale.ticks.maxTicksLimit = narrow(width) ? 5 : 10;
    }
    return scale;
  };

  const rowsScale = (spec, theme, width) => ({
    type: "linear",
    reverse: true,
    min: -0.5,
    max: spec.categories.length - 0.5,
    grid: { display: !narrow(width), color: theme.of("grid"), drawBorder: false, drawTicks: false },
    afterBuildTicks: (built) => { built.ticks = spec.categories.map((_, value) => ({ value })); },
    ticks: {
      display: !narrow(width), autoSkip: false, color: theme.of("text"), font: { size: 12.5 }, padding: 8,
      callback: (value) => page.lines(spec.categories[value] || "", room(width)),
    },
  });

  const categoriesScale = (spec, theme, width, stacked) => ({
    type: "category",
    labels: spec.categories.map((_, index) => index),
    stacked,
    grid: { display: false, borderColor: theme.of("edge") },
    ticks: {
      display: !narrow(width), autoSkip: false, color: theme.of("text"), font: { size: 12.5 },
      callback: (_, index) => page.lines(spec.categories[index], room(width)),
    },
  });

  // Of a row: what its name takes where it stands above, and more where it has several lines beside.
  const linesOf = (spec, width) => Math.max(1, ...spec.categories.map((name) => page.lines(name, room(width)).length));
  const above = (spec, width) => (narrow(width) ? 5 + 15 * linesOf(spec, width) : 14 * (linesOf(spec, width) - 1));
  const heightOf = (spec, width, each) => spec.categories.length * (each + above(spec, width)) + 78;
  // How far below the middle of its row a mark stands, in rows, so that the name has its place.
  const lowered = (spec, width, each) => (narrow(width) ? above(spec, width) / 2 / (each + above(spec, width)) : 0);

  const inkOf = (series, theme) => ({
    backgroundColor: theme.fill(series.ink), borderColor: theme.line(series.ink), inkName: series.ink,
  });

  const valueText = (axis, value, low, high, note) => {
    const spread = low !== null && low !== undefined ? ` (${page.number(low)} to ${page.number(high)})` : "";
    return `${page.number(value)}${spread} ${axis.unit}${note ? ", " + note : ""}`;
  };

  const kinds = {
    bars(spec, theme, width) {
      const shown = spec.series;
      const datasets = shown.map((series) => ({
        ...inkOf(series, theme),
        label: series.name,
        data: series.points.map((point) => point[0]),
        words: series.points.map((point) => point[0] === null ? "" : valueText(spec.x, point[0], point[1], point[2], point[3])),
        borderWidth: 1,
        borderRadius: 2,
        maxBarThickness: 22,
        categoryPercentage: narrow(width) ? 0.46 : 0.8,
        barPercentage: spec.stacked ? 0.9 : 0.86,
      }));
      const each = spec.stacked ? 30 : Math.max(30, 12 + 18 * shown.length);
      return {
        type: "bar", height: heightOf(spec, width, each), datasets, ends: spec.stacked ? "stacked" : "beside",
        options: {
          indexAxis: "y",
          layout: { padding: { right: 58 } },
          scales: {
            x: { ...scaleOf(spec.x, theme, [], width, "x"), stacked: spec.stacked },
            y: categoriesScale(spec, theme, width, spec.stacked),
          },
        },
      };
    },

    rows(spec, theme, width) {
      const values = [];
      let together = false;
      for (let row = 0; row < spec.categories.length; ++row) {
        together = together || spec.series.filter((series) => series.points[row][0] !== null).length > 1;
      }
      const count = spec.series.length;
      const each = together ? Math.max(30, 10 + 13 * count) : 28;
      const lower = lowered(spec, width, each);
      const step = together ? 13 / (each + above(spec, width)) : 0;
      const datasets = spec.series.map((series, index) => {
        const dataset = { ...inkOf(series, theme), label: series.name, data: [], spreads: [], words: [], rows: [] };
        series.points.forEach(([value, low, high, note], row) => {
          if (value === null) return;
          values.push(value, low ?? value, high ?? value);
          dataset.data.push({ x: value, y: row + lower + (index - (count - 1) / 2) * step });
          dataset.spreads.push(low === null ? null : [low, high]);
          dataset.words.push(valueText(spec.x, value, low, high, note));
          dataset.rows.push(row);
        });
        return { ...dataset, pointStyle: shapes[index % shapes.length], pointRadius: 5.5, pointHoverRadius: 8, borderWidth: 1.5 };
      });
      return {
        type: "scatter", height: heightOf(spec, width, each), datasets,
        options: {
          layout: { padding: { top: spec.x.mark ? 20 : 4, right: 14 } },
          scales: { x: scaleOf(spec.x, theme, values, width, "x"), y: rowsScale(spec, theme, width) },
        },
      };
    },

    cloud(spec, theme, width) {
      const values = [];
      const each = 46;
      const lower = lowered(spec, width, each);
      const last = spec.series.length - 1;
      const datasets = spec.series.map((series, index) => {
        const chosen = index === last;
        const dataset = { ...inkOf(series, theme), label: series.name, data: [], words: [], rows: [] };
        for (const [value, row, note] of series.points) {
          values.push(value);
          dataset.data.push({ x: value, y: row * 1 + lower });
          dataset.words.push(`${page.number(value)} ×, ${note}`);
          dataset.rows.push(Math.round(row));
        }
        if (!chosen) dataset.backgroundColor += "66";
        return {
          ...dataset, pointStyle: chosen ? "rectRot" : shapes[index % shapes.length], pointRadius: chosen ? 8 : 3.5,
          pointHoverRadius: chosen ? 10 : 7, borderWidth: chosen ? 2 : 1, order: chosen ? 0 : 1,
        };
      });
      return {
        type: "scatter", height: heightOf(spec, width, each), datasets,
        options: {
          layout: { padding: { top: spec.x.mark ? 20 : 4, right: 14 } },
          scales: { x: scaleOf(spec.x, theme, values, width, "x"), y: rowsScale(spec, theme, width) },
        },
      };
    },

    plane(spec, theme, width) {
      const xs = [], ys = [];
      const datasets = spec.series.map((series, index) => {
        const notes = series.points.map((point) => point[2]);
        const data = series.points.map(([x, y]) => { xs.push(x); ys.push(y); return { x, y }; });
        const words = series.points.map(([x, y, note]) => `${note ? note + ": " : ""}${page.number(y)} ${spec.y.unit} at ${page.number(x)} ${spec.x.unit}`);
        return {
          ...inkOf(series, theme), label: series.name, data, notes, words, showLine: series.line,
          borderWidth: series.line ? 2 : 1.5, borderDash: series.line && series.ink === "vermillion" ? [7, 5] : [],
          pointRadius: series.line ? 0 : 5.5, pointHoverRadius: series.line ? 0 : 8, pointHitRadius: series.line ? 0 : 4,
          pointStyle: shapes[index % shapes.length], fill: false,
        };
      });
      return {
        type: "scatter", height: narrow(width) ? 360 : 460, datasets, names: true,
        options: {
          layout: { padding: { top: 8, right: 14 } },
          scales: { x: scaleOf(spec.x, theme, xs, width, "x"), y: scaleOf(spec.y, theme, ys, width, "y") },
        },
      };
    },

    lanes(spec, theme, width) {
      const datasets = spec.series.map((series) => ({
        ...inkOf(series, theme),
        label: series.name,
        data: series.points.map(([from, to, lane]) => ({ x: [from, to], y: lane })),
        words: series.points.map(([, , , note]) => note),
        rows: series.points.map(([, , lane]) => lane),
        grouped: false,
        borderWidth: 0,
        maxBarThickness: 34,
        categoryPercentage: narrow(width) ? 0.46 : 0.8,
        barPercentage: 0.95,
      }));
      return {
        type: "bar", height: heightOf(spec, width, 44), datasets,
        options: {
          indexAxis: "y",
          layout: { padding: { right: 14 } },
          scales: { x: scaleOf(spec.x, theme, [], width, "x"), y: categoriesScale(spec, theme, width, false) },
        },
      };
    },
  };

  return (spec, width, whenDrawn) => {
    const theme = page.theme();
    const made = kinds[spec.kind](spec, theme, width);
    const categoryOf = (item) => {
      if (!spec.categories) return "";
      const { rows } = item.dataset;
      return spec.categories[rows ? rows[item.dataIndex] : item.dataIndex].replace("\n", ", ");
    };
    const options = {
      ...made.options,
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      font: { family: theme.font },
      interaction: { mode: "nearest", intersect: true },
      kiln: {
        font: theme.font, text: theme.of("text"), soft: theme.of("soft"), card: theme.of("card"), mark: spec.x.mark, categories: spec.categories,
        namesAbove: spec.categories && narrow(width), nameRoom: room(width), nameDrop: made.type === "bar" ? 6 : 12, pointNames: made.names, barEnds: made.ends,
      },
      plugins: {
        legend: { display: false },
        tooltip: {
          backgroundColor: theme.of("tip"), titleColor: theme.of("tip-text"), bodyColor: theme.of("tip-text"), padding: 10,
          boxPadding: 4, usePointStyle: true,
          callbacks: {
            title: (items) => (items.length ? categoryOf(items[0]) : ""),
            label: (item) => page.shortened(`${item.dataset.label}: ${item.dataset.words[item.dataIndex]}`, narrow(width) ? 48 : 110),
          },
        },
      },
    };
    return {
      height: made.height,
      categoryOf: (datasetIndex, dataIndex) => categoryOf({ dataset: made.datasets[datasetIndex], dataIndex }),
      configuration: {
        type: made.type,
        data: { datasets: made.datasets },
        options,
        plugins: [...page.marks, { id: "whenDrawn", afterRender: whenDrawn }],
      },
    };
  };
})();
