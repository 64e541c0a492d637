// What the page's data say as elements.  Everything that a model said is text, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
for (const card of data.cards) Object.assign(card, data.runs[card.run]);

const at = (id) => document.getElementById(id);
const CLASSES = { truth: "truth", hit: "hit", miss: "miss", "wrong label": "wrong", salvaged: "salvaged", ignored: "ignored", "not counted": "uncounted", option: "option" };
// Keys of the legend that stand there only where a box has that role.
const SELDOM = ["salvaged", "ignored", "not counted"];
function showKeys(roles) {
  at("legend").hidden = !roles.size;
  for (const role of SELDOM) at("legend").querySelector(`.${CLASSES[role]}`).hidden = !roles.has(role);
}
// A sign and a word, so that no line is told by its colour alone.
const SIGNS = { truth: "= expected", hit: "✓ right", miss: "✗ wrong", "wrong label": "≠ wrong label", option: "○ option" };
const SVG = "http://www.w3.org/2000/svg";

function make(name, values = {}, ...children) {
  const element = document.createElement(name);
  Object.assign(element, values);
  element.append(...children);
  return element;
}

function draw(name, values, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function fill(id, options, all) {
  const first = all === undefined ? [] : [["", all]];
  at(id).replaceChildren(...[...first, ...options].map(([value, textContent]) => make("option", { value, textContent })));
}

function shown(role) {
  return at("legend").querySelector(`input[value="${role}"]`).checked;
}

// A point, shaded so that it is seen on any ground: upright where it is a hit, else on its side, so
// that neither is told by its colour alone.  Its size is a share of the picture's.
function cross({ x, y }, entry, name, role) {
  const arm = Math.max(entry.w, entry.h) / 40;
  const side = arm * Math.SQRT1_2;
  const d = role === "hit"
    ? `M${x - arm} ${y}H${x + arm}M${x} ${y - arm}V${y + arm}`
    : `M${x - side} ${y - side}L${x + side} ${y + side}M${x - side} ${y + side}L${x + side} ${y - side}`;
  const group = draw("g", { class: "point", "data-role": role });
  group.append(draw("path", { class: "shade", d }), draw("path", { class: name, d }));
  return group;
}

// Lines across a region that was answered, so that it is told from an object without colours: they
// rise where it is a hit, else they fall.
let hatches = 0;
function hatched(svg, entry, name) {
  const step = Math.max(entry.w, entry.h) / 40;
  const id = `hatch-${hatches++}`;
  const pattern = draw("pattern", { id, patternUnits: "userSpaceOnUse", width: step, height: step, patternTransform: `rotate(${name === "hit" ? -45 : 45})` });
  pattern.append(draw("rect", { class: name, width: step, height: step / 7 }));
  svg.append(pattern);
  return `fill: url(#${id})`;
}

// A region: what its outlines enclose, but for holes.
function area(svg, entry, outlines, name, role) {
  const d = outlines.map((line) => `M${line.join(" ")}Z`).join("");
  const group = draw("g", { "data-role": role });
  const style = ["truth", "ignored"].includes(name) ? "" : hatched(svg, entry, name);
  if (name === "truth") group.append(draw("path", { class: "shade", d }));
  group.append(draw("path", { class: name, d, style, "fill-rule": "evenodd" }));
  return group;
}

// A picture with its boxes.  The user space is the original picture's pixels, so that a box lies
// where its numbers say, however large the thumbnail is.
function picture(entry, boxes, alt) {
  const svg = draw("svg", { class: "picture", viewBox: `0 0 ${entry.w} ${entry.h}`, role: "img", "aria-label": alt });
  if (entry.src) {
    svg.append(draw("image", { href: entry.src, width: entry.w, height: entry.h, preserveAspectRatio: "none" }));
  } else {
    svg.append(draw("text", { class: "gone", x: entry.w / 2, y: entry.h / 2, "font-size": entry.w / 18 }, `${entry.name} is not here`));
  }
  for (const [role, x1, y1, x2, y2, label, iou, outlines] of boxes) {
    if (!shown(role)) continue;
    const place = { x: Math.min(x1, x2), y: Math.min(y1, y2), width: Math.abs(x2 - x1), height: Math.abs(y2 - y1) };
    if (role === "truth" && !outlines) svg.append(draw("rect", { class: "shade", ...place }));
    const isPoint = !place.width && !place.height;
    const shape = outlines ? area(svg, entry, outlines, CLASSES[role], role) : isPoint ? cross(place, entry, CLASSES[role], role) : draw("rect", { class: CLASSES[role], "data-role": role, ...place });
    const overlap = role === "salvaged" || iou === null ? "" : `, IoU ${iou.toFixed(2)}`;
    shape.append(draw("title", {}, `${role}${label ? ` ${label}` : ""}${overlap}`));
    svg.append(shape);
  }
  return svg;
}

// The pictures that stand for an answer: those that belong side by side, else the frame that is
// wanted, else the first with a box.
function pictures(card, wanted) {
  const beside = card.frames.filter((frame) => frame.name);
  const first = card.frames.find((frame) => frame.frame === wanted) || card.frames.find((frame) => frame.boxes.length) || card.frames[0];
  const frames = beside.length ? beside : first ? [first] : [];
  const drawn = frames.map((frame) =>
    picture(data.pictures[frame.picture], frame.boxes, [`${card.dataset}, row ${card.index}: ${card.label}`, frame.name].filter(Boolean).join(", ")));
  return drawn.length ? [make("span", { className: "pictures" }, ...drawn)] : [];
}

function verdict(card) {
  const parts = [card.failed ? "no answer" : `${data.figure} ${card.good.toFixed(0)} %`];
  if (card.reason) parts.push(card.reason);
  if (card.spread) parts.push(`formats differ by ${card.spread.toFixed(0)}`);
  return parts.join(" · ");
}

// Lines of text: what was right, what was answered.
function lines(card) {
  if (!card.lines.length) return [];
  return [make("span", { className: "lines" }, ...card.lines.map(([role, text]) =>
    make("span", { className: `line ${CLASSES[role]}` }, make("b", { textContent: SIGNS[role] }), ` ${text}`)))];
}

// An answer as a button that opens it: pictures, lines, then words.
function cardButton(card, words, onOpen, frame) {
  const button = make("button", { type: "button", className: "card" }, ...pictures(card, frame), ...lines(card),
    make("span", { className: "words" }, ...words, make("span", { className: "reply", textContent: data.texts[card.reply] })));
  button.addEventListener("click", onOpen);
  return button;
}

const small = (textContent) => (textContent ? [make("small", { textContent })] : []);
