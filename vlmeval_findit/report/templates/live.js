// Loads the page again, unless it is paused, and leaves the reader where they were.
const button = document.getElementById("pause");
const parts = [...document.querySelectorAll("details")];
const tables = [...document.querySelectorAll(".wide")];
let timer = 0;

function isPaused() { return button.getAttribute("aria-pressed") === "true"; }

// The browser stores this in the page's entry of its history, with the scroll position.
function remember(place) {
  history.replaceState({ paused: isPaused(), place }, "");
}

function load() {
  remember({
    closed: parts.filter((part) => !part.open).map((part) => part.id),
    left: tables.map((table) => table.scrollLeft),
    focus: document.activeElement.id,
  });
  location.reload();
}

function restore({ paused, place }) {
  button.setAttribute("aria-pressed", String(paused));
  if (!place) return;
  for (const part of parts) part.open = !place.closed.includes(part.id);
  tables.forEach((table, at) => { table.scrollLeft = place.left[at] || 0; });
  document.getElementById(place.focus)?.focus({ preventScroll: true });
}

function wait() {
  clearTimeout(timer);
  if (!isPaused()) timer = setTimeout(load, 1000 * Number(button.dataset.seconds));
}

button.addEventListener("click", () => {
  button.setAttribute("aria-pressed", String(!isPaused()));
  remember();
  wait();
});
if (history.state) restore(history.state);
wait();
