"use strict";
// What scripts of a page share: colours as the style sheet has them now, and numbers as a person reads them.

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

// Three significant digits; thousands parted by a narrow space.
page.number = (value) => {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-4) return value.toExponential(1);
  if (size < 1000) return String(Number(value.toPrecision(3)));
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
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
