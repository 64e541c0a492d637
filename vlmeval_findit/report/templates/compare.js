// A against B. Values and counts come from the page's data.
const COUPLES = 4;
const sides = { pair: null, flipped: false, couples: [], page: 0 };
const cardsOf = data.runs.map(() => new Map());
for (const card of data.cards) cardsOf[card.run].set(card.index, card);

const runName = (run) => [run.model, run.format].filter(Boolean).join(" · ");
// The differing parts of two runs' names: the model, the format, or both.
function namesApart(left, right) {
  if (left.model !== right.model) return left.format === right.format ? [left.model, right.model] : [runName(left), runName(right)];
  return [left.format, right.format];
}
const answered = (left, right) => !left.failed && !right.failed;
// The sets of queries: test of a couple, title, number of queries.
const SHOWN = {
  differ: { test: (a, b) => answered(a, b) && a.score !== b.score, name: "that differ", count: (counts) => counts.differ },
  left: { test: (a, b) => answered(a, b) && a.hit && !b.hit, name: "only A finds", count: (counts, flipped) => counts[flipped ? "right" : "left"] },
  right: { test: (a, b) => answered(a, b) && !a.hit && b.hit, name: "only B finds", count: (counts, flipped) => counts[flipped ? "left" : "right"] },
  both: { test: (a, b) => answered(a, b) && a.hit && b.hit, name: "both find", count: (counts) => counts.both },
  neither: { test: (a, b) => answered(a, b) && !a.hit && !b.hit, name: "neither finds", count: (counts) => counts.neither },
  all: { test: () => true, name: "all", count: (counts) => counts.queries },
};

// --- the two sides ----------------------------------------------------------------------------------

const pairsOn = (dataset) => data.pairs.filter((pair) => pair.dataset === dataset);

function namesOf(numbers) {
  const names = [...new Set(numbers)].map((number) => [String(number), runName(data.runs[number])]);
  return names.sort((a, b) => Number(a[0]) - Number(b[0]));
}

function fillLeft(chosen) {
  fill("left", namesOf(pairsOn(at("sides-dataset").value).flatMap((pair) => [pair.left, pair.right])));
  if (chosen !== undefined) at("left").value = String(chosen);
}

function fillRight(chosen) {
  const left = Number(at("left").value);
  const pairs = pairsOn(at("sides-dataset").value).filter((pair) => pair.left === left || pair.right === left);
  fill("right", namesOf(pairs.map((pair) => (pair.left === left ? pair.right : pair.left))));
  if (chosen !== undefined && [...at("right").options].some((option) => option.value === String(chosen))) at("right").value = String(chosen);
}

// The same two names on another dataset, where it has them.
function changeDataset() {
  const before = ["left", "right"].map((id) => at(id).selectedOptions[0].textContent);
  const pairs = pairsOn(at("sides-dataset").value);
  const names = (pair) => [pair.left, pair.right].map((number) => runName(data.runs[number]));
  const same = pairs.find((pair) => names(pair).join("\n") === before.join("\n"));
  const turned = pairs.find((pair) => names(pair).reverse().join("\n") === before.join("\n"));
  const pair = same || turned || pairs[0];
  fillLeft(pair === turned && !same ? pair.right : pair.left);
  fillRight(pair === turned && !same ? pair.left : pair.right);
  choosePair();
}

function choosePair() {
  const [left, right] = ["left", "right"].map((id) => Number(at(id).value));
  sides.pair = data.pairs.find((pair) => (pair.left === left && pair.right === right) || (pair.left === right && pair.right === left));
  sides.flipped = sides.pair.left !== left;
  const names = namesApart(...[left, right].map((number) => data.runs[number]));
  const { counts } = sides.pair;
  const before = at("show").value || "differ";
  const chosen = SHOWN[before].count(counts, sides.flipped) ? before : "all";
  fill("show", Object.entries(SHOWN).map(([key, set]) => [key, `${set.name} (${set.count(counts, sides.flipped)})`]));
  at("show").value = chosen;
  showMetrics(names);
  showCounts(names);
  showCouples();
}

// --- metrics and counts -----------------------------------------------------------------------------

const percent = (value) => (value === null ? "–" : value.toFixed(1));

