// One answer, large: its pictures, prompt and reply.  It is one of a list, which arrows go along.
const opened = { list: [], place: -1, onClose: () => {} };

function open(list, place, onClose) {
  Object.assign(opened, { list, onClose });
  turnTo(place);
  if (!at("detail").open) at("detail").showModal();
}

function turnTo(place) {
  const card = opened.list[place];
  if (!card) return;
  opened.place = place;
  at("detail-title").textContent = [card.model, card.dataset, card.format, `row ${card.index}`].filter(Boolean).join(" · ");
  const called = (frame) => frame.name || (card.count > 1 ? `frame ${frame.frame + 1} of ${card.count}` : "");
  const figures = card.frames.map((frame) => make("figure", { className: card.frames.length === 1 ? "only" : "" },
    picture(data.pictures[frame.picture], frame.boxes, `${card.label}, ${frame.name || `frame ${frame.frame + 1}`}`),
    make("figcaption", { textContent: called(frame) })));
  const shots = card.shots.map((shot) => make("figure", { className: "shot" },
    picture(data.pictures[shot], [], "reference image"), make("figcaption", { textContent: "reference image" })));
  at("detail-body").replaceChildren(
    make("p", {}, make("b", { textContent: card.label }), ` · ${verdict(card)}`),
    ...small(card.parts.map((part) => data.parts[part]).join(" · ")),
    make("div", { className: "frames" }, ...shots, ...figures),
    ...lines(card),
    make("h3", { textContent: "Prompt" }), make("pre", { tabIndex: 0, textContent: data.texts[card.prompt] }),
    make("h3", { textContent: "Reply" }), make("pre", { tabIndex: 0, id: "reply", textContent: data.texts[card.reply] }));
  at("back").disabled = place === 0;
  at("forward").disabled = place === opened.list.length - 1;
  at("detail").scrollTop = 0;
}

function turnWithArrows(event) {
  // With another key it is the browser's: Alt and an arrow go back and forth.
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest("pre")) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) turnTo(opened.place + step);
}

function startDetail() {
  at("detail").addEventListener("keydown", turnWithArrows);
  at("back").addEventListener("click", () => turnTo(opened.place - 1));
  at("forward").addEventListener("click", () => turnTo(opened.place + 1));
  at("close").addEventListener("click", () => at("detail").close());
  at("detail").addEventListener("close", () => opened.onClose(opened.place));
}
