// Editing: a copy of a candidate whose corners and edges follow pointers and arrow keys.
const editing = { row: null, side: 0, boxes: [], labels: [], box: 0, handle: 0, past: [], group: null };

// Which numbers of its box a handle moves: x1 (0) or x2 (2), y1 (1) or y2 (3).
const HANDLES = [
  { name: "top left corner", moves: [0, 1] }, { name: "bottom right corner", moves: [2, 3] },
  { name: "whole box", moves: [0, 1, 2, 3] },
  { name: "top right corner", moves: [2, 1] }, { name: "bottom left corner", moves: [0, 3] },
  { name: "left edge", moves: [0] }, { name: "top edge", moves: [1] }, { name: "right edge", moves: [2] }, { name: "bottom edge", moves: [3] },
];
const LEAST = 1; // Pixels of a side
const STEP = 1;
const LONG_STEP = 10; // With Shift

const isEditing = () => editing.row !== null;
const within = (value, low, high) => Math.min(Math.max(value, low), high);
const rounded = (value) => Math.round(value * 10) / 10;

// Moves some numbers of a box within its image; the whole box keeps its size.
function moved(box, moves, dx, dy, image) {
  const [x1, y1, x2, y2] = box;
  if (moves.length === 4) {
    const [right, down] = [within(dx, -x1, image.w - x2), within(dy, -y1, image.h - y2)];
    return [x1 + right, y1 + down, x2 + right, y2 + down].map(rounded);
  }
  const bounds = [[0, x2 - LEAST], [0, y2 - LEAST], [x1 + LEAST, image.w], [y1 + LEAST, image.h]];
  return box.map((value, i) => (moves.includes(i) ? rounded(within(value + (i % 2 ? dy : dx), ...bounds[i])) : value));
}

function handlePlace([x1, y1, x2, y2], moves) {
  const of = (low, high, lowAt, highAt) => {
    if (moves.length === 4 || !(moves.includes(lowAt) || moves.includes(highAt))) return (low + high) / 2;
    return moves.includes(lowAt) ? low : high;
  };
  return [of(x1, x2, 0, 2), of(y1, y2, 1, 3)];
}

const currentBox = () => editing.boxes[editing.box];
const imageOfEdit = () => data.images[editing.row.image];

function remember() {
  editing.past.push({ boxes: editing.boxes, labels: editing.labels, box: editing.box });
}

function changeBox(box) {
  editing.boxes = editing.boxes.map((each, i) => (i === editing.box ? box : each));
  placeEditParts();
}

// --- what is drawn ---

// Dots of a few pixels on the screen, and what a finger meets around them, whatever the zoom.
function handleElement(handle, number) {
  const element = draw("g", { class: "handle", tabindex: 0, role: "button", "aria-label": `${handle.name}: arrow keys move it` });
  element.append(draw("path", { class: "reach" }), draw("path", { class: "rim" }), draw("path", { class: "dot" }));
  element.addEventListener("focus", () => { editing.handle = number; });
  element.addEventListener("pointerdown", (event) => startDrag(event, element, handle, number));
  return element;
}

function startDrag(event, element, handle, number) {
  event.stopPropagation(); // The picture stays
  event.preventDefault();
  element.setPointerCapture(event.pointerId);
  element.focus({ preventScroll: true });
  editing.handle = number;
  remember();
  const svg = element.ownerSVGElement;
  const [from, box] = [onPicture(svg, event), currentBox()];
  const follow = (now) => {
    const to = onPicture(svg, now);
    changeBox(moved(box, handle.moves, to.x - from.x, to.y - from.y, imageOfEdit()));
  };
  element.addEventListener("pointermove", follow);
  for (const end of ["pointerup", "pointercancel"]) {
    element.addEventListener(end, () => element.removeEventListener("pointermove", follow), { once: true });
  }
}

