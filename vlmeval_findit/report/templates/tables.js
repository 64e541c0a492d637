// Tables of scores: a click on a head sorts, two fields filter, what is shown is copied.
const MISSING = /^[–?]?$/;

const headText = (head) => head.querySelector(".head").textContent;
const intervalOf = (cell) => cell.querySelector("small")?.textContent || "";
// The ranks behind a value, as #1–3
const ranksOf = (text) => text.match(/ #(\S+)$/)?.[1] || "";
// The text of a cell without its interval
const valueOf = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "SMALL").map((node) => node.textContent).join("").trim();

function sortKey(cell) {
  const text = valueOf(cell);
  if (MISSING.test(text)) return null;
  if (cell.tagName === "TH") return text.toLowerCase();
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

function compareKeys(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// Values begin with the highest, names and ranks with the first. What is missing, and published rows, stay last.
function sortBy(table, place) {
  const heads = [...table.tHead.rows[0].cells];
  const head = heads[place];
  const isValue = table.tBodies[0].rows[0].cells[place].classList.contains("figure");
  const first = isValue ? "descending" : "ascending";
  const second = isValue ? "ascending" : "descending";
  const order = head.ariaSort === first ? second : first;
  for (const each of heads) each.ariaSort = each === head ? order : null;
  const turn = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((element) => ({ element, key: sortKey(element.cells[place]), quoted: element.classList.contains("published") }));
  rows.sort((a, b) => a.quoted - b.quoted || (a.key === null) - (b.key === null) || (a.key === null ? 0 : turn * compareKeys(a.key, b.key)));
  table.tBodies[0].append(...rows.map(({ element }) => element));
}

function addHeads(table) {
  for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
    const text = head.firstChild;
    const button = make("button", { type: "button", className: "head", textContent: text.textContent, title: "Sort" });
    text.replaceWith(button);
    button.addEventListener("click", () => sortBy(table, place));
  }
}

// A value on a dataset leads to the answers that it is of.
function linkCells(table) {
  const known = new Set(data.cards.map((card) => `${card.model}\n${card.dataset}`));
  const heads = [...table.tHead.rows[0].cells].map(headText);
  for (const element of table.tBodies[0].rows) {
    const model = element.querySelector("th")?.textContent;
    for (const [place, dataset] of heads.entries()) {
      const cell = element.cells[place];
      if (!cell.classList.contains("figure") || !known.has(`${model}\n${dataset}`)) continue;
      const text = cell.firstChild;
      const button = make("button", { type: "button", className: "to-answers", textContent: text.textContent, title: `Answers of ${model} on ${dataset}` });
      text.replaceWith(button);
      button.addEventListener("click", () => filterTo({ model, dataset, format: hasReported(model, dataset) ? REPORTED : "" }));
    }
  }
}

// --- keys -------------------------------------------------------------------------------------------

// The buttons of a table are one stop of the Tab key; from there the arrow keys, Home and End go on.
const buttonIn = (cell) => (cell && !cell.hidden ? cell.querySelector("button") : null);

function firstButton(table) {
  const cells = [...table.rows].filter((element) => !element.hidden).flatMap((element) => [...element.cells]);
  return cells.map(buttonIn).find(Boolean);
}

function stopAt(table, button) {
  for (const each of table.querySelectorAll("button")) each.tabIndex = each === button ? 0 : -1;
}

// What is hidden is no stop.
function keepStop(table) {
  const stop = [...table.querySelectorAll("button")].find((button) => button.tabIndex === 0);
  if (!stop?.checkVisibility()) stopAt(table, firstButton(table));
}

function buttonBeyond(button, key) {
  const cell = button.closest("td, th");
  const row = cell.parentElement;
  const inRow = [...row.cells].map(buttonIn).filter(Boolean);
  const inColumn = [...row.closest("table").rows].filter((element) => !element.hidden).map((element) => buttonIn(element.cells[cell.cellIndex])).filter(Boolean);
  return {
    ArrowLeft: () => inRow[inRow.indexOf(button) - 1], ArrowRight: () => inRow[inRow.indexOf(button) + 1],
    ArrowUp: () => inColumn[inColumn.indexOf(button) - 1], ArrowDown: () => inColumn[inColumn.indexOf(button) + 1],
    Home: () => inRow[0], End: () => inRow.at(-1),
  }[key]?.();
}

function moveInTable(event) {
  const button = event.target.closest("button");
  if (!button || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const next = buttonBeyond(button, event.key);
  if (!next) return; // The key scrolls
  event.preventDefault();
  next.focus();
}

function reachButtons(table) {
  stopAt(table, firstButton(table));
  // It scrolls by its buttons, too, and needs no stop of its own.
  table.parentElement.removeAttribute("tabindex");
  table.addEventListener("focusin", (event) => stopAt(table, event.target.closest("button")));
  table.addEventListener("keydown", moveInTable);
}

// --- filters ----------------------------------------------------------------------------------------

// Any of the parts between commas
function isNamed(text, wanted) {
  const parts = wanted.toLowerCase().split(",").map((part) => part.trim()).filter(Boolean);
  return !parts.length || parts.some((part) => text.toLowerCase().includes(part));
}

function filterTable(table, models, sets) {
  for (const element of table.tBodies[0].rows) {
    const name = element.querySelector("th") || element.cells[0];
    element.hidden = !isNamed(name.textContent, models);
  }
  const isFigure = (place) => [...table.tBodies[0].rows].some((element) => element.cells[place].classList.contains("figure"));
  for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
    const hidden = isFigure(place) && !isNamed(headText(head), sets);
    for (const element of table.rows) element.cells[place].hidden = hidden;
  }
  keepStop(table);
}

// --- copies -----------------------------------------------------------------------------------------

// The heads and rows that are shown; ranks and an interval stand behind their value, or in columns of their own.
function shownRows(table, apart) {
  const places = [...[...table.tHead.rows[0].cells].keys()].filter((place) => !table.tHead.rows[0].cells[place].hidden);
  const rows = [...table.tBodies[0].rows].filter((element) => !element.hidden);
  const placesWith = (part) => new Set(places.filter((place) => rows.some((element) => part(element.cells[place]))));
  const withIntervals = placesWith(intervalOf);
  const withRanks = placesWith((cell) => ranksOf(valueOf(cell)));
  const cellsOf = (cell, place, isHead) => {
    const value = isHead ? headText(cell) : valueOf(cell);
    const interval = isHead ? `${value} 95 % interval` : intervalOf(cell);
    if (!apart) return [isHead || !interval ? value : `${value} (${interval})`];
    const ranks = ranksOf(value);
    const texts = [ranks ? value.slice(0, -ranks.length - 2) : value];
    if (withRanks.has(place)) texts.push(isHead ? `${value} ranks` : ranks);
    if (withIntervals.has(place)) texts.push(interval);
    return texts;
  };
  const texts = (element, isHead) => places.flatMap((place) => cellsOf(element.cells[place], place, isHead));
  return [texts(table.tHead.rows[0], true), ...rows.map((element) => texts(element, false))];
}

function asMarkdown(table) {
  const [heads, ...rows] = shownRows(table, false);
  const line = (cells) => `| ${cells.map((text) => text.replace(/[\\|`*_<>[\]&$~]/g, "\\$&")).join(" | ")} |`;
  return [line(heads), line(heads.map(() => "")).replaceAll("  ", " --- "), ...rows.map(line)].join("\n") + "\n";
}

function asCsv(table) {
  // A text that begins like a formula would be computed by a sheet.
  const plain = (text) => (/^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return shownRows(table, true).map((cells) => cells.map((text) => quoted(plain(text))).join(",")).join("\n") + "\n";
}

function addTools(table) {
  const status = make("span", { role: "status" });
  const by = (label, placeholder) => make("input", { type: "search", placeholder, ariaLabel: label });
  const [models, sets] = [by("Models of this table", "models, any of a, b"), by("Columns of this table", "datasets, any of a, b")];
  for (const field of [models, sets]) field.addEventListener("input", () => filterTable(table, models.value, sets.value));
  const copies = [["Markdown", asMarkdown], ["CSV", asCsv]].map(([textContent, write]) => {
    const button = make("button", { type: "button", textContent });
    button.addEventListener("click", async () => {
      const copied = await navigator.clipboard.writeText(write(table)).then(() => true, () => false);
      status.textContent = copied ? `${textContent} copied` : "The browser let nothing be copied";
    });
    return button;
  });
  const tools = make("form", { className: "choices tools" }, models, sets, make("span", {}, "Copy as ", ...copies.flatMap((button) => [button, " "])), status);
  table.setAttribute("aria-description", "Arrow keys go from value to value");
  tools.addEventListener("submit", (event) => event.preventDefault());
  table.parentElement.before(tools);
}

function startTables() {
  for (const table of document.querySelectorAll(".sorted table")) {
    addHeads(table);
    reachButtons(table);
  }
  for (const table of document.querySelectorAll(".scores table")) {
    if (!table.tBodies[0].rows.length) continue;
    addHeads(table);
    if (isMade("gallery")) linkCells(table);
    reachButtons(table);
    addTools(table);
  }
}
