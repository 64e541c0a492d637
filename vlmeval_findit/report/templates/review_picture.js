// A row's picture: what its candidates have in common thin, where they differ in their colours.
const LETTERS = ["A", "B"];

const rectOf = ([x1, y1, x2, y2]) => ({ x: Math.min(x1, x2), y: Math.min(y1, y2), width: Math.abs(x2 - x1), height: Math.abs(y2 - y1) });

function outline(className, box) {
  const group = draw("g", { class: className });
  group.append(draw("rect", { class: "shade", ...rectOf(box) }), draw("rect", { class: "line", ...rectOf(box) }));
  return group;
}

// The letter of a box: A at its top left and B at its bottom right, so that neither hides the other.
function letter(side, [x1, y1, x2, y2], text, image) {
  const isFirst = side === 0;
  const [x, y] = isFirst ? [Math.max(x1, 0), y1] : [Math.min(x2, image.w), y2];
  const isAtEdge = isFirst ? y1 < image.h * 0.06 : y2 > image.h * 0.94;
  const above = isFirst !== isAtEdge;
  return draw("text", { class: `letter c-${LETTERS[side]}`, x, y, dy: above ? "-.3em" : "1em", "text-anchor": isFirst ? "start" : "end" }, text);
}

const isEqual = (one, other) => one.every((value, i) => value === other[i]);

function candidateParts(row, side, names) {
  const image = data.images[row.image];
  const { boxes, labels, differing } = row.candidates[side];
  const other = row.candidates[1 - side];
  return differing.flatMap((i) => {
    // Lines at the same place take turns: neither covers the other.
    const isCovered = other?.differing.some((j) => isEqual(other.boxes[j], boxes[i]));
    const words = [names[side], labels[i]].filter(Boolean).join(" ");
    return [outline(`c-${LETTERS[side]}${isCovered ? " turns" : ""}`, boxes[i]), letter(side, boxes[i], words, image)];
  });
}

function commonParts(row) {
  const [{ boxes, differing }] = row.candidates;
  return boxes.filter((_, i) => !differing.includes(i)).map((box) => outline("common", box));
}

// Letters keep their size on the screen while the picture is zoomed.
function scaleLetters(svg) {
  const matrix = svg.getScreenCTM();
  if (matrix?.a) svg.style.setProperty("--unit", 1 / matrix.a);
}

function pictureOf(image, alt, ...drawn) {
  const svg = draw("svg", { class: "picture", viewBox: `0 0 ${image.w} ${image.h}`, role: "img", "aria-label": alt });
  if (image.src) svg.append(draw("image", { href: image.src, width: image.w, height: image.h, preserveAspectRatio: "none" }));
  svg.append(...drawn, ...(image.src ? [] : [notHere(image)]));
  return svg;
}

function rowPicture(row, names) {
  const drawn = draw("g", { class: "candidates" });
  const sides = row.candidates.map((_, side) => candidateParts(row, side, names));
  drawn.append(...commonParts(row), ...sides.flat());
  return pictureOf(data.images[row.image], `${row.asked}, with ${row.candidates.length === 1 ? "A" : "A and B"}`, drawn);
}

// Boxes that the reviewer drew.
function drawnAnswer({ boxes, labels }) {
  const group = draw("g", { class: "drawn" });
  for (const [i, box] of boxes.entries()) {
    const [x, y] = [Math.min(box[0], box[2]), Math.min(box[1], box[3])];
    group.append(outline("edited", box), draw("text", { class: "letter edited", x, y, dy: "1.1em", dx: ".3em" }, labels[i] || "yours"));
  }
  return group;
}
