"use strict";
// What scripts of a page share: colours as the style sheet has them now, and numbers as a person reads them.

const page = {};

page.theme = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  return {
    of,
    fill: (ink) => of(ink),
    line: (ink) => of(ink + "-line"),
    font: getComputedStyle(document.body).fontFamily,
  };
};

// Three significant digits; thousands parted by a narrow space.
page.number = (value) => {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-4) return value.toExponential(1);
  if (size < 1000) return String(Number(value.toPrecision(3)));
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
};

page.shortened = (text, most) => (text.length <= most ? text : text.slice(0, most - 1).trimEnd() + "…");

// The lines of a category, none longer than there is room for: one that is goes on in a second, and is shortened there.
page.lines = (text, most) => text.split("\n").flatMap((line) => {
  if (line.length <= most) return [line];
  const space = line.lastIndexOf(" ", most);
  const end = space > most / 2 ? space : most;
  return [line.slice(0, end), page.shortened(line.slice(end).trimStart(), most)];
});
