// Keys, light and dark, and the start.
function onKey(event) {
  // With another key it is the browser's: Alt and an arrow go back and forth.
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || event.target.closest("input, select, pre")) return;
  if (at("detail").open) turnTo(opened.place + step);
  else if (event.target.closest("#cards, #pages")) { turnPage(step); at("cards").firstChild?.focus(); }
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme() {
  at("theme").setAttribute("aria-pressed", String(isDark()));
}

function turnTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
}

const roles = new Set(data.cards.flatMap((card) => card.frames.flatMap((frame) => frame.boxes.map(([role]) => role))));
showKeys(roles);
at("legend").addEventListener("change", () => { showPage(); if (sides.pair) showCouplePage(); });
document.addEventListener("keydown", onKey);
at("theme").addEventListener("click", turnTheme);
showTheme();
startDetail();
startCompare();
startGallery();
startLosses();
