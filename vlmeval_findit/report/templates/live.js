// Loads the page again, unless it is paused; the browser keeps the reader's place.
const button = document.getElementById("pause");
let timer = 0;

function setPaused(paused) {
  button.setAttribute("aria-pressed", String(paused));
  clearTimeout(timer);
  if (!paused) timer = setTimeout(() => location.reload(), 1000 * Number(button.dataset.seconds));
}

button.addEventListener("click", () => setPaused(button.getAttribute("aria-pressed") !== "true"));
setPaused(false);
