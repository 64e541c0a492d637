// The review: a row at a time, keys and buttons, and what is told after a choice.
const names = (row, isOpen) => (isOpen ? unseal(row.sealed).sources.map((source, i) => `${LETTERS[i]} ${source}`) : LETTERS);
const currentRow = () => data.rows[progress.place];
const isDecided = (row) => decisionOf(row) !== undefined;
// No row is left to decide: the next key is no choice, until one goes to a row.
let isAtEnd = false;
const say = (text) => { at("told").textContent = text; };

// --- what is shown ---

function questionOf(row) {
  if (row.candidates.length === 1) return "Is A right?";
  const isShared = row.candidates.some(({ boxes, differing }) => differing.length < boxes.length);
  return `Which is right, A or B?${isShared ? " Thin boxes are in both." : ""}`;
}

// Of a candidate that has nothing to show for itself.
function emptyText({ boxes, differing }) {
  if (!boxes.length) return " (no box)";
  return differing.length ? "" : " (no more boxes)";
}

const answerFrom = ({ boxes, labels }) => ({ boxes, labels });

// The candidate that an answer is; -1: none.
function sideOf(row, answer) {
  const text = JSON.stringify(answerFrom(answer));
  return row.candidates.findIndex((each) => JSON.stringify(answerFrom(each)) === text);
}

// The button of a decision.
function pressedFor(row, decision) {
  if (!decision) return "";
  const { verdict, accept } = decision;
  if (["both", "exclude", "unsure"].includes(verdict)) return verdict;
  return LETTERS[sideOf(row, accept[0])]?.toLowerCase() ?? "edit";
}

function showButtons(row) {
  const pressed = pressedFor(row, decisionOf(row));
  for (const button of at("choice").children) {
    button.setAttribute("aria-pressed", String(button.id === pressed));
    button.disabled = isAtEnd;
  }
  const isOne = row.candidates.length === 1;
  for (const id of ["b", "both"]) at(id).hidden = isOne;
  for (const [i, candidate] of row.candidates.entries()) {
    at(LETTERS[i].toLowerCase()).lastElementChild.textContent = `${LETTERS[i]} is right${emptyText(candidate)}`;
  }
  at("previous").disabled = progress.place === 0;
  at("next").disabled = progress.place === data.rows.length - 1;
  at("undo").disabled = !isEditing() && !progress.entries.length;
  at("choice").hidden = isEditing();
  at("edit-tools").hidden = !isEditing();
}

// What the row is, once it is decided.
function answerOf(row, { verdict }) {
  const { sources, kind, votes, voters } = unseal(row.sealed);
  const meanings = { label: "is the label", models: `is the models’: ${votes} of ${voters.length} models`, decoy: "is something else of the picture" };
  const candidates = sources.map((source, i) => `${LETTERS[i]} ${meanings[source]}.`);
  return [`You: ${VERDICTS[verdict]}.`, ...candidates, kind ? `Doubt: ${kind}.` : "A random row."].join(" ");
}

function showPicture(row, decision) {
  const svg = makeZoomable(rowPicture(row, names(row, decision)), turn);
  if (pressedFor(row, decision) === "edit") svg.append(drawnAnswer(decision.accept[0]));
  const shots = row.shots.map((shot) => {
    const image = data.images[shot];
    return make("figure", { className: "shot" }, pictureOf(image, "reference picture"), make("figcaption", { textContent: "reference" }));
  });
  at("shots").replaceChildren(...shots);
  at("picture").replaceChildren(svg);
  svg.afterMove = () => scaleLetters(svg);
  scaleLetters(svg);
}

function showRow() {
  const row = currentRow();
  const decision = decisionOf(row);
  at("place").textContent = `Row ${progress.place + 1} of ${data.rows.length}`;
  at("asked").textContent = row.asked;
  at("question").textContent = decision ? answerOf(row, decision) : questionOf(row);
  showPicture(row, decision);
  showButtons(row);
  showProgress();
}

function showProgress() {
  const done = data.rows.filter(isDecided).length;
  at("done").value = done;
  at("count").textContent = `${done} decided`;
  at("save").lastElementChild.textContent = unsaved() ? `Save (${unsaved()})` : "Saved";
  at("not-kept").hidden = kept.works;
  at("reviewer").textContent = progress.reviewer || "Name";
}

// --- what is done ---

function goTo(place, atEnd = false) {
  if (place < 0 || place >= data.rows.length) return;
  progress.place = place;
  keepProgress();
  showPlace(atEnd);
}

function showPlace(atEnd) {
  endEdit();
  isAtEnd = atEnd;
  showRow();
}

const turn = (step) => { if (!isEditing()) goTo(progress.place + step); };

// The next row without a decision, from here on and then from the first; none: it stays, at the end.
function goOn() {
  const { place } = progress;
  const order = [...data.rows.keys()].map((i) => (place + 1 + i) % data.rows.length);
  const next = order.find((i) => !isDecided(data.rows[i]));
  goTo(next ?? place, next === undefined);
}

function finish(verdict, accept) {
  const row = currentRow();
  const number = progress.place + 1;
  decide(row, verdict, accept);
  goOn();
  say(`Row ${number}. ${answerOf(row, decisionOf(row))}`);
  propose();
}

function propose() {
  const isAll = data.rows.every(isDecided);
  const unchanged = unchangedListed();
  at("proposal").hidden = !isAll && (unchanged === 0 || unchanged % ENOUGH !== 0);
  at("proposal-text").textContent = isAll
    ? "All rows are decided. Save the file. To change one, go back to it."
    : `The last ${unchanged} doubted labels are right: the others probably are, too. Save the file and stop here, or go on.`;
}

