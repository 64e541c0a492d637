// The answers: by filters, in an order, page by page.
const PAGE = 12;
const QUERIES = 3; // On a page of all models
// A page is a list of groups of answers: one group, or one of each query.
const gallery = { cards: [], pages: [], page: 0 };
const reportedRuns = new Set(data.reported);
for (const card of data.cards) Object.assign(card, data.runs[card.run], { reported: reportedRuns.has(card.run) });
const SELECTS = ["model", "dataset", "format", "error_type", "size", "reason", "part", "doubt"];
const IOUS = ["iou-from", "iou-to"];

const byPlace = (a, b) => a.dataset.localeCompare(b.dataset) || a.index - b.index;
const ORDERS = {
  mix: (a, b) => a.score - b.score,
  worst: (a, b) => a.score - b.score,
  best: (a, b) => b.score - a.score,
  disagree: (a, b) => b.spread - a.spread || a.model.localeCompare(b.model) || byPlace(a, b) || a.score - b.score,
  row: (a, b) => byPlace(a, b) || a.model.localeCompare(b.model),
  models: (a, b) => byPlace(a, b) || data.models.indexOf(a.model) - data.models.indexOf(b.model),
};

const NO_ERROR = "none";
const ANY_DOUBT = "any doubt";
const REPLIES = { "": () => true, "as asked": (card) => !card.reason, "not as asked": (card) => card.reason !== "" };

function isWithin(iou) {
  const [from, to] = IOUS.map((id) => at(id).value);
  if (from === "" && to === "") return true;
  return iou !== null && iou >= Number(from || 0) && iou <= Number(to || 1);
}

const REPORTED = "reported formats";
const hasReported = (model, dataset) => data.cards.some((card) => card.reported && card.model === model && card.dataset === dataset);

function matches(card) {
  for (const key of ["model", "dataset"]) {
    if (at(key).value && card[key] !== at(key).value) return false;
  }
  const format = at("format").value;
  if (format && !(format === REPORTED ? card.reported : card.format === format)) return false;
  const error_type = at("error_type").value;
  if (error_type === NO_ERROR ? card.error_types.length : error_type && !card.error_types.includes(error_type)) return false;
  if (at("size").value && !card.sizes.includes(at("size").value)) return false;
  if (!isWithin(card.iou)) return false;
  if (at("part").value && !card.parts.includes(Number(at("part").value))) return false;
  const doubt = at("doubt").value;
  if (doubt && !(doubt === ANY_DOUBT ? card.doubt : card.doubt === doubt)) return false;
  const reason = at("reason").value;
  if (!(REPLIES[reason] || ((answer) => answer.reason === reason))(card)) return false;
  if (at("order").value === "disagree" && !card.spread) return false;
  const text = at("search").value.trim().toLowerCase();
  return !text || `${card.label}\n${data.texts[card.reply]}`.toLowerCase().includes(text);
}

// The kinds that a mix shows by turns: right answers, near misses, and those of each error type, the
// most frequent first.
function kindsOf(cards) {
  const near = cards.filter((card) => !card.hit && (card.iou || card.score) > 0).sort((a, b) => b.iou - a.iou || b.score - a.score);
  const byErrorType = data.error_types.map(([key]) => cards.filter((card) => card.error_types.includes(key)));
  return [cards.filter((card) => !card.error_types.length && card.hit), near, ...byErrorType.sort((a, b) => b.length - a.length)];
}

// The first page of a mix, each answer on another picture while there are any; the others follow.
function mix(cards) {
  const kinds = kindsOf(cards).filter((kind) => kind.length);
  const [chosen, met] = [new Set(), new Set()];
  const place = (card) => `${card.dataset}/${card.index}`;
  for (let turn = 0; chosen.size < Math.min(PAGE, cards.length) && turn < PAGE * kinds.length; turn++) {
    const left = kinds[turn % kinds.length].filter((card) => !chosen.has(card));
    const card = left.find((candidate) => !met.has(place(candidate))) || left[0];
    if (card) { chosen.add(card); met.add(place(card)); }
  }
  return [...chosen, ...cards.filter((card) => !chosen.has(card))];
}

const isOfModels = () => at("order").value === "models";

// Answers of several models to one query: those of most models first, then those furthest apart.
function queriesOf(cards) {
  const groups = [];
  for (const card of cards) {
    const last = groups.at(-1);
    if (last && byPlace(last[0], card) === 0) last.push(card);
    else groups.push([card]);
  }
  const spread = (group) => Math.max(...group.map((card) => card.score)) - Math.min(...group.map((card) => card.score));
  const models = (group) => new Set(group.map((card) => card.model)).size;
  return groups.filter((group) => models(group) > 1).sort((a, b) => models(b) - models(a) || spread(b) - spread(a));
}

const chunks = (list, size) => Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));

function filter() {
  gallery.cards = data.cards.filter(matches).sort(ORDERS[at("order").value]);
  if (at("order").value === "mix") gallery.cards = mix(gallery.cards);
  if (isOfModels()) {
    const queries = queriesOf(gallery.cards);
    gallery.cards = queries.flat();
    gallery.pages = chunks(queries, QUERIES);
  } else {
    gallery.pages = chunks(gallery.cards, PAGE).map((cards) => [cards]);
  }
  gallery.page = 0;
  showPage();
}

// Filters that are not named are reset to all.
function setFilters(values) {
  for (const id of [...SELECTS, ...IOUS, "search"]) at(id).value = "";
  at("order").value = "mix";
  for (const [id, value] of Object.entries(values)) at(id).value = value;
  filter();
}

