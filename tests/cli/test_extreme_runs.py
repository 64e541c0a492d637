"""Commands over runs at the ends of all ranges: a result, or one line that says why there is none.

All calls failed, no reply says anything, one query, one image, nothing to find, all right or wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from every_pair import every_pair
from few_fast import few_fast
from random_models import Habits
from scored_runs import CallResult, World, saying

from vlmeval_findit.cli import main
from vlmeval_findit.core import EXIT_REFUSED, EXIT_SOME_FAILED
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    SAMPLE_SETTING,
    Identity,
    ReplyRecord,
    Settings,
    TokenLogprobs,
)
from vlmeval_findit.scoring import score_file, write_score
from vlmeval_findit.storage import MORE_SAMPLES, image_folder, record_text

Capture = pytest.CaptureFixture[str]

OBJECTS = "FindIt_Scenes_mini_xyxy_json"
EXPRESSIONS = "FindIt_Scenes_mini_refexp_xyxy_json"
CLASSES = "FindIt_Scenes_mini_multilabel_xyxy_json"
DESCRIBED = "FindIt_Scenes_mini_described_xyxy_json"
OWN = "FindIt_Pascal_xyxy_json"  # Of the rows that a test writes

FAILING = saying(f"{FAILED_ANSWER} via API.")
EMPTY_LIST = saying("[]")
EMPTY = saying("")
RAVING = saying("There is a lovely scene here.")


def right(name: str) -> CallResult:
    return Habits(finds=1.0).answering(name)


def wrong(name: str) -> CallResult:
    return Habits(strays=3).answering(name, seed=1)


@dataclass(frozen=True)
class Runs:
    """Runs over the first rows of a dataset: answers by folder, each of a model."""

    dataset: str
    answers: Mapping[str, Callable[[str], CallResult]]
    rows: int | None = None
    models: Sequence[str] = ("A", "B")

    def write(self, world: World) -> None:
        """Write and score them."""
        for model, (folder, answer) in zip(self.models, self.answers.items(), strict=False):
            made = answer(self.dataset)
            world.predict(model, self.dataset, made, rows=self.rows, folder=folder)


def both(answer: CallResult, dataset: str = OBJECTS, rows: int | None = None) -> Runs:
    return Runs(dataset, dict.fromkeys(("a", "b"), lambda _: answer), rows)


RUNS = {
    "all calls failed": both(FAILING),
    "the calls of one model failed": Runs(OBJECTS, {"a": lambda _: FAILING, "b": wrong}),
    "every reply says that there is nothing": both(EMPTY_LIST),
    "every reply is empty": both(EMPTY, EXPRESSIONS),
    "no reply can be read": both(RAVING, CLASSES),
    "all right": Runs(OBJECTS, {"a": right, "b": right}),
    "all right of expressions": Runs(EXPRESSIONS, {"a": right, "b": right}),
    "all wrong": Runs(OBJECTS, {"a": wrong, "b": wrong}),
    "all wrong of expressions": Runs(EXPRESSIONS, {"a": wrong, "b": wrong}),
    "all wrong of classes": Runs(CLASSES, {"a": wrong, "b": wrong}),
    "one query": Runs(EXPRESSIONS, {"a": right, "b": wrong}, rows=1),
    "one query that failed": both(FAILING, rows=1),
    "one query that is empty": both(EMPTY, CLASSES, rows=1),
    "one model twice": Runs(OBJECTS, {"a": right, "b": wrong}, models=("A", "A")),
    "one model alone": Runs(EXPRESSIONS, {"a": wrong}, models=("A",)),
    "some with nothing to find": Runs(DESCRIBED, {"a": right, "b": wrong}),
    "nothing to find, rightly": both(EMPTY_LIST, OWN),
    "nothing to find, all wrong": Runs(OWN, {"a": wrong, "b": wrong}),
    "nothing to find, all failed": both(FAILING, OWN),
    "one image": Runs(OWN, {"a": right, "b": wrong}),
}

# What a command may end with, and how: a refusal is a line that says what to do.
COMMANDS: dict[str, tuple[int, ...]] = {
    "leaderboard runs": (0,),
    "errors runs": (0,),
    "errors runs --by size": (0,),
    "compare runs/a runs/b": (0,),
    "score runs": (0, 1),
    "audit runs": (0, EXIT_REFUSED),
    "audit runs --top 5 --review page.html --json list.json": (0, EXIT_REFUSED),
    "samples runs": (EXIT_REFUSED,),
    "calibration runs": (EXIT_SOME_FAILED, EXIT_REFUSED),
    "ap runs": (0, EXIT_SOME_FAILED, EXIT_REFUSED),
}

OF_ANSWERS = ("errors", "compare")
"""Commands that refuse a run in which no call was answered."""
OF_ANY_ANSWER = ("leaderboard", "report")
"""Commands that refuse runs of which none has an answer."""
WITHOUT_ANSWERS = ("all calls failed", "one query that failed", "nothing to find, all failed")


def own_rows(world: World, kind: str, patch: pytest.MonkeyPatch) -> None:
    """Write a table of shipped rows, with nothing to find or about one image."""
    queries = list(load_dataset(DESCRIBED if "nothing" in kind else OBJECTS).queries.values())
    if "nothing" in kind:
        queries = [query for query in queries if not query.truth.boxes]
    else:
        queries = [replace(query, images=queries[0].images, cluster="") for query in queries[:6]]
    images = image_folder("Scenes_mini").path
    patch.setenv("FINDIT_TABLES", str(world.folder))
    patch.setenv("FINDIT_IMAGES", f"Pascal={images}")
    world.table("Pascal", queries)


def expect(command: str, statuses: Sequence[int], capsys: Capture) -> None:
    """Run a command, which raises nothing and says why it is refused."""
    capsys.readouterr()
    status = main(command.split())
    read = capsys.readouterr()
    assert status in statuses, read.err
    assert "nan" not in read.out.lower().replace("findit-nano", "").split(), read.out
    assert "Traceback" not in read.out + read.err
    if status:
        assert read.err.strip(), command
    if status == EXIT_REFUSED:
        assert any(line.startswith("error: ") for line in read.err.splitlines())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(tmp_path)
    return World(tmp_path)


FEW = {
    "all calls failed", "every reply is empty", "all right of expressions", "one query",
    "one model alone",
}  # fmt: skip
"""One kind at each end of a range; the others are the same ends of other tasks."""


@pytest.mark.parametrize(
    "kind",
    [kind if kind in FEW else pytest.param(kind, marks=pytest.mark.slow) for kind in RUNS],
)
def test_every_command_ends_with_a_result_or_a_reason(
    kind: str, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    runs = RUNS[kind]
    if runs.dataset == OWN:
        own_rows(world, kind, monkeypatch)
    runs.write(world)
    for command, statuses in COMMANDS.items():
        if "compare" in command and len(runs.answers) < 2:
            continue
        if "failed" in kind and command.startswith(OF_ANSWERS):
            statuses = (EXIT_REFUSED,)
        if kind in WITHOUT_ANSWERS and command.startswith(OF_ANY_ANSWER):
            statuses = (EXIT_REFUSED,)
        expect(command, statuses, capsys)


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "one query" else pytest.param(kind, marks=pytest.mark.slow)
        for kind in RUNS
        if kind not in WITHOUT_ANSWERS
    ],
)
def test_the_report_is_written_with_all_sections(
    kind: str, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    runs = RUNS[kind]
    if runs.dataset == OWN:
        own_rows(world, kind, monkeypatch)
    runs.write(world)
    expect("report runs --out report.html", (0,), capsys)
    page = (world.folder / "report.html").read_text(encoding="utf-8")
    assert "This section could not be made:" not in page


@pytest.mark.slow
@pytest.mark.parametrize("dataset", [EXPRESSIONS, OBJECTS, CLASSES])
@pytest.mark.parametrize("models", [2, 3, 12])
def test_labels_are_audited_by_models_that_guess(
    dataset: str, models: int, world: World, capsys: Capture
) -> None:
    for seed in range(models):
        habits = Habits(finds=seed / models, loose=100.0, strays=1 + 11 * (seed % 2), fails=0.1)
        world.predict(f"M{seed}", dataset, habits.answering(dataset, seed))
    expect("audit runs", (0,), capsys)
    expect("audit runs --top 50 --review page.html --json list.json", (0,), capsys)
    listed = json.loads((world.folder / "list.json").read_text(encoding="utf-8"))["listed"]
    assert all(row["proposal"]["boxes"] or row["kind"] for row in listed)
    expect("report runs --out report.html", (0,), capsys)


# --- samples, and probabilities -------------------------------------------------------------------


ANSWERS: dict[str, Callable[[str], CallResult]] = {
    "failed": lambda _: FAILING,
    "nothing": lambda _: EMPTY_LIST,
    "empty": lambda _: EMPTY,
    "not readable": lambda _: RAVING,
    "right": right,
    "wrong": wrong,
}


@every_pair("kind, rows", ["failed", "nothing", "empty", "not readable", "right"], [1, None])
def test_samples_at_their_ends(kind: str, rows: int | None, world: World, capsys: Capture) -> None:
    answer = ANSWERS[kind](OBJECTS)
    for sample in (1, 2, 3):

        def numbered(run: Identity, number: int = sample) -> Identity:
            settings = {"temperature": 0.7, **({SAMPLE_SETTING: number} if number > 1 else {})}
            return replace(run, answering=replace(run.answering, settings=settings))

        folder = f"{MORE_SAMPLES}/{sample}" if sample > 1 else ""
        world.predict("M", OBJECTS, answer, rows=rows, folder=folder, change=numbered)
    expect("samples runs", (EXIT_REFUSED if kind == "failed" else 0,), capsys)
    expect("calibration runs", (0, EXIT_SOME_FAILED, EXIT_REFUSED), capsys)


@pytest.mark.parametrize(
    ("kind", "rows", "statuses"),
    few_fast(
        [
            ("right", 1, (0,)),
            ("nothing", None, (0, EXIT_REFUSED)),
            ("not readable", None, (0, EXIT_REFUSED)),
            ("right", None, (0,)),
            ("wrong", None, (0,)),
        ],
        3,
    ),
)
def test_calibration_at_its_ends(
    kind: str, rows: int | None, statuses: Sequence[int], world: World, capsys: Capture
) -> None:
    pytest.importorskip("pycocotools")
    path = world.predict("M", OBJECTS, ANSWERS[kind](OBJECTS), rows=rows)
    replies = json.loads(path.read_text(encoding="utf-8"))
    for reply in replies:
        length = len(reply["prediction"])
        tokens = TokenLogprobs.rounded(range(1, length + 1), [0.0] * length)
        record = ReplyRecord(finish_reason="stop", token_logprobs=tokens)
        reply["extra_records"] = record_text(record)
    path.write_text(json.dumps(replies), encoding="utf-8")
    write_score(score_file(path, Settings(force=True)), path)
    expect("calibration runs", statuses, capsys)
    expect("report runs --out report.html", (0,), capsys)
