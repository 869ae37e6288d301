"use strict";
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
