// Lost points: a bar for each model, with its score and the points of each error type.
const BARS = 20; // Drawn at first; the others on demand
const BUTTON = 1; // Points from which a segment is wide enough to be pointed at
const wheres = []; // Choices: [1, dataset or average] or [0, model]; the number is a place in a bar

const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(2));
const colour = (place) => `c${place % 8}${place >= 8 ? " striped" : ""}`;

function lossText([place, points, events, low, high]) {
  const [, name, meaning] = data.error_types[place];
  const bounds = low === null ? "" : ` (${low.toFixed(1)}–${high.toFixed(1)})`;
  return `${name}: ${points.toFixed(1)} points${bounds}, ${number(events)} errors; ${meaning}`;
}

function segmentOf(segment, [model, where, isAverage, format]) {
  const [place, points] = segment;
  const [key, name] = data.error_types[place];
  const title = lossText(segment);
  const style = `width:${points}%`;
  if (points < BUTTON) return make("span", { className: `segment ${colour(place)}`, style, title });
  const button = make("button", { type: "button", className: `segment ${colour(place)}`, style, ariaLabel: title },
    make("i", { textContent: name }), " ", make("b", { textContent: points.toFixed(1) }));
  button.addEventListener("click", () => filterTo({ model, dataset: isAverage ? "" : where, format, error_type: key }));
  return button;
}

function barOf(bar, title) {
  const [model, where, , , score, segments] = bar;
  const stack = make("div", { className: "stack", role: "group", ariaLabel: `${model}, ${where}` },
    make("span", { className: "segment score", style: `width:${score}%`, title: `${data.losses.score}: ${score.toFixed(1)}` }, make("b", { textContent: score.toFixed(1) })),
    ...segments.filter(([, points]) => points >= 0.005).map((segment) => segmentOf(segment, bar)));
  return make("div", { className: "loss" }, make("span", { className: "whose", textContent: title }), stack);
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
  const drawn = new Set(bars.flatMap((bar) => bar[5].filter(([, points]) => points >= 0.005).map(([place]) => place)));
  const key = (className, text, title = "") => make("li", { title }, make("i", { className }), ` ${text}`);
  at("error_types").replaceChildren(key("score", data.losses.score),
    ...places.filter((place) => drawn.has(place)).map((place) => key(colour(place), data.error_types[place][1], data.error_types[place][2])));
  at("loss-table").parentElement.classList.toggle("many", bars.length > BARS);
  showLossTable(bars, places, by === 1);
}

function showSegmentText(event) {
  const segment = event.target.closest(".segment");
  if (segment) at("segment-text").textContent = segment.ariaLabel || segment.title;
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
  for (const what of ["mouseover", "focusin"]) at("losses").addEventListener(what, showSegmentText);
  showLosses();
}
