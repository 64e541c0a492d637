// Loads the page again, unless it is paused; the address remembers that.
const button = document.getElementById("pause");
let timer = 0;

function isPaused() { return location.hash === "#paused"; }

function wait() {
  clearTimeout(timer);
  button.setAttribute("aria-pressed", String(isPaused()));
  if (!isPaused()) timer = setTimeout(() => location.reload(), 1000 * Number(button.dataset.seconds));
}

button.addEventListener("click", () => location.replace(isPaused() ? "#" : "#paused"));
addEventListener("hashchange", wait);
wait();
