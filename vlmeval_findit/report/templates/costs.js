// Score against cost: the points of the chosen panel by the chosen cost, and those without it.
const LISTED = 20; // More points without a cost are folded
const FEW = 8; // Among more points, a label that ends at its point would be taken for another's

function chosenCost(figure) {
  const { charts, choices, logarithmic, panels, unit } = data.costs[figure.dataset.charts];
  const of = (name) => Number(figure.querySelector(`[name=${name}]`)?.value || 0);
  const panel = panels[of("panel")];
  const choice = of("cost");
  const known = panel.points.filter(({ costs }) => costs[choice]).map(({ costs, ...point }) => ({ ...point, ...costs[choice] }));
  return {
    panel, choice, logarithmic, unit, title: choices[choice], spec: structuredClone(charts[choice]),
    known: known.sort((a, b) => a.cost - b.cost),
    lacking: panel.points.filter(({ costs }) => !costs[choice]),
  };
}

function costSpec(figure) {
  const { panel, choice, logarithmic, title, known, spec } = chosenCost(figure);
  spec.data.values = known;
  const [labels] = spec.usermeta.embedOptions.patch[0].value;
  if (known.length <= FEW) {
    labels.anchor.push("bottom-left", "top-left");
    labels.offset.push(13, 13);
  }
  spec.description = `${panel.title}: ${spec.description}`;
  for (const { encoding } of panel.is_log[choice] ? spec.layer : []) {
    const { zero, ...scale } = encoding.x.scale;
    encoding.x.scale = { ...scale, type: "log" };
    encoding.x.title = title + logarithmic;
  }
  return spec;
}

function showCostText(figure) {
  const { panel, title, unit, known, lacking } = chosenCost(figure);
  const front = known.filter((point) => point.front).map(({ name, score, digits }) => `${name} (${score.toFixed(1)}${unit}, ${digits})`);
  figure.querySelector(".front").textContent = front.join("; ") || "none";
  const list = figure.querySelector(".lacking");
  list.hidden = !lacking.length;
  list.open = lacking.length <= LISTED;
  list.querySelector("summary").textContent = `Not drawn: ${lacking.length} of ${panel.points.length}, whose ${title} are not known`;
  list.querySelector("p").textContent = lacking.map((point) => point.name).join("; ");
}

function startCosts() {
  for (const figure of document.querySelectorAll(".costs")) {
    showCostText(figure);
    for (const select of figure.querySelectorAll("select")) select.addEventListener("change", () => showCostText(figure));
  }
}
