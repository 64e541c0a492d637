// A large page has its answers as rows of numbers, which find and sort them; see assets.js for the rest.
data.cards = data.rows.flatMap(({ run, rows }) => JSON.parse(rows).map(([index, label, good, spread, found, failed, reason, error_types, parts, sizes, iou]) => ({
  run, index, good, spread, found: Boolean(found), failed: Boolean(failed),
  label: data.values[label], reason: data.values[reason], error_types: data.values[error_types], parts: data.values[parts], sizes: data.values[sizes], iou,
  prompt: 0, reply: 0, shots: [], frames: [], count: 0, lines: [], ...data.runs[run],
})));
