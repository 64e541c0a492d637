"use strict";
// The gallery.  Everything that a model said goes into the page as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const PAGE = 24;
  const CLASSES = { truth: "truth", hit: "hit", miss: "miss", "wrong label": "wrong", option: "option" };
  // A sign and a word, so that no line is told by its colour alone.
  const SIGNS = { truth: "= expected", hit: "✓ right", miss: "✗ wrong", "wrong label": "≠ wrong label", option: "○ option" };
  const state = { found: [], page: 0, open: -1 };

  // --- elements ---------------------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";

  function make(name, values = {}, ...children) {
    const element = document.createElement(name);
    Object.assign(element, values);
    element.append(...children);
    return element;
  }

  function draw(name, values, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function shown(role) {
    return at("legend").querySelector(`input[value="${role}"]`).checked;
  }

  // A picture with its boxes.  The user space is the original picture's pixels, so that a box lies
  // where its numbers say, however large the thumbnail is.
  function picture(entry, boxes, alt) {
    const svg = draw("svg", { class: "picture", viewBox: `0 0 ${entry.w} ${entry.h}`, role: "img", "aria-label": alt });
    if (entry.src) {
      svg.append(draw("image", { href: entry.src, width: entry.w, height: entry.h, preserveAspectRatio: "none" }));
    } else {
      svg.append(draw("text", { class: "gone", x: entry.w / 2, y: entry.h / 2, "font-size": entry.w / 18 }, `${entry.name} is not here`));
    }
    for (const [role, x1, y1, x2, y2, label, iou] of boxes) {
      if (!shown(role)) continue;
      const place = { x: Math.min(x1, x2), y: Math.min(y1, y2), width: Math.abs(x2 - x1), height: Math.abs(y2 - y1) };
      if (role === "truth") svg.append(draw("rect", { class: "shade", ...place }));
      const rect = draw("rect", { class: CLASSES[role], "data-role": role, ...place });
      rect.append(draw("title", {}, `${role}${label ? ` ${label}` : ""}, IoU ${iou.toFixed(2)}`));
      svg.append(rect);
    }
    return svg;
  }

  function verdict(card) {
    const parts = [`${data.figure} ${card.good.toFixed(0)} %`];
    if (card.reason) parts.push(card.reason);
    if (card.spread) parts.push(`formats differ by ${card.spread.toFixed(0)}`);
    return parts.join(" · ");
  }

  // Lines of text: what was right, what was answered.
  function lines(card) {
    return make("span", { className: "lines" }, ...card.lines.map(([role, text]) =>
      make("span", { className: `line ${CLASSES[role]}` }, make("b", { textContent: SIGNS[role] }), ` ${text}`)));
  }

  // --- cards ------------------------------------------------------------------------------------

  function cardButton(card, place) {
    const first = card.frames.find((frame) => frame.boxes.length) || card.frames[0];
    const words = make("span", { className: "words" },
      make("b", { textContent: card.label }),
      make("span", { className: "score", textContent: verdict(card) }),
      make("small", { textContent: `${card.model} · ${card.dataset} · row ${card.index}` }),
      ...(card.format ? [make("small", { textContent: card.format })] : []),
      make("span", { className: "reply", textContent: data.texts[card.reply] }));
    const beside = card.frames.filter((frame) => frame.name);
    const pictures = (beside.length ? beside : card.frames.filter((frame) => frame === first)).map((frame) =>
      picture(data.pictures[frame.picture], frame.boxes, [`${card.dataset}, row ${card.index}: ${card.label}`, frame.name].filter(Boolean).join(", ")));
    const shown = pictures.length ? [make("span", { className: "pictures" }, ...pictures)] : [];
    if (card.lines.length) shown.push(lines(card));
    const button = make("button", { type: "button", className: "card" }, ...shown, words);
    button.addEventListener("click", () => open(place));
    return button;
  }

  function showPage() {
    const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const start = state.page * PAGE;
    at("cards").replaceChildren(...state.found.slice(start, start + PAGE).map((card, i) => cardButton(card, start + i)));
    at("count").textContent = `${state.found.length.toLocaleString("en")} answers`;
    at("page").textContent = `page ${state.page + 1} of ${pages}`;
    at("previous").disabled = state.page === 0;
    at("next").disabled = state.page === pages - 1;
  }

  // --- filters ----------------------------------------------------------------------------------

  const ORDERS = {
    worst: (a, b) => a.good - b.good,
    best: (a, b) => b.good - a.good,
    disagree: (a, b) => b.spread - a.spread || a.model.localeCompare(b.model) || a.dataset.localeCompare(b.dataset) || a.index - b.index || a.good - b.good,
    row: (a, b) => a.dataset.localeCompare(b.dataset) || a.index - b.index || a.model.localeCompare(b.model),
  };

  const REPLIES = { "": () => true, "as asked": (card) => !card.reason, "not as asked": (card) => card.reason !== "" };

  function matches(card) {
    for (const key of ["model", "dataset", "format"]) {
      if (at(key).value && card[key] !== at(key).value) return false;
    }
    const reason = at("reason").value;
    if (!(REPLIES[reason] || ((one) => one.reason === reason))(card)) return false;
    if (at("order").value === "disagree" && !card.spread) return false;
    const wanted = at("search").value.trim().toLowerCase();
    return !wanted || `${card.label}\n${data.texts[card.reply]}`.toLowerCase().includes(wanted);
  }

  function filter() {
    state.found = data.cards.filter(matches).sort(ORDERS[at("order").value]);
    state.page = 0;
    showPage();
  }

  function fill(id, values, all) {
    at(id).append(make("option", { value: "", textContent: all }), ...values.map((value) => make("option", { value, textContent: value })));
  }

  const distinct = (key) => [...new Set(data.cards.map((card) => card[key]))].filter(Boolean).sort();

  // --- one answer -------------------------------------------------------------------------------

  function open(place) {
    const card = state.found[place];
    if (!card) return;
    state.open = place;
    at("detail-title").textContent = [card.model, card.dataset, card.format, `row ${card.index}`].filter(Boolean).join(" · ");
    const called = (frame) => frame.name || (card.count > 1 ? `frame ${frame.frame + 1} of ${card.count}` : "");
    const figures = card.frames.map((frame) => make("figure", { className: card.frames.length === 1 ? "only" : "" },
      picture(data.pictures[frame.picture], frame.boxes, `${card.label}, ${frame.name || `frame ${frame.frame + 1}`}`),
      make("figcaption", { textContent: called(frame) })));
    const shots = card.shots.map((shot) => make("figure", { className: "shot" },
      picture(data.pictures[shot], [], "reference image"), make("figcaption", { textContent: "reference image" })));
    at("detail-body").replaceChildren(
      make("p", {}, make("b", { textContent: card.label }), ` · ${verdict(card)}`),
      make("div", { className: "frames" }, ...shots, ...figures),
      ...(card.lines.length ? [lines(card)] : []),
      make("h3", { textContent: "Prompt" }), make("pre", { tabIndex: 0, textContent: data.texts[card.prompt] }),
      make("h3", { textContent: "Reply" }), make("pre", { tabIndex: 0, id: "reply", textContent: data.texts[card.reply] }));
    at("back").disabled = place === 0;
    at("forward").disabled = place === state.found.length - 1;
    if (!at("detail").open) at("detail").showModal();
    at("detail").scrollTop = 0;
  }

  function closed() {
    const page = Math.floor(state.open / PAGE);
    if (page !== state.page) { state.page = page; showPage(); }
    const button = at("cards").children[state.open - page * PAGE];
    if (button) button.focus();
  }

  function onKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.target.closest("input, select, pre")) return;
    if (at("detail").open) open(state.open + step);
    else if (event.target.closest("#cards, #pages")) { state.page += step; showPage(); at("cards").firstChild?.focus(); }
  }

  // --- light and dark ---------------------------------------------------------------------------

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function showTheme() {
    at("theme").textContent = isDark() ? "Light" : "Dark";
    at("theme").setAttribute("aria-pressed", String(isDark()));
  }

  function turnTheme() {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  }

  // --- start ------------------------------------------------------------------------------------

  fill("model", distinct("model"), "all");
  fill("dataset", distinct("dataset"), "all");
  fill("format", distinct("format"), "all");
  fill("reason", ["as asked", "not as asked", ...distinct("reason")], "all");
  at("format").parentElement.hidden = !distinct("format").length;
  at("legend").hidden = !data.cards.some((card) => card.frames.some((frame) => frame.boxes.length));
  for (const id of ["model", "dataset", "format", "reason", "order"]) at(id).addEventListener("change", filter);
  at("search").addEventListener("input", filter);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("legend").addEventListener("change", showPage);
  at("previous").addEventListener("click", () => { state.page -= 1; showPage(); });
  at("next").addEventListener("click", () => { state.page += 1; showPage(); });
  at("back").addEventListener("click", () => open(state.open - 1));
  at("forward").addEventListener("click", () => open(state.open + 1));
  at("close").addEventListener("click", () => at("detail").close());
  at("detail").addEventListener("close", closed);
  document.addEventListener("keydown", onKey);
  at("theme").addEventListener("click", turnTheme);
  showTheme();
  filter();
})();
