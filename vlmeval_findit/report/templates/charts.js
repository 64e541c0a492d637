// Charts: each is drawn when it comes into view or is printed, as wide as there is room, and says what
// its marks are.
const views = new Map();
const begun = new WeakSet();
const TITLE = 180; // Pixels that the title of a panel may need
const MARK = ".role-mark > [aria-label]";

// As many panels in a row as fit, in rows of about the same length.
function fit(spec, width) {
  const { panel, panels, stretch, widest, gap } = spec.usermeta;
  // Names are short already, and cut once more they may be alike.
  const labels = Math.min(spec.usermeta.labels, width - 130);
  const most = Math.max(1, Math.floor((width - labels) / panel));
  spec.columns = Math.ceil(panels / Math.ceil(panels / most));
  const view = spec.spec || spec; // A chart of one panel has no facets
  if (!stretch) fitMap(view, width - labels);
  if (stretch) view.width = Math.min(widest, Math.floor((width - labels) / spec.columns) - gap);
  // A title that is wider than its panel would end beyond the page.
  if (spec.facet && view.width < TITLE) spec.config.header.labelFontSize = 11;
  spec.config.axis.labelLimit = labels - 12;
  spec.config.legend.columns = Math.max(1, Math.floor(width / 300));
  spec.config.legend.labelLimit = Math.min(300, width - 40);
  return spec;
}

// A map that is wider than there is room has narrower columns, with their names at an angle.
function fitMap(view, width) {
  const { x } = view.encoding;
  const columns = x.sort.length;
  if (columns * view.width.step <= width) return;
  view.width.step = Math.max(44, Math.floor((width - 20) / columns));
  const { labelExpr, ...axis } = x.axis;
  x.axis = { ...axis, labelAngle: -60, labelLimit: 190 };
}

function specOf(figure) {
  if (figure.matches(".costs")) return costSpec(figure);
  return structuredClone(data.charts[figure.dataset.charts][choicesOf(figure) || 0]);
}

const choicesOf = (figure) => [...figure.querySelectorAll("select")].map((select) => select.value).join();

async function drawFirst(figure) {
  if (begun.has(figure)) return;
  begun.add(figure);
  await drawChart(figure);
}

async function drawChart(figure) {
  const place = figure.querySelector(".drawing");
  // What is not shown has no width: it gets that of its section.
  const width = place.clientWidth || figure.closest("section").clientWidth;
  if (!width) return;
  figure.dataset.width = width;
  const choices = choicesOf(figure);
  const box = make("div");
  const spec = fit(specOf(figure), width);
  if (!spec.data.values.length) return drawNothing(figure);
  // The page's policy lets nothing be evaluated: expressions are interpreted.
  const { view } = await vegaEmbed(box, spec, { ast: true, renderer: "svg", actions: false, tooltip: false, defaultStyle: false });
  if (choices !== choicesOf(figure)) return view.finalize();
  views.get(figure)?.finalize();
  views.set(figure, view);
  place.replaceChildren(box);
  figure.querySelector(".save").hidden = false;
  reachMarks(place);
}

// A chart without points has no scales.
function drawNothing(figure) {
  views.get(figure)?.finalize();
  views.delete(figure);
  figure.querySelector(".drawing").replaceChildren(make("p", { className: "nothing", textContent: "Nothing to draw." }));
  figure.querySelector(".save").hidden = true;
}

// One mark of a chart is a stop of the Tab key; from there the arrow keys go on.
function reachMarks(place) {
  place.querySelectorAll(MARK).forEach((mark, i) => mark.setAttribute("tabindex", i ? -1 : 0));
}

function turnMark(event) {
  const mark = event.target.closest(MARK);
  const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (event.key === "Escape") at("tip").hidden = true;
  if (!mark || !step) return;
  event.preventDefault();
  const marks = [...event.currentTarget.querySelectorAll(MARK)];
  const next = marks[marks.indexOf(mark) + step];
  if (!next) return;
  mark.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
}

function showTip(event) {
  const mark = event.target.closest(MARK);
  at("tip").hidden = !mark;
  if (!mark) return;
  at("tip").textContent = mark.getAttribute("aria-label");
  const { left, top, bottom, width } = mark.getBoundingClientRect();
  const tip = at("tip").getBoundingClientRect();
  const x = Math.max(8, Math.min(left + width / 2 - tip.width / 2, innerWidth - tip.width - 8));
  at("tip").style.translate = `${x}px ${top > tip.height + 12 ? top - tip.height - 6 : bottom + 6}px`;
}

// Reaching a mark may scroll the page: the tip goes with it.
function followMark() {
  const mark = [...document.querySelectorAll(MARK)].find((element) => element.matches(":hover, :focus"));
  showTip({ target: mark || document.body });
}

async function saveChart(event) {
  const figure = event.currentTarget.closest("figure");
  const kind = event.currentTarget.value;
  const href = await views.get(figure).toImageURL(kind, 2);
  make("a", { href, download: `${figure.dataset.charts}.${kind}` }).click();
}

function showDetail() {
  for (const detail of document.querySelectorAll(".detail")) {
    detail.open = detail.dataset.detail === at("detail-of").value;
    detail.classList.toggle("off", !detail.open);
  }
}

// In print all details are open but those of bars, which a table has; afterwards they are restored.
// A browser prints what is there when this event ends: to draw a chart needs nothing that comes later.
function openForPrint() {
  const closed = [...document.querySelectorAll("details:not([open], .loss)")];
  for (const detail of closed) detail.open = true;
  document.querySelectorAll(".chart").forEach(drawFirst);
  addEventListener("afterprint", () => { for (const detail of closed) detail.open = false; }, { once: true });
}

function startCharts() {
  const figures = document.querySelectorAll(".chart");
  const visible = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) drawFirst(target);
    }
  }, { rootMargin: "600px" });
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const figure = target.closest("figure");
      if (views.has(figure) && target.clientWidth && Math.abs(target.clientWidth - figure.dataset.width) > 8) drawChart(figure);
    }
  });
  for (const figure of figures) {
    const place = figure.querySelector(".drawing");
    visible.observe(figure);
    resized.observe(place);
    for (const what of ["pointerover", "focusin", "click"]) place.addEventListener(what, showTip);
    for (const what of ["pointerleave", "focusout"]) place.addEventListener(what, () => { at("tip").hidden = true; });
    place.addEventListener("keydown", turnMark);
    for (const select of figure.querySelectorAll("select")) select.addEventListener("change", () => drawChart(figure));
    for (const button of figure.querySelectorAll(".save button")) button.addEventListener("click", saveChart);
  }
  for (const form of document.querySelectorAll(".chart form, #details form")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  if (at("detail-of")) {
    at("detail-of").addEventListener("change", showDetail);
    showDetail();
  }
  addEventListener("scroll", followMark, { passive: true });
  addEventListener("beforeprint", openForPrint);
}
