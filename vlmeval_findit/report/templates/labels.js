// The section of doubtful labels: its buttons show the answers to them.
function startLabels() {
  for (const button of document.querySelectorAll(".show-doubts")) {
    button.hidden = !data.cards.some((card) => card.doubt && card.dataset === button.value);
    button.addEventListener("click", () => filterTo({ dataset: button.value, doubt: ANY_DOUBT }));
  }
}
