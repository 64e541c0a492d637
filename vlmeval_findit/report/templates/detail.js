// An answer, large: its pictures, errors, prompt and reply. Arrows, buttons and swipes turn to the next
// answer of the list. The page's address names the answer, so that it can be linked to.
const opened = { list: [], place: -1, onClose: () => {} };

const addressOf = (card) => `#answer=${[card.model, card.dataset, card.format, card.index].map(encodeURIComponent).join("/")}`;

function linkedCard() {
  if (!location.hash.startsWith("#answer=")) return undefined;
  try {
    const named = location.hash.slice("#answer=".length).split("/").map(decodeURIComponent);
    return data.cards.find((card) => [card.model, card.dataset, card.format, String(card.index)].every((part, i) => part === named[i]));
  } catch {
    return undefined; // No text in UTF-8
  }
}

function open(list, place, onClose) {
  Object.assign(opened, { list, onClose });
  turnTo(place);
  if (!at("detail").open) at("detail").showModal();
}

function figureOf(svg, caption, className) {
  return make("figure", { className }, svg, make("figcaption", { textContent: caption }));
}

function framesOf(card) {
  const captionOf = (frame) => frame.name || (card.count > 1 ? `frame ${frame.frame + 1} of ${card.count}` : "");
  const alt = (frame) => `${card.label}, ${frame.name || `frame ${frame.frame + 1}`}`;
  const turn = (step) => turnTo(opened.place + step);
  const shots = card.shots.map((shot) => figureOf(picture(data.images[shot], [], "reference image"), "reference image", "shot"));
  const figures = card.frames.map((frame) =>
    figureOf(makeZoomable(picture(data.images[frame.image], frame.boxes, alt(frame), isNarrow() ? 26 : 44), turn), captionOf(frame), card.frames.length === 1 ? "only" : ""));
  return make("div", { className: "frames" }, ...shots, ...figures);
}

// The drawn boxes in words.
function boxesOf(card) {
  const texts = card.frames.flatMap((frame) => frame.boxes.map((box) => [box[0], (card.count > 1 ? `frame ${frame.frame + 1}: ` : "") + boxText(box)]));
  if (!texts.length) return [];
  const list = make("ul", { className: "boxes" }, ...texts.slice(0, 40).map(([role, textContent]) => make("li", { className: `line ${CLASSES[role]}`, textContent })));
  return [make("h4", { textContent: texts.length > 40 ? `Boxes (40 of ${texts.length})` : "Boxes" }), list];
}

function wordsOf(card) {
  const meanings = card.error_types.map((key) => data.error_types.find(([name]) => name === key)).filter(Boolean);
  const section = (title, id, text) => [make("h4", { textContent: title }), make("pre", { tabIndex: 0, id, textContent: text })];
  return make("div", { className: "texts" },
    make("p", {}, make("b", { textContent: card.label }), ` · ${verdict(card)}`), errors(card),
    ...meanings.map(([, name, meaning]) => make("p", {}, make("b", { textContent: name }), `: ${meaning}`)),
    ...small(doubtOf(card)),
    ...small(card.spread ? `this model's formats are up to ${card.spread.toFixed(0)} points apart on this query` : ""),
    ...small(card.parts.map((part) => data.parts[part]).join(" · ")),
    ...lines(card), ...section("Reply", "reply", data.texts[card.reply]), ...boxesOf(card), ...section("Prompt", "prompt", data.texts[card.prompt]));
}

function turnTo(place) {
  const card = opened.list[place];
  if (!card) return;
  opened.place = place;
  at("detail-title").textContent = [card.model, card.dataset, card.format, `row ${card.index}`].filter(Boolean).join(" · ");
  at("detail-body").replaceChildren(framesOf(card), wordsOf(card));
  at("zoom").hidden = !card.frames.length;
  at("back").disabled = place === 0;
  at("forward").disabled = place === opened.list.length - 1;
  at("detail").scrollTop = 0;
  at("copied").textContent = "";
  history.replaceState(null, "", addressOf(card));
}

function forgetAddress() {
  history.replaceState(null, "", location.href.split("#")[0]);
  opened.onClose(opened.place);
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    at("copied").textContent = "Link copied";
  } catch {
    at("copied").textContent = location.href; // To be selected by hand
  }
}

const DETAIL_KEYS = {
  ArrowLeft: () => turnTo(opened.place - 1), ArrowRight: () => turnTo(opened.place + 1),
  "+": () => zoomAll(1.5), "=": () => zoomAll(1.5), "-": () => zoomAll(1 / 1.5), 0: () => zoomAll(0),
};
const PAN_KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onDetailKey(event) {
  // With another key it is the browser's: Alt and an arrow go back and forth.
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.shiftKey && PAN_KEYS[event.key]) panAll(...PAN_KEYS[event.key]);
  else if (DETAIL_KEYS[event.key] && !event.target.closest("pre")) DETAIL_KEYS[event.key]();
  else return;
  event.preventDefault();
}

function startDetail() {
  at("detail").addEventListener("keydown", onDetailKey);
  at("detail").addEventListener("close", forgetAddress);
  at("back").addEventListener("click", () => turnTo(opened.place - 1));
  at("forward").addEventListener("click", () => turnTo(opened.place + 1));
  at("close").addEventListener("click", () => at("detail").close());
  at("copy").addEventListener("click", copyLink);
  at("nearer").addEventListener("click", () => zoomAll(1.5));
  at("farther").addEventListener("click", () => zoomAll(1 / 1.5));
  at("whole").addEventListener("click", () => zoomAll(0));
}