const VERDICT_OF = { label: "label", models: "model", decoy: "edited" };

function choose(side) {
  const row = currentRow();
  if (!row.candidates[side]) return;
  finish(VERDICT_OF[unseal(row.sealed).sources[side]], [answerFrom(row.candidates[side])]);
}

function chooseBoth() {
  const row = currentRow();
  if (row.candidates.length === 2) finish("both", row.candidates.map(answerFrom));
}

function edit(side = 0) {
  const row = currentRow();
  endEdit();
  startEdit(row, side);
  showButtons(row);
  at("question").textContent = "Drag corners and edges, or Tab to one and use the arrow keys.";
}

function acceptEdit() {
  const answer = answerFrom(editing);
  const same = sideOf(editing.row, answer);
  endEdit();
  if (same >= 0) choose(same);
  else finish("edited", [answer]);
}

function cancelEdit() {
  endEdit();
  showRow();
}

function undo() {
  if (isEditing()) { undoEdit(); return; }
  const last = takeBack();
  if (!last) return;
  at("proposal").hidden = true;
  goTo(data.rows.findIndex((row) => row.index === last.record.index));
  const number = progress.place + 1;
  say(last.isSaved ? `A file has row ${number}. Choose again: the last choice counts.` : `The choice in row ${number} is taken back.`);
}

function save() {
  const address = URL.createObjectURL(new Blob([fileText()], { type: "application/jsonl" }));
  make("a", { href: address, download: "reviews.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  markSaved();
  showProgress();
  say("reviews.jsonl is among your downloads. It has all decisions: an earlier one is no longer needed.");
}

async function read(file) {
  if (!file) return;
  try {
    const told = takeFile(await file.text());
    if (progress.reviewer) closeName();
    goOn();
    say(told);
  } catch (error) {
    say(error.message);
    at("who-told").textContent = error.message;
  }
}

// --- keys and buttons ---

const ACTIONS = {
  a: () => choose(0), b: () => choose(1), both: chooseBoth, edit: () => edit(), unsure: () => finish("unsure", []), exclude: () => finish("exclude", []),
  undo, previous: () => turn(-1), next: () => turn(1), nearer: () => zoomAll(1.5), farther: () => zoomAll(1 / 1.5), whole: () => zoomAll(0), save,
  accept: acceptEdit, cancel: cancelEdit, "next-box": nextBox, "add-box": addBox, "remove-box": removeBox, "other-start": () => edit(1 - editing.side),
  reviewer: askName, "stop-not": () => { at("proposal").hidden = true; },
};
const ANY_KEYS = { z: "undo", s: "save", "+": "nearer", "=": "nearer", "-": "farther", 0: "whole" };
const CHOICE_KEYS = { ...ANY_KEYS, a: "a", b: "b", 2: "both", e: "edit", x: "exclude", u: "unsure", ArrowLeft: "previous", ArrowRight: "next" };
const EDIT_KEYS = { ...ANY_KEYS, e: "other-start", n: "next-box", i: "add-box", Delete: "remove-box", Backspace: "remove-box", Enter: "accept", Escape: "cancel" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const MAY_REPEAT = ["previous", "next", "nearer", "farther"]; // While a key is held

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || at("who").open) return;
  if (event.target.closest("select, input")) return;
  const isPressed = event.target.closest("button") && event.key === "Enter";
  const arrow = ARROWS[event.key];
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const action = (isEditing() ? EDIT_KEYS : CHOICE_KEYS)[key];
  if (isEditing() && arrow) moveByKey(...arrow, event.shiftKey);
  else if (event.shiftKey && arrow) panAll(...arrow);
  else if (action && !isPressed && !at(action).disabled && !(event.repeat && !MAY_REPEAT.includes(action))) ACTIONS[action]();
  else return;
  event.preventDefault();
}

// The next key is a choice: it must not go to an input that is no longer shown.
function closeName() {
  at("who").close();
  document.activeElement.blur();
}

function prepareName() {
  at("who-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = at("name").value.trim();
    if (name !== progress.reviewer) becomeReviewer(name);
    keepProgress();
    closeName();
    goTo(progress.place, data.rows.every(isDecided));
  });
  at("who").addEventListener("cancel", (event) => { if (!progress.reviewer) event.preventDefault(); });
}

function askName() {
  at("name").value = progress.reviewer;
  at("who").showModal();
  at("name").select();
}

// Another window with this page went on. Nothing is stored: that would overwrite its next decision.
function followOtherWindow(event) {
  if (event.key !== keyOf(progress.reviewer)) return;
  becomeReviewer(progress.reviewer);
  showPlace(data.rows.every(isDecided));
}

function startReview() {
  at("data").remove(); // What is shown later is nowhere in the page before
  becomeReviewer();
  startTheme();
  startSelects();
  prepareName();
  for (const [id, action] of Object.entries(ACTIONS)) at(id).addEventListener("click", action);
  at("class").addEventListener("change", changeClass);
  for (const id of ["earlier", "earlier-first"]) at(id).addEventListener("change", (event) => read(event.target.files[0]));
  addEventListener("keydown", onKey);
  addEventListener("storage", followOtherWindow);
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => { event.preventDefault(); read(event.dataTransfer.files[0]); });
  addEventListener("resize", () => document.querySelectorAll("#picture svg").forEach(scaleLetters));
  addEventListener("beforeunload", (event) => { if (!kept.works && unsaved()) event.preventDefault(); });
  isAtEnd = data.rows.every(isDecided);
  showRow();
  if (!progress.reviewer) askName();
}

startReview();
