// Assets of a large page: the files of the answers that are to be seen are loaded, each once.
// A file is a script that calls addAssets(): a page that was opened from a disk may not fetch.
const { folder, answers, pictures: pictureFiles, each, roles: boxRoles } = data.assets;
const coming = new Map();
const lost = new Set();
const near = new Set();
// What stands for a picture that is not loaded, or not there.
const notLoaded = { name: "picture", w: 4, h: 3, src: "" };

const placesOf = (card) => [...card.shots, ...card.frames.map((frame) => frame.picture)];

window.addAssets = ({ run, texts, cards, start, pictures: found }) => {
  if (found) found.forEach((one, i) => { data.pictures[start + i] = one; });
  else {
    const first = data.texts.length;
    for (const text of texts) data.texts.push(text);
    for (const own of cards) {
      Object.assign(cardsOf[run].get(own.index), own, { prompt: first + own.prompt, reply: first + own.reply });
      for (const place of placesOf(own)) data.pictures[place] = data.pictures[place] || notLoaded;
    }
  }
};

// The file, if it was not loaded before: true when it came now.
function load(name) {
  if (!coming.has(name)) {
    coming.set(name, new Promise((done) => {
      const script = make("script", { src: `${encodeURIComponent(folder)}/${name}` });
      script.addEventListener("load", () => { coming.set(name, false); lost.delete(name); done(true); });
      script.addEventListener("error", () => { coming.set(name, false); lost.add(name); done(true); });
      document.head.append(script);
    }));
  }
  return coming.get(name);
}

const loadAll = async (names) => (await Promise.all([...new Set(names)].map(load))).includes(true);

// Answers first, since they say which pictures they have; shown again only when something came.
async function bring(cards, show) {
  const cameAnswers = await loadAll(cards.map((card) => answers[card.run]));
  const places = cards.flatMap(placesOf);
  const camePictures = await loadAll(places.map((place) => pictureFiles[Math.floor(place / each)]));
  if (!cameAnswers && !camePictures) return;
  sayLost();
  show();
}

function sayLost() {
  at("missing").hidden = !lost.size;
  at("missing").textContent = `${lost.size} files of this page are not in the folder ${folder} beside it: pictures and replies are missing.`;
}

// The keyboard stays where it is when a list is shown again.
function again(id, show) {
  const before = [...at(id).querySelectorAll("button")].indexOf(document.activeElement);
  show();
  if (before >= 0) at(id).querySelectorAll("button")[before]?.focus();
}

const plain = { showPage, showCouplePage, turnTo };

showPage = () => {
  plain.showPage();
  const { found, page } = gallery;
  const current = () => found === gallery.found && page === gallery.page;
  const cards = found.slice(page * PAGE, (page + 1) * PAGE);
  if (near.has("gallery")) bring(cards, () => current() && again("cards", plain.showPage));
};

showCouplePage = () => {
  plain.showCouplePage();
  const { found, page } = sides;
  const current = () => found === sides.found && page === sides.page;
  const cards = found.slice(page * COUPLES, (page + 1) * COUPLES).flat();
  if (near.has("compare")) bring(cards, () => current() && again("couples", plain.showCouplePage));
};

turnTo = (place) => {
  plain.turnTo(place);
  const card = opened.list[place];
  if (card) bring([card], () => at("detail").open && opened.list[opened.place] === card && plain.turnTo(place));
};

// A search reads replies, so those of all runs that the other filters leave must be there.
async function search() {
  if (!at("search").value.trim()) return;
  const left = data.runs.map((run, number) => [run, number]).filter(([run, number]) => number in answers &&
    ["model", "dataset", "format"].every((key) => !at(key).value || run[key] === at(key).value));
  if (await loadAll(left.map(([, number]) => answers[number]))) { sayLost(); filter(); }
}

at("cards").classList.add("loaded-later");
at("cards").before(make("p", { id: "missing", role: "status", hidden: true }));
for (const kind of ["input", "change"]) at("filters").addEventListener(kind, search);
showKeys(new Set(boxRoles));
const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target: { id } } of entries) {
    if (!isIntersecting || near.has(id)) continue;
    near.add(id);
    if (id === "gallery") showPage();
    else if (sides.pair) showCouplePage();
  }
}, { rootMargin: "200px" });
for (const id of ["gallery", "compare"]) if (at(id)) watcher.observe(at(id));
// The page's address may have opened an answer before its file could be asked for.
if (at("detail").open) turnTo(opened.place);