function filterTo(values) {
  if (!isMade("gallery")) return;
  at("fold").open = true; // Show the chosen filters
  setFilters(values);
  at("gallery-title").focus();
  at("gallery").scrollIntoView();
}

function galleryCard(card, place) {
  const words = [make("b", { textContent: card.label }), errors(card), make("span", { className: "verdict", textContent: verdict(card) }),
    ...small(doubtOf(card)),
    ...small(card.spread && at("order").value === "disagree" ? `formats differ by ${card.spread.toFixed(0)}` : ""),
    ...small(`${card.model} · ${card.dataset} · row ${card.index}`), ...small(card.format)];
  return cardButton(card, words, () => open(gallery.cards, place, backToGallery));
}

// A query: what its models answered, side by side.
function galleryQuery(cards, start) {
  const [first] = cards;
  const frame = firstFrame(cards);
  const halves = cards.map((card, i) => {
    const words = [make("b", { textContent: card.model }), errors(card), make("span", { className: "verdict", textContent: verdict(card) }), ...small(card.format)];
    return cardButton(card, words, () => open(gallery.cards, start + i, backToGallery), frame);
  });
  return make("article", { className: "query" },
    make("h3", {}, first.label, make("small", { textContent: `${first.dataset} · row ${first.index}` })), make("div", { className: "halves" }, ...halves));
}

const startOf = (page) => gallery.pages.slice(0, page).flat(2).length;

function backToGallery(place) {
  const page = gallery.pages.findIndex((_, at) => place < startOf(at + 1));
  if (page !== gallery.page) { gallery.page = page; showPage(); }
  at("cards").querySelectorAll(".card")[place - startOf(page)]?.focus();
}

function showPage() {
  const pages = Math.max(1, gallery.pages.length);
  gallery.page = Math.min(Math.max(gallery.page, 0), pages - 1);
  let place = startOf(gallery.page);
  const shown = [];
  for (const cards of gallery.pages[gallery.page] || []) {
    const start = place;
    if (isOfModels()) shown.push(galleryQuery(cards, start));
    else shown.push(...cards.map((card, i) => galleryCard(card, start + i)));
    place += cards.length;
  }
  at("cards").replaceChildren(...shown);
  const answers = gallery.cards.length === 1 ? "1 answer" : `${gallery.cards.length.toLocaleString("en")} answers`;
  const queries = gallery.pages.flat().length;
  at("count").textContent = isOfModels() ? `${answers} to ${queries === 1 ? "1 query" : `${queries.toLocaleString("en")} queries`}` : answers;
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
  at("cards").querySelector(".card")?.focus();
}

// The answer that the page's address names, among all answers.
function openLinked() {
  if (!location.hash.startsWith("#answer=")) return;
  const card = linkedCard();
  setFilters({});
  if (card) open(gallery.cards, gallery.cards.indexOf(card), backToGallery);
  else at("count").textContent = `This page does not have the answer of its address. ${at("count").textContent}`;
}

function fillFilters() {
  const met = (key) => [...new Set(data.cards.flatMap((card) => card[key]))].filter(Boolean).sort();
  const same = (values) => values.map((value) => [value, value]);
  for (const key of ["model", "dataset"]) fill(key, same(met(key)), "all");
  at("order").querySelector("[value=models]").hidden = met("model").length < 2;
  // A page opens on what its tables are of.
  const isChoice = data.cards.some((card) => card.reported) && data.cards.some((card) => !card.reported);
  fill("format", [...same(isChoice ? [REPORTED] : []), ...same(met("format"))], "all");
  at("format").value = isChoice ? REPORTED : "";
  const doubts = met("doubt");
  fill("doubt", same(doubts.length ? [ANY_DOUBT, ...doubts] : []), "all");
  fill("reason", same(["as asked", "not as asked", ...met("reason")]), "all");
  const error_types = new Set(met("error_types"));
  fill("error_type", [...data.error_types.filter(([key]) => error_types.has(key)), [NO_ERROR, "no error"]], "all");
  const sizes = new Set(met("sizes"));
  fill("size", same(["small", "medium", "large", "no area"].filter((size) => sizes.has(size))), "all");
  fill("part", data.parts.map((name, place) => [String(place), name]).sort((a, b) => a[1].localeCompare(b[1])), "all");
  // Hide filters with nothing to choose.
  for (const id of ["error_type", "size", "part", "doubt"]) at(id).parentElement.hidden = at(id).options.length < 2;
  // A single model, dataset or format is that of all answers.
  for (const id of ["model", "dataset", "format"]) at(id).parentElement.hidden = at(id).options.length < 3;
  at("error_type").parentElement.hidden = !error_types.size;
  at("ious").hidden = data.cards.every((card) => card.iou === null);
}

function startGallery() {
  showKeys(new Set(data.cards.flatMap((card) => card.frames.flatMap((frame) => frame.boxes.map(([role]) => role)))));
  at("legend").addEventListener("change", () => { showPage(); if (sides.pair) showCouplePage(); });
  for (const id of ["cards", "pages"]) at(id).addEventListener("keydown", turnWithKeys);
  fillFilters();
  at("fold").open = !isNarrow();
  for (const id of [...SELECTS, "order"]) at(id).addEventListener("change", filter);
  for (const id of ["search", ...IOUS]) at(id).addEventListener("input", filter);
  at("all-answers").addEventListener("click", () => setFilters({}));
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("previous").addEventListener("click", () => turnPage(-1));
  at("next").addEventListener("click", () => turnPage(1));
  addEventListener("hashchange", openLinked);
  filter();
}
