// The gallery: answers by filters, in an order, page by page.
const PAGE = 24;
const gallery = { found: [], page: 0 };
const FILTERS = ["model", "dataset", "format", "reason", "cause", "part"];

const byPlace = (a, b) => a.dataset.localeCompare(b.dataset) || a.index - b.index;
const ORDERS = {
  worst: (a, b) => a.good - b.good,
  best: (a, b) => b.good - a.good,
  disagree: (a, b) => b.spread - a.spread || a.model.localeCompare(b.model) || byPlace(a, b) || a.good - b.good,
  row: (a, b) => byPlace(a, b) || a.model.localeCompare(b.model),
};

const REPLIES = { "": () => true, "as asked": (card) => !card.reason, "not as asked": (card) => card.reason !== "" };

function matches(card) {
  for (const key of ["model", "dataset", "format"]) {
    if (at(key).value && card[key] !== at(key).value) return false;
  }
  if (at("cause").value && !card.causes.includes(at("cause").value)) return false;
  if (at("part").value && !card.parts.includes(Number(at("part").value))) return false;
  const reason = at("reason").value;
  if (!(REPLIES[reason] || ((one) => one.reason === reason))(card)) return false;
  if (at("order").value === "disagree" && !card.spread) return false;
  const wanted = at("search").value.trim().toLowerCase();
  return !wanted || `${card.label}\n${data.texts[card.reply]}`.toLowerCase().includes(wanted);
}

function filter() {
  gallery.found = data.cards.filter(matches).sort(ORDERS[at("order").value]);
  gallery.page = 0;
  showPage();
}

// Everything that is not named is set back to all, and the keyboard goes to the gallery.
function filterTo(values) {
  for (const id of FILTERS) at(id).value = values[id] || "";
  Object.assign(at("search"), { value: "" });
  at("order").value = "worst";
  filter();
  at("gallery-title").focus();
  at("gallery").scrollIntoView();
}

function galleryCard(card, place) {
  const words = [make("b", { textContent: card.label }), make("span", { className: "verdict", textContent: verdict(card) }),
    ...small(`${card.model} · ${card.dataset} · row ${card.index}`), ...small(card.format)];
  return cardButton(card, words, () => open(gallery.found, place, backToGallery));
}

function backToGallery(place) {
  const page = Math.floor(place / PAGE);
  if (page !== gallery.page) { gallery.page = page; showPage(); }
  at("cards").children[place - page * PAGE]?.focus();
}

function showPage() {
  const pages = Math.max(1, Math.ceil(gallery.found.length / PAGE));
  gallery.page = Math.min(Math.max(gallery.page, 0), pages - 1);
  const start = gallery.page * PAGE;
  at("cards").replaceChildren(...gallery.found.slice(start, start + PAGE).map((card, i) => galleryCard(card, start + i)));
  at("count").textContent = gallery.found.length === 1 ? "1 answer" : `${gallery.found.length.toLocaleString("en")} answers`;
  at("page").textContent = `page ${gallery.page + 1} of ${pages}`;
  at("previous").disabled = gallery.page === 0;
  at("next").disabled = gallery.page === pages - 1;
}

function turnPage(step) {
  gallery.page += step;
  showPage();
}

function turnWithKeys(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  turnPage(step);
  at("cards").firstChild?.focus();
}

function startGallery() {
  showKeys(new Set(data.cards.flatMap((card) => card.frames.flatMap((frame) => frame.boxes.map(([role]) => role)))));
  at("legend").addEventListener("change", () => { showPage(); if (sides.pair) showCouplePage(); });
  for (const id of ["cards", "pages"]) at(id).addEventListener("keydown", turnWithKeys);
  const distinct = (key) => [...new Set(data.cards.map((card) => card[key]))].filter(Boolean).sort().map((value) => [value, value]);
  for (const key of ["model", "dataset", "format"]) fill(key, distinct(key), "all");
  fill("reason", [["as asked", "as asked"], ["not as asked", "not as asked"], ...distinct("reason")], "all");
  const met = new Set(data.cards.flatMap((card) => card.causes));
  fill("cause", data.causes.filter(([key]) => met.has(key)), "all");
  fill("part", data.parts.map((name, place) => [String(place), name]).sort((a, b) => a[1].localeCompare(b[1])), "all");
  at("part").parentElement.hidden = !data.parts.length;
  at("format").parentElement.hidden = !distinct("format").length;
  at("cause").parentElement.hidden = !met.size;
  for (const id of [...FILTERS, "order"]) at(id).addEventListener("change", filter);
  at("search").addEventListener("input", filter);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("previous").addEventListener("click", () => turnPage(-1));
  at("next").addEventListener("click", () => turnPage(1));
  filter();
}
