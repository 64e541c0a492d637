// Light and dark.
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

function startTheme() {
  at("theme").addEventListener("click", turnTheme);
  showTheme();
}
