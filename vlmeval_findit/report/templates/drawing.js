// Answers on their pictures.  The user space of a picture is the pixels of the original, so a box
// lies where its numbers say, however large the thumbnail is.
const CLASSES = { truth: "truth", hit: "hit", miss: "miss", "wrong label": "wrong", lenient: "lenient", ignored: "ignored", "not counted": "uncounted", option: "option" };
// A sign and a word, so that no meaning rests on colour alone; the legend has the signs, too.
const SIGNS = { truth: "= expected", hit: "✓ right", miss: "✗ wrong", "wrong label": "≠ wrong label", option: "○ option" };
const TAGS = { truth: "T", hit: "✓", miss: "✗", "wrong label": "≠" };
const TAGGED = 12; // With more boxes, tags would hide the picture

// Keys of the legend that stand there only where a box has that role.
const SELDOM = ["lenient", "ignored", "not counted"];
function showKeys(roles) {
  at("legend").hidden = !roles.size;
  for (const role of SELDOM) at("legend").querySelector(`.${CLASSES[role]}`).hidden = !roles.has(role);
}

function shown(role) {
  return at("legend").querySelector(`input[value="${role}"]`).checked;
}

// A point: upright where it is a hit, else on its side.
function cross({ x, y }, entry, name, role) {
  const arm = Math.max(entry.w, entry.h) / 40;
  const side = arm * Math.SQRT1_2;
  const d = role === "hit"
    ? `M${x - arm} ${y}H${x + arm}M${x} ${y - arm}V${y + arm}`
    : `M${x - side} ${y - side}L${x + side} ${y + side}M${x - side} ${y + side}L${x + side} ${y - side}`;
  const group = draw("g", { class: "point", "data-role": role });
  group.append(draw("path", { class: "shade", d }), draw("path", { class: name, d }));
  return group;
}

// Two digits of an IoU of three, rounded down: 0.499 is a miss, and not 0.50.
const overlapText = (iou) => (Math.floor(Math.round(iou * 1000) / 10) / 100).toFixed(2);

// The sign of a box: of an object inside it at the top right, of an answer below it at the left with
// its IoU, so that neither hides the other.  It stays on the picture though the box may lie outside.
function tag(entry, place, role, iou, shares) {
  const size = Math.max(entry.w, entry.h) / shares;
  const text = role === "truth" || iou === null ? TAGS[role] : `${TAGS[role]} ${overlapText(iou)}`;
  const [x, y] = role === "truth" ? [place.x + place.width - size * 0.85, place.y + size] : [place.x, place.y + place.height + size];
  const within = (value, most) => Math.min(Math.max(value, 0), most);
  return draw("text", { class: `tag ${CLASSES[role]}`, "font-size": size, x: within(x, entry.w - size * text.length * 0.6), y: within(y, entry.h - size / 4) || size }, text);
}

// A box whose second corner is not below and right of the first has no area, and is drawn all the same.
const NOT_IN_ORDER = "corners not in order";
const isTurned = ([, x1, y1, x2, y2]) => x2 < x1 || y2 < y1;

function boxText(box) {
  const [role, , , , , label, iou] = box;
  const overlap = role === "lenient" || iou === null ? "" : `IoU ${overlapText(iou)}`;
  return [SIGNS[role] || role, label, isTurned(box) ? NOT_IN_ORDER : "", overlap].filter(Boolean).join(", ");
}

// A picture with its boxes; the height of tags is that of the picture divided by `shares`.
function picture(entry, boxes, alt, shares = 26) {
  const svg = draw("svg", { class: "picture", viewBox: `0 0 ${entry.w} ${entry.h}`, role: "img", "aria-label": alt });
  if (entry.src) svg.append(draw("image", { href: entry.src, width: entry.w, height: entry.h, preserveAspectRatio: "none" }));
  const tags = [];
  for (const box of boxes) {
    const [role, x1, y1, x2, y2, , iou] = box;
    if (!shown(role)) continue;
    const place = { x: Math.min(x1, x2), y: Math.min(y1, y2), width: Math.abs(x2 - x1), height: Math.abs(y2 - y1) };
    const isPoint = !place.width && !place.height;
    if (!isPoint) svg.append(draw("rect", { class: "shade", ...place }));
    const shape = isPoint ? cross(place, entry, CLASSES[role], role) : draw("rect", { class: CLASSES[role], "data-role": role, ...place });
    shape.append(draw("title", {}, boxText(box)));
    svg.append(shape);
    if (TAGS[role] && boxes.length <= TAGGED) tags.push(tag(entry, place, role, iou, shares));
  }
  svg.append(...tags, ...(entry.src ? [] : [notHere(entry)]));
  return svg;
}

// The first frame with a box of any of some answers to one query, so that all are drawn on the same.
function firstFrame(cards) {
  return cards.flatMap((card) => card.frames).filter((frame) => frame.boxes.length).map((frame) => frame.frame).sort((a, b) => a - b)[0];
}

// The pictures of an answer: those that belong side by side, else the chosen frame, else the first
// with a box.
function pictures(card, chosen) {
  const named = card.frames.filter((frame) => frame.name);
  const first = card.frames.find((frame) => frame.frame === chosen) || card.frames.find((frame) => frame.boxes.length) || card.frames[0];
  const frames = named.length ? named : first ? [first] : [];
  const drawn = frames.map((frame) =>
    picture(data.images[frame.image], frame.boxes, [`${card.dataset}, row ${card.index}: ${card.label}`, frame.name].filter(Boolean).join(", ")));
  return drawn.length ? [make("span", { className: "pictures" }, ...drawn)] : [];
}

// Lines of text: truth and answer.
function lines(card) {
  if (!card.lines.length) return [];
  return [make("span", { className: "lines" }, ...card.lines.map(([role, text]) =>
    make("span", { className: `line ${CLASSES[role]}` }, make("b", { textContent: SIGNS[role] }), ` ${text}`)))];
}

function verdict(card) {
  const parts = [card.failed ? "no answer" : `${data.metric} ${card.score.toFixed(0)} %`];
  if (card.iou !== null) parts.push(`IoU ${overlapText(card.iou)}`);
  if (card.reason) parts.push(card.reason);
  return parts.join(" · ");
}

const doubtOf = (card) => (card.doubt ? `label doubtful: ${card.doubt} (${card.doubted_by})` : "");

// The error types of an answer in the colours of the bars above.
const placeOfErrorType = new Map(data.error_types.map(([key], i) => [key, i]));
const NO_RECTANGLE = "no rectangle";
function errors(card) {
  const turned = card.frames.some((frame) => frame.boxes.some(isTurned));
  const nameOf = ([, name]) => (turned && name === NO_RECTANGLE ? `${name}: ${NOT_IN_ORDER}` : name);
  const places = card.error_types.map((key) => placeOfErrorType.get(key)).filter((i) => i !== undefined);
  const chip = (className, text, title) => make("span", { className: `error ${className}`, title }, text);
  if (places.length) return make("span", { className: "errors" }, ...places.map((i) => chip(colour(i), `✗ ${nameOf(data.error_types[i])}`, data.error_types[i][2])));
  return make("span", { className: "errors" }, ...(card.hit ? [chip("score", "✓ right", "Nothing was lost")] : []));
}

// An answer as a button that opens it: pictures, lines, then words.
function cardButton(card, words, onOpen, frame) {
  const button = make("button", { type: "button", className: "card" }, ...pictures(card, frame), ...lines(card),
    make("span", { className: "words" }, ...words, make("span", { className: "reply", textContent: data.texts[card.reply] })));
  button.addEventListener("click", onOpen);
  return button;
}