function signed(value) {
  const digits = Math.abs(value).toFixed(1);
  return digits === "0.0" ? digits : `${value < 0 ? "-" : "+"}${digits}`;
}

// A metric over answered calls has no test where the runs answered different queries, nor has a
// value in a format that was chosen by it.
function chance(p, metric) {
  if (p === null && sides.pair.chosen.includes(metric)) return "see elsewhere";
  if (p === null) return sides.pair.untested.includes(metric) ? "other queries" : data.too_few;
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

// A pair is a row of numbers; with swapped sides its differences change their sign.
function oriented([name, left, right, difference, low, high, p, significant], flipped) {
  if (!flipped) return [name, left, right, difference, low, high, p, significant];
  const turn = (value) => (value === null ? null : 0 - value);
  return [name, right, left, turn(difference), turn(high), turn(low), p, significant];
}

function row(header, values) {
  return make("tr", {}, make("th", { scope: "row" }, make("span", { textContent: header })), ...values.map((textContent) => make("td", { className: "figure", textContent })));
}

function head(id, names) {
  at(id).tHead.replaceChildren(make("tr", {}, ...names.map((textContent) => make("th", { scope: "col" }, make("span", { textContent })))));
}

function differenceRow([name, left, right, value, low, high, p]) {
  const tested = value === null ? ["–", "–", "–"] : [signed(value), low === null ? "–" : `${signed(low)} to ${signed(high)}`, chance(p, name)];
  return row(name, [percent(left), percent(right), ...tested]);
}

// The difference of the first metric as a sentence, which says where it is measured.
function differenceText(numbers, [left, right], where, name) {
  const [metric, , , value, low, high, p, significant] = numbers || [];
  if (value === undefined || value === null) return "";
  if (p === null) return `On ${where}: ${signed(value)} ${name || metric}; no test: ${chance(p, metric)}.`;
  const interval = (from, to) => (from === null ? "so few images say nothing" : `95 % interval ${signed(from)} to ${signed(to)}`);
  const tested = (from, to) => `${interval(from, to)}, p ${p < 0.001 ? "" : "= "}${chance(p, metric)}, ${data.families[sides.pair.family]}`;
  const said = (better, other, by, from, to) => `On ${where}, ${better} has ${by.toFixed(1)} points of ${name || metric} more than ${other} (${tested(from, to)}).`;
  if (!significant) return `On ${where}, ${left} and ${right} cannot be told apart by ${name || metric}: ${signed(value)} (${tested(low, high)}).`;
  return value > 0 ? said(left, right, value, low, high) : said(right, left, -value, -high, -low);
}

// The means over several datasets of the two models, where both runs are those that are reported.
function meansOfPair() {
  const none = { rows: [], over: [] };
  if (data.families[sides.pair.family] !== data.families.MODELS) return none;
  const [left, right] = ["left", "right"].map((id) => data.runs[Number(at(id).value)].model);
  const means = data.means.find((each) => (each.left === left && each.right === right) || (each.left === right && each.right === left));
  return means ? { ...means, rows: means.rows.map((numbers) => oriented(numbers, means.left !== left)) } : none;
}

const bodyTitle = (textContent) => make("tr", {}, make("th", { scope: "rowgroup", colSpan: 6, textContent }));

function showMetrics(names) {
  head("difference", ["Percent", ...names, "Difference", "95 % interval", "p"]);
  const [means, metrics, losses] = at("difference").tBodies;
  const dataset = at("sides-dataset").value;
  const { rows: ofMeans, over, metric } = meansOfPair();
  const ofMetrics = sides.pair.metrics.map((numbers) => oriented(numbers, sides.flipped));
  means.replaceChildren(...ofMeans.map(differenceRow));
  metrics.replaceChildren(...(ofMeans.length ? [bodyTitle(dataset)] : []), ...ofMetrics.map(differenceRow));
  at("pair-family").textContent = data.families[sides.pair.family];
  at("mean-text").textContent = differenceText(ofMeans[0], names, over[0], metric);
  at("difference-text").textContent = differenceText(ofMetrics[0], names, dataset);
  const ofLosses = sides.pair.losses.map((numbers) => oriented(numbers, sides.flipped));
  losses.replaceChildren(...(ofLosses.length ? [bodyTitle("Points lost by")] : []), ...ofLosses.map(differenceRow));
  at("few-images").hidden = !at("difference").textContent.includes(data.too_few);
}

function showCounts([left, right]) {
  const { counts } = sides.pair;
  head("finds", ["Queries", `${right} finds`, `${right} does not`]);
  at("finds").tBodies[0].replaceChildren(
    row(`${left} finds`, [counts.both, SHOWN.left.count(counts, sides.flipped)]),
    row(`${left} does not`, [SHOWN.right.count(counts, sides.flipped), counts.neither]));
  const lacking = counts.queries - counts.answered;
  at("unanswered").textContent = lacking ? `${lacking} of ${counts.queries} queries are in no cell: a call failed.` : "";
}

// --- answers ----------------------------------------------------------------------------------------

function showCouples() {
  const [left, right] = ["left", "right"].map((id) => cardsOf[Number(at(id).value)]);
  const apart = ([a, b]) => Math.abs(a.score - b.score);
  const { test } = SHOWN[at("show").value];
  sides.couples = [...left.values()].filter((card) => right.has(card.index)).map((card) => [card, right.get(card.index)])
    .filter(([a, b]) => test(a, b)).sort((a, b) => apart(b) - apart(a) || a[0].index - b[0].index);
  sides.page = 0;
  showCouplePage();
}

function showCouplePage() {
  const pages = Math.max(1, Math.ceil(sides.couples.length / COUPLES));
  const start = sides.page * COUPLES;
  const there = sides.couples.length;
  const all = SHOWN[at("show").value].count(sides.pair.counts, sides.flipped);
  at("couple-count").textContent = there < all ? `${there} of ${all} queries; of the others this page does not have both answers (--compare adds those of two runs)` : `${there} ${there === 1 ? "query" : "queries"}`;
  at("couples").replaceChildren(...sides.couples.slice(start, start + COUPLES).map((couple, i) => coupleOf(couple, start + i)));
  at("couple-page").textContent = `page ${sides.page + 1} of ${pages}`;
  at("couples-previous").disabled = sides.page === 0;
  at("couples-next").disabled = sides.page === pages - 1;
}

function coupleOf(couple, place) {
  const [left, right] = couple;
  const frame = firstFrame(couple);
  const halves = couple.map((card, half) => {
    const words = [make("b", { textContent: card.model }), ...small(card.format), errors(card), make("span", { className: "verdict", textContent: verdict(card) })];
    return cardButton(card, words, () => open(sides.couples.flat(), 2 * place + half, backToCouple), frame);
  });
  const apart = answered(left, right) ? `A - B: ${signed(left.score - right.score)}` : "a call failed";
  return make("article", { className: "couple" },
    make("h3", {}, left.label, make("small", { textContent: `row ${left.index} · ${apart}` })), make("div", { className: "halves" }, ...halves));
}

function backToCouple(place) {
  const page = Math.floor(place / 2 / COUPLES);
  if (page !== sides.page) { sides.page = page; showCouplePage(); }
  at("couples").querySelectorAll(".card")[place - 2 * page * COUPLES]?.focus();
}

function turnCouples(step) {
  sides.page += step;
  showCouplePage();
}

function turnSides() {
  const [left, right] = [at("right").value, at("left").value];
  fillLeft(left);
  fillRight(right);
  choosePair();
}

function startCompare() {
  if (!data.pairs.length) return;
  fill("sides-dataset", [...new Set(data.pairs.map((pair) => pair.dataset))].map((value) => [value, value]));
  at("sides-dataset").addEventListener("change", changeDataset);
  at("left").addEventListener("change", () => { fillRight(at("right").value); choosePair(); });
  at("right").addEventListener("change", choosePair);
  at("show").addEventListener("change", showCouples);
  at("turn").addEventListener("click", turnSides);
  at("sides").addEventListener("submit", (event) => event.preventDefault());
  at("couples-previous").addEventListener("click", () => turnCouples(-1));
  at("couples-next").addEventListener("click", () => turnCouples(1));
  const first = data.pairs[data.opening_pair];
  at("sides-dataset").value = first.dataset;
  fillLeft(first.left);
  fillRight(first.right);
  choosePair();
}
