// Make elements from the page's data. Text of replies never becomes markup.
const data = JSON.parse(document.getElementById("data").textContent);

const at = (id) => document.getElementById(id);
const isMade = (section) => at(section) !== null && !at(section).classList.contains("failed");
const SVG = "http://www.w3.org/2000/svg";

function make(name, values = {}, ...children) {
  const element = document.createElement(name);
  Object.assign(element, values);
  element.append(...children);
  return element;
}

function draw(name, values, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// What stands where an image should be; boxes may lie there, so it is drawn last.
function notHere({ w, h, name }) {
  const words = `${name} is not here`;
  return draw("text", { class: "gone", x: w / 2, y: h / 2, "font-size": w / Math.max(18, words.length * 0.7) }, words);
}

function fill(id, options, all) {
  const first = all === undefined ? [] : [["", all]];
  at(id).replaceChildren(...[...first, ...options].map(([value, textContent]) => make("option", { value, textContent })));
  shortenOptions(at(id));
}

const NARROW = matchMedia("(max-width: 760px)");
const isNarrow = () => NARROW.matches;

// A closed select cuts what it has no room for: on a phone options have short names, which differ.
function shortenOptions(select) {
  for (const option of select.options) option.label = (isNarrow() && data.short_names[option.textContent]) || option.textContent;
  // Chromium measures new labels only when the select is laid out again.
  select.style.display = "none";
  select.getBoundingClientRect();
  select.style.display = "";
}

function startSelects() {
  const shorten = () => document.querySelectorAll("select").forEach(shortenOptions);
  NARROW.addEventListener("change", shorten);
  shorten();
}
const small = (textContent) => (textContent ? [make("small", { textContent })] : []);
