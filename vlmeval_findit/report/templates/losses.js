// Lost points: a bar for each model, with its score and the points of each error type.
const BARS = 20; // Drawn at first; the others on demand
const wheres = []; // Choices: [1, dataset or average] or [0, model]; the number is a place in a bar

const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(2));
// Error types have the colour of their group.
const colour = (place) => `c${data.error_types[place][3]}`;

function lossText([place, points, events, low, high]) {
  const [, name, meaning] = data.error_types[place];
  const bounds = low === null ? "" : ` (${low.toFixed(1)}–${high.toFixed(1)})`;
  return `${name}: ${points.toFixed(1)} points${bounds}, ${number(events)} errors; ${meaning}`;
}

// The groups of a bar that are drawn: [place of the group, its points, its segments], in the order of the page.
function groupsOf(segments) {
  return data.error_groups.map((_, place) => {
    const its = segments.filter(([of, points]) => data.error_types[of][3] === place && points >= 0.005);
    return [place, its.reduce((sum, [, points]) => sum + points, 0), its];
  }).filter(([, , its]) => its.length);
}

function segmentOf(className, name, points) {
  return make("span", { className: `segment ${className}`, style: `width:${points}%`, title: `${name}: ${points.toFixed(1)} points` },
    make("i", { textContent: name }), " ", make("b", { textContent: points.toFixed(1) }));
}

// An error type of a bar as a button that leads to its answers.
function partOf(segment, [model, where, isAverage, format]) {
  const error_type = data.error_types[segment[0]][0];
  const button = make("button", { type: "button", className: "to-answers", textContent: lossText(segment) });
  button.addEventListener("click", () => filterTo({ model, dataset: isAverage ? "" : where, format, error_type }));
  return make("li", {}, button);
}

// A bar that opens: the error types of each group.
function barOf(bar, title) {
  const [, , , , score, segments] = bar;
  const groups = groupsOf(segments);
  const texts = [`${data.losses.score}: ${score.toFixed(1)}`, ...groups.map(([place, points]) => `${data.error_groups[place][0]}: ${points.toFixed(1)}`)];
  const stack = make("span", { className: "stack", role: "img", ariaLabel: texts.join("; ") },
    make("span", { className: "segment score", style: `width:${score}%`, title: texts[0] }, make("b", { textContent: score.toFixed(1) })),
    ...groups.map(([place, points]) => segmentOf(`c${place}`, data.error_groups[place][0], points)));
  const lists = groups.map(([place, points, its]) => make("li", { title: data.error_groups[place][1] },
    make("i", { className: `c${place}` }), ` ${data.error_groups[place][0]}: ${points.toFixed(1)} points`,
    make("ul", {}, ...its.map((segment) => partOf(segment, bar)))));
  const opened = groups.length ? make("ul", { className: "parts" }, ...lists) : make("p", { textContent: "Nothing was lost." });
  return make("details", { className: "loss" }, make("summary", {}, make("span", { className: "whose", textContent: title }), stack), opened);
}

function lossCell(segment) {
  if (!segment) return make("td", { className: "figure", textContent: "–" });
  const [, points, events, low, high] = segment;
  const bounds = low === null ? "" : `${low.toFixed(1)}–${high.toFixed(1)}`;
  return make("td", { className: "figure" }, points.toFixed(1), make("small", { textContent: bounds }), make("small", { textContent: `${number(events)}×` }));
}

function showLossTable(bars, places, byWhere) {
  const heads = [byWhere ? "Model" : "Dataset", data.losses.score, ...places.map((place) => data.error_types[place][1])];
  at("loss-table").tHead.replaceChildren(make("tr", {}, ...heads.map((textContent) => make("th", { scope: "col", textContent }))));
  at("loss-table").tBodies[0].replaceChildren(...bars.map((bar) => make("tr", {},
    make("th", { scope: "row" }, make("span", { textContent: bar[byWhere ? 0 : 1] })), make("td", { className: "figure", textContent: bar[4].toFixed(1) }),
    ...places.map((place) => lossCell(bar[5].find(([of]) => of === place))))));
  at("meanings").replaceChildren(...places.flatMap((place) =>
    [make("dt", { textContent: data.error_types[place][1] }), make("dd", { textContent: data.error_types[place][2] })]));
}

function showLosses(most = BARS) {
  const [by, name] = wheres[Number(at("loss-of").value)];
  const all = data.losses.bars.filter((bar) => bar[by] === name);
  const bars = all.slice(0, most);
  at("losses").replaceChildren(...bars.map((bar) => barOf(bar, bar[1 - by])));
  at("all-losses").hidden = bars.length === all.length;
  at("all-losses").textContent = `Show all ${all.length.toLocaleString("en")}`;
  const met = new Set(bars.flatMap((bar) => bar[5].map(([place]) => place)));
  const places = data.error_types.map((_, place) => place).filter((place) => met.has(place));
  const drawn = new Set(bars.flatMap((bar) => groupsOf(bar[5]).map(([place]) => place)));
  const key = (className, text, meaning) => make("li", {}, make("i", { className }), ` ${text}`, ...small(meaning));
  at("error_groups").replaceChildren(key("score", data.losses.score, "what was reached"),
    ...data.error_groups.flatMap(([name, meaning], place) => (drawn.has(place) ? [key(`c${place}`, name, meaning)] : [])));
  at("loss-table").parentElement.classList.toggle("many", bars.length > BARS);
  showLossTable(bars, places, by === 1);
}

function startLosses() {
  if (!at("losses")) return;
  const { bars } = data.losses;
  for (const [by, label] of [[1, "All models on"], [0, "All datasets of"]]) {
    const names = [...new Set(bars.map((bar) => bar[by]))];
    at("loss-of").append(make("optgroup", { label }, ...names.map((name, i) => make("option", { value: wheres.length + i, textContent: name }))));
    wheres.push(...names.map((name) => [by, name]));
  }
  if (wheres.filter(([by]) => by === 0).length === 1) at("loss-of").value = wheres.length - 1;
  at("loss-of").addEventListener("change", () => showLosses());
  at("all-losses").addEventListener("click", () => showLosses(Infinity));
  at("whose").addEventListener("submit", (event) => event.preventDefault());
  showLosses();
}
