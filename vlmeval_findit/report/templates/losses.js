// What scores lost: which bars are shown, what a segment says, and the answers behind it.
function showLosses() {
  const [by, ...rest] = at("loss-of").value.split(":");
  const wanted = rest.join(":");
  at("losses").dataset.by = by;
  for (const one of document.querySelectorAll("#losses .loss, #loss-table tbody tr")) one.hidden = one.dataset[by] !== wanted;
}

function saySegment(event) {
  const segment = event.target.closest(".segment");
  if (segment) at("said").textContent = segment.getAttribute("aria-label") || segment.title;
}

function showAnswersOf(event) {
  const segment = event.target.closest("button.segment");
  if (segment) filterTo(segment.dataset);
}

function startLosses() {
  if (!at("losses")) return;
  at("loss-of").addEventListener("change", showLosses);
  at("whose").addEventListener("submit", (event) => event.preventDefault());
  for (const what of ["mouseover", "focusin"]) at("losses").addEventListener(what, saySegment);
  at("losses").addEventListener("click", showAnswersOf);
  showLosses();
}
