// Loads the page again, unless it is paused, and leaves the reader where they were.
const button = document.getElementById("pause");
const parts = [...document.querySelectorAll("details")];
const tables = [...document.querySelectorAll(".wide")];
let timer = 0;

function isPaused() { return button.getAttribute("aria-pressed") === "true"; }

// The browser keeps this with the page's entry in its history, as it does how far it is scrolled.
function remember(place) {
  history.replaceState({ paused: isPaused(), place }, "");
}

function load() {
  remember({
    closed: parts.filter((one) => !one.open).map((one) => one.id),
    left: tables.map((one) => one.scrollLeft),
    focus: document.activeElement.id,
  });
  location.reload();
}

function restore({ paused, place }) {
  button.setAttribute("aria-pressed", String(paused));
  if (!place) return;
  for (const one of parts) one.open = !place.closed.includes(one.id);
  tables.forEach((one, at) => { one.scrollLeft = place.left[at] || 0; });
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
