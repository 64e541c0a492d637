// The reviewer's decisions: kept in the browser after each one, saved as reviews.jsonl, and read back.
const VERDICTS = {
  label: "the label is right", model: "the models are right", both: "both are right",
  edited: "another answer is right", exclude: "no answer is right", unsure: "unsure, so the label stays",
};
const WITHOUT_ANSWER = ["exclude", "unsure"];

// `entries` are the lines in the order of their decisions; the last of a row counts.
const progress = { reviewer: "", entries: [], place: 0 };
const kept = { works: true }; // Whether this browser keeps the progress

// What nobody may read by accident before the choice lies in the file as base64.
const unseal = (text) => JSON.parse(atob(text));
const header = unseal(data.header);
const rowOf = new Map(data.rows.map((row) => [row.index, row]));

const decisionOf = (row) => progress.entries.findLast(({ record }) => record.index === row.index)?.record;
const unsaved = () => progress.entries.filter((entry) => !entry.isSaved).length;

const keyOf = (reviewer) => `${data.key} ${reviewer}`;

function keepProgress() {
  try {
    localStorage.setItem(data.key, progress.reviewer);
    localStorage.setItem(keyOf(progress.reviewer), JSON.stringify(progress));
    kept.works = true;
  } catch {
    kept.works = false; // A private window, or no room
  }
}

// Goes on as a reviewer, by default the last one in this browser: nobody sees another's choices.
function becomeReviewer(name) {
  try {
    const reviewer = name ?? localStorage.getItem(data.key) ?? "";
    Object.assign(progress, { entries: [], place: 0 }, JSON.parse(localStorage.getItem(keyOf(reviewer))), { reviewer });
  } catch {
    Object.assign(progress, { entries: [], place: 0, reviewer: name ?? "" });
    kept.works = false;
  }
}

function record(row, verdict, accept) {
  const { kind, p, drawn, voters } = unseal(row.sealed);
  return {
    format: header.format, table: data.table, index: row.index, row: row.row, verdict, accept, kind,
    reviewer: progress.reviewer, date: new Date().toISOString().replace(/\.\d+Z/, "Z"), drawn, p, voters,
  };
}

function decide(row, verdict, accept) {
  progress.entries.push({ record: record(row, verdict, accept), isSaved: false });
  keepProgress();
}

// Takes the last decision back, unless a file has it: there the next line of the row will count.
function takeBack() {
  const last = progress.entries.at(-1);
  if (last && !last.isSaved) progress.entries.pop();
  keepProgress();
  return last;
}

// --- the file ---

const fileText = () => [header, ...progress.entries.map((entry) => entry.record)].map((line) => `${JSON.stringify(line)}\n`).join("");

function markSaved() {
  for (const entry of progress.entries) entry.isSaved = true;
  keepProgress();
}

const isBox = (box) => Array.isArray(box) && box.length === 4 && box.every(Number.isFinite);
const isAnswer = (answer) => Array.isArray(answer?.boxes) && answer.boxes.every(isBox) && (answer.labels === undefined || Array.isArray(answer.labels));

// Says what is wrong with a line of this table's reviews; "" if nothing.
function fault(line) {
  const row = rowOf.get(line.index);
  if (row && line.row !== row.row) return `row ${line.index} has another picture, expression or box here`;
  if (!Object.hasOwn(VERDICTS, line.verdict)) return `“${line.verdict}” is no verdict`;
  if (!Array.isArray(line.accept) || !line.accept.every(isAnswer)) return "accept should be a list of answers";
  if (Number.isNaN(Date.parse(line.date))) return `“${line.date}” is no date`;
  return "";
}

function parseLines(text) {
  const lines = text.replace(/^\ufeff/, "").split("\n").map((line, i) => [i + 1, line]).filter(([, line]) => line.trim());
  return lines.map(([number, line]) => {
    try {
      const value = JSON.parse(line);
      if (value?.format === header.format) return [number, value];
    } catch { /* said below */ }
    throw new Error(`Line ${number} is not of a reviews.jsonl: nothing was read.`);
  });
}

const isSame = (one, other) => ["index", "verdict", "reviewer", "date"].every((key) => one[key] === other[key]);

// Takes this reviewer's lines of a reviews.jsonl; returns what to tell. An Error: nothing was taken.
function takeFile(text) {
  const lines = parseLines(text).filter(([, line]) => !line.audit);
  const ours = lines.filter(([, line]) => line.table === data.table);
  if (lines.length && !ours.length) throw new Error("The file reviews another table: nothing was read.");
  for (const [number, line] of ours) {
    if (fault(line)) throw new Error(`Line ${number}: ${fault(line)}. Nothing was read.`);
  }
  const names = [...new Set(ours.map(([, line]) => line.reviewer))];
  if (!progress.reviewer && names.length > 1) throw new Error(`The file has reviews by ${names.join(" and ")}: type your name first.`);
  if (!progress.reviewer && names.length) becomeReviewer(names[0]);
  const mine = ours.map(([, line]) => line).filter((line) => line.reviewer === progress.reviewer);
  const listed = mine.filter((line) => rowOf.has(line.index));
  const fresh = listed.filter((line) => !progress.entries.some((entry) => isSame(entry.record, line)));
  progress.entries.push(...fresh.map((line) => ({ record: { ...line, accept: line.accept.map((answer) => ({ labels: [], ...answer })) }, isSaved: true })));
  progress.entries.sort((a, b) => Date.parse(a.record.date) - Date.parse(b.record.date));
  keepProgress();
  const left = [[lines.length - mine.length, "by others or of other tables"], [mine.length - listed.length, "of rows that are not on this page"]];
  return [`${listed.length} decisions read.`, ...left.filter(([n]) => n).map(([n, what]) => `${n} ${what}: they stay in that file.`)].join(" ");
}

// --- when to stop ---

const ENOUGH = 20; // Listed rows in a row whose label stayed

// Counts the last listed rows whose label was found right; unsure and random ones do not count.
function unchangedListed() {
  const last = progress.entries.filter((entry, i) => progress.entries.findLastIndex((other) => other.record.index === entry.record.index) === i);
  const listed = last.map((entry) => entry.record).filter(({ drawn, verdict }) => drawn === "listed" && verdict !== "unsure");
  const changed = listed.findLastIndex(({ verdict }) => verdict !== "label");
  return listed.length - 1 - changed;
}
