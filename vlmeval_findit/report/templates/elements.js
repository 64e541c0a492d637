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

function fill(id, options, all) {
  const first = all === undefined ? [] : [["", all]];
  at(id).replaceChildren(...[...first, ...options].map(([value, textContent]) => make("option", { value, textContent })));
}

const isNarrow = () => matchMedia("(max-width: 760px)").matches;
const small = (textContent) => (textContent ? [make("small", { textContent })] : []);