function placeEditParts() {
  for (const [i, element] of [...editing.group.querySelectorAll(".edited")].entries()) {
    for (const rect of element.querySelectorAll("rect")) {
      for (const [key, value] of Object.entries(rectOf(editing.boxes[i]))) rect.setAttribute(key, value);
    }
  }
  for (const [i, element] of [...editing.group.querySelectorAll(".handle")].entries()) {
    const [x, y] = handlePlace(currentBox(), HANDLES[i].moves);
    for (const path of element.children) path.setAttribute("d", `M${x} ${y}h.01`);
  }
}

// Draws all boxes anew: after another box is chosen, added or removed.
function drawEdit() {
  const boxes = editing.boxes.map((box, i) => {
    const element = outline(`edited${i === editing.box ? " current" : ""}`, box);
    element.addEventListener("pointerdown", () => selectBox(i));
    return element;
  });
  const handles = editing.boxes.length ? HANDLES.map(handleElement) : [];
  editing.group.replaceChildren(...boxes, ...handles);
  if (editing.boxes.length) placeEditParts();
  showEditTools();
}

function focusHandle() {
  editing.group.querySelectorAll(".handle")[editing.handle]?.focus({ preventScroll: true });
}

function showEditTools() {
  const { row, boxes, labels, box } = editing;
  at("class-choice").hidden = !row.classes.length || !boxes.length;
  fill("class", row.classes.map((name) => [name, name]));
  at("class").value = labels[box] ?? "";
  at("next-box").hidden = boxes.length < 2;
  at("add-box").hidden = row.single && boxes.length > 0;
  at("remove-box").hidden = row.single || !boxes.length;
  at("other-start").hidden = row.candidates.length < 2;
  at("other-start").textContent = `Start from ${LETTERS[1 - editing.side]}`;
}

// --- what is done ---

function startEdit(row, side) {
  const { boxes, labels } = row.candidates[side];
  const group = draw("g", { class: "editing" });
  Object.assign(editing, { row, side, boxes: boxes.map((box) => box.map(Number)), labels: [...labels], box: row.candidates[side].differing[0] ?? 0, handle: 0, past: [], group });
  const svg = document.querySelector("#picture svg");
  svg.setAttribute("role", "group"); // An image has no parts to be reached
  svg.querySelector(".candidates").after(group);
  drawEdit();
  focusHandle();
}

function selectBox(box) {
  if (box === editing.box) return;
  editing.box = box;
  drawEdit();
}

function nextBox() {
  if (!editing.boxes.length) return;
  selectBox((editing.box + 1) % editing.boxes.length);
  focusHandle();
}

// Adds a box in the middle of what is seen.
function addBox() {
  if (at("add-box").hidden) return;
  const view = document.querySelector("#picture svg").viewBox.baseVal;
  remember();
  const box = [0.4, 0.4, 0.6, 0.6].map((share, i) => rounded(i % 2 ? view.y + share * view.height : view.x + share * view.width));
  editing.boxes = [...editing.boxes, box];
  if (editing.row.classes.length) editing.labels = [...editing.labels, editing.row.classes[0]];
  editing.box = editing.boxes.length - 1;
  drawEdit();
  focusHandle();
}

function removeBox() {
  if (at("remove-box").hidden) return;
  remember();
  const others = (values) => values.filter((_, i) => i !== editing.box);
  editing.labels = others(editing.labels);
  editing.boxes = others(editing.boxes);
  editing.box = 0;
  drawEdit();
  focusHandle();
}

function changeClass() {
  remember();
  editing.labels = editing.labels.map((name, i) => (i === editing.box ? at("class").value : name));
}

function undoEdit() {
  if (!editing.past.length) return;
  Object.assign(editing, editing.past.pop());
  drawEdit();
  focusHandle();
}

function moveByKey(right, down, isLong) {
  if (!editing.boxes.length) return;
  const step = isLong ? LONG_STEP : STEP;
  remember();
  changeBox(moved(currentBox(), HANDLES[editing.handle].moves, right * step, down * step, imageOfEdit()));
}

function endEdit() {
  editing.group?.parentElement?.setAttribute("role", "img");
  editing.group?.remove();
  editing.row = null;
}
