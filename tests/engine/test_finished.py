"""A finished sweep that is started again: whatever changed meanwhile is found out.

What the engine remembers of finished cells decides nothing by itself: every case is run twice from
the same files, with that memory and without it, and both must come to the same end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion
from engine_fakes import FakeHost, FakeModel, demo_sweep, files, forget, go
from scale_runs import import_table

from vlmeval_findit.benchmarks.findit import benchmark as findit
from vlmeval_findit.benchmarks.findit import prompts
from vlmeval_findit.core.identity import Answering, Described
from vlmeval_findit.core.messages import image
from vlmeval_findit.core.vlmevalkit import package_folder
from vlmeval_findit.engine import finished
from vlmeval_findit.engine.backend import Inference
from vlmeval_findit.engine.finished import LateHost
from vlmeval_findit.engine.servers import ServersHost
from vlmeval_findit.models.entry import ModelEntry
from vlmeval_findit.runs import provenance
from vlmeval_findit.runs.provenance import FINISHED
from vlmeval_findit.sweeps import run
from vlmeval_findit.sweeps.config import Sweep
from vlmeval_findit.sweeps.run import IMAGE_HASHES

ROWS = 6
GRID = """
models: FullImage
datasets: [Scale]
representations: [xyxy, cxcywh]
outputs: json
"""
STEM = "FullImage_FindIt_Scale_xyxy_json"


@dataclass
class World:
    """A sweep, its files, and who answers."""

    folder: Path
    patch: pytest.MonkeyPatch
    fields: dict[str, Any] = field(default_factory=dict)
    entry: ModelEntry | None = None
    revision: str | None = "r1"
    fails: int = 0

    @property
    def journal(self) -> Path:
        return self.folder / "calls.jsonl"

    @property
    def picture(self) -> Path:
        return self.folder / "pictures" / "2.png"

    def file(self, ending: str) -> Path:
        return self.folder / "out" / "FullImage" / f"{STEM}{ending}"

    def sweep(self) -> Sweep:
        sweep = demo_sweep(self.folder, GRID, **self.fields)
        return sweep if self.entry is None else replace(sweep, models=(self.entry,))


class Host(FakeHost):
    def __init__(self, model: FakeModel, revision: str | None) -> None:
        super().__init__(model)
        self.revision = revision

    def describe(self, entry: ModelEntry, variant: Any) -> Described:
        who = Answering("FakeModel", revision=self.revision, settings=dict(entry.settings))
        return Described(who, None)


@dataclass
class End:
    """What a run came to."""

    calls: int
    error: str
    results: list[Any]
    files: Mapping[str, str]


def ran(world: World) -> End:
    def fail(number: int, text: str) -> None:
        if number <= world.fails:
            raise RuntimeError("went wrong")

    model, error, results = FakeModel(fail), "", []
    try:
        results = go(world.sweep(), Host(model, world.revision))
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    kept = [(r.question.name, r.sums, r.rows, r.failed, r.path, r.coords_doubt) for r in results]
    return End(model.calls, error, kept, files(world.folder / "out"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    folder = tmp_path / "world"
    folder.mkdir()
    monkeypatch.chdir(folder)
    import_table(folder, ROWS, monkeypatch)
    return World(folder, monkeypatch)


# --- what may change ------------------------------------------------------------------------------


def flipped(path: Path, at: int = -20) -> None:
    """Another content, of the same size and time."""
    state, data = path.stat(), bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def reworded(world: World) -> None:
    """Other words in one row in the middle."""

    def message(query, variant):
        *parts, last = prompts.message(query, variant)
        return (*parts, last._replace(value=f"{last.value} Please.") if query.index == 3 else last)

    world.patch.setattr(findit, "prompt_set", lambda: (prompts.NAME, message))
    other_code(world)


def other_code(world: World) -> None:
    """As another version of this package, which may say and score everything otherwise."""
    world.patch.setattr(finished, "code_sha256", lambda: "another")


def table_with(world: World, old: str, new: str) -> None:
    (path,) = (world.folder / "lmu").rglob("*Scale*.tsv")
    path.write_text(path.read_text().replace(old, new))
    path.with_suffix(".meta.json").unlink()


def set_field(**fields: Any) -> Callable[[World], None]:
    return lambda world: world.fields.update(fields)


def set_world(**fields: Any) -> Callable[[World], None]:
    return lambda world: world.__dict__.update(fields)


def entry(**given: Any) -> Callable[[World], None]:
    return set_world(entry=ModelEntry("FullImage", **given))


def gone(ending: str) -> Callable[[World], None]:
    return lambda world: world.file(ending).unlink()


def damaged(ending: str) -> Callable[[World], None]:
    return lambda world: flipped(world.file(ending))


def truncated(ending: str) -> Callable[[World], None]:
    return lambda world: os.truncate(world.file(ending), world.file(ending).stat().st_size // 2)


def says(ending: str, old: str, new: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        path = world.file(ending)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def edited(ending: str) -> Callable[[World], None]:
    return says(ending, "0", "1")


def journal_line(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[World], None]:
    def changed(world: World) -> None:
        lines = world.journal.read_bytes().splitlines(keepends=True)
        world.journal.write_bytes(b"".join(change(lines)))

    return changed


def both(*changes: Callable[[World], None]) -> Callable[[World], None]:
    def change(world: World) -> None:
        for one in changes:
            one(world)

    return change


def scorer(world: World) -> None:
    real = provenance.versions
    world.patch.setattr(provenance, "versions", lambda: {**real(), "numpy": "9"})


def env(name: str, value: str) -> Callable[[World], None]:
    return lambda world: world.patch.setenv(name, value)


Change = Callable[[World], None]

PREDICTIONS, IDENTITY, SCORE = ".json", "_identity.json", "_score.csv"
DETAILS, PROVENANCE = "_details.jsonl", "_provenance.json"

CASES: Mapping[str, tuple[Change, int, str]] = {
    # what changes: the calls that are made then, and how the error begins
    "nothing": (lambda world: None, 0, ""),
    "a time": (lambda world: os.utime(world.picture), 0, ""),
    "a picture": (lambda world: flipped(world.picture), 2, ""),
    "a picture, predictions gone": (
        both(lambda world: flipped(world.picture), gone(PREDICTIONS)), 2, "",
    ),
    "a picture is gone": (lambda world: world.picture.unlink(), 0, "ImageError"),
    "a picture is gone and left out": (
        both(lambda world: world.picture.unlink(), set_field(skip_missing=True)),
        0, "IdentityError",
    ),
    "a label": (lambda world: table_with(world, "thing 3", "thing x"), 0, "IdentityError"),
    "the truth": (lambda world: table_with(world, "50", "51"), 0, "IdentityError"),
    "the words": (reworded, 0, "IdentityError"),
    "the words, forced": (both(reworded, set_field(force=True)), 2, ""),
    "a setting": (entry(settings={"top_p": 0.5}), 0, "IdentityError"),
    "a setting, forced": (
        both(entry(settings={"top_p": 0.5}), set_field(force=True)), 2 * ROWS, "",
    ),
    "reads like": (entry(reads_like="Gemma-3"), 0, "SpaceError"),
    "the space": (entry(space="unit"), 0, "IdentityError"),
    "the space, by the environment": (env("FINDIT_SPACE", "unit"), 0, "IdentityError"),
    "the checkpoint": (set_world(revision="r2"), 0, "IdentityError"),
    "forced": (set_field(force=True), 0, ""),
    "fewer rows": (set_field(limit=3), 0, "IdentityError"),
    "log-probabilities": (set_field(confidences=True), 2 * ROWS, ""),
    "predictions gone": (gone(PREDICTIONS), 0, ""),
    "predictions cut": (truncated(PREDICTIONS), 0, ""),
    "another reply": (says(PREDICTIONS, "[1, ", "[2, "), 0, "PredictionError"),
    "identity gone": (gone(IDENTITY), 0, ""),
    "identity cut": (truncated(IDENTITY), 0, "IdentityError"),
    "another identity": (says(IDENTITY, '"r1"', '"r0"'), 0, "IdentityError"),
    "scored by others": (scorer, 0, ""),
    "other code": (other_code, 0, ""),
    "journal and predictions gone": (
        both(lambda world: world.journal.unlink(), gone(PREDICTIONS)), ROWS, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_changed_is_found_out(world: World, case: str) -> None:
    change, calls, error = CASES[case]
    assert ran(world).calls == 2 * ROWS
    assert ran(world).calls == 0
    change(world)
    compared(world, calls, error)


@pytest.mark.parametrize("ending", [SCORE, DETAILS, PROVENANCE])
@pytest.mark.parametrize("change", [gone, truncated, damaged, edited])
def test_files_that_follow_from_the_journal_are_written_again(
    world: World, change: Callable[[str], Change], ending: str
) -> None:
    first = ran(world)
    change(ending)(world)
    assert compared(world, 0, "").files == first.files


def compared(world: World, calls: int, error: str) -> End:
    """Run on, then again from the same files as if nothing was finished; both end alike."""
    there, before = world.folder, world.folder.with_name("before")
    shutil.copytree(there, before)
    end = ran(world)
    shutil.rmtree(there)
    shutil.move(before, there)
    forget(there / "out")
    os.chdir(there)
    assert end == ran(world)
    assert (end.calls, end.error.split(":")[0]) == (calls, error)
    return end


JOURNALS: Mapping[str, Change] = {
    "gone": lambda world: world.journal.unlink(),
    "cut": journal_line(lambda lines: lines[:3]),
    "torn": journal_line(lambda lines: [*lines, b'{"key": "70a1']),
    "another": lambda world: world.fields.update(journal=world.folder / "b.jsonl"),
    "none": lambda world: world.journal.write_text("shopping list\n"),
}


@pytest.mark.parametrize("change", JOURNALS.values(), ids=JOURNALS)
def test_a_finished_sweep_needs_no_journal(world: World, change: Change) -> None:
    first = ran(world)
    change(world)
    before = sorted((path.name, path.read_bytes()) for path in world.folder.glob("*.jsonl"))
    again = ran(world)
    assert (again.calls, again.error, again.results) == (0, "", first.results)
    assert again.files == first.files
    assert sorted((path.name, path.read_bytes()) for path in world.folder.glob("*.jsonl")) == before


@pytest.mark.parametrize("case", ["gone", "cut", "torn", "another"])
def test_what_a_journal_lost_comes_back_from_the_predictions(world: World, case: str) -> None:
    """Where a cell is not finished, because its score is gone."""
    first = ran(world)
    JOURNALS[case](world)
    world.file(SCORE).unlink()
    assert compared(world, 0, "").files == first.files


def test_a_failed_call_is_asked_again(world: World) -> None:
    world.fails = 2
    assert ran(world).calls == 2 * ROWS
    world.fails = 0
    end = compared(world, 2, "")
    assert sum(result[3] for result in end.results) == 0


def test_more_rows_are_asked(world: World) -> None:
    world.fields["limit"] = 3
    assert ran(world).calls == 6
    world.fields["limit"] = 5
    compared(world, 4, "")


# --- what is not looked at ------------------------------------------------------------------------


def refused(*anything: Any, **named: Any) -> None:
    raise AssertionError("a finished cell is not opened")


def test_of_a_finished_sweep_no_call_is_looked_at(world: World) -> None:
    first = ran(world)
    made: list[int] = []

    def message(query, variant):
        made.append(query.index)
        return prompts.message(query, variant)

    world.patch.setattr(findit, "prompt_set", lambda: (prompts.NAME, message))
    for name in ("Journal", "adopt"):
        world.patch.setattr(run, name, refused)
    world.patch.setattr(Host, "backend", refused)
    again = ran(world)
    assert (again.error, again.results, again.files) == ("", first.results, first.files)
    assert sorted(made) == [0, 0, 3, 3, 5, 5], "three messages of each cell"


def test_a_cell_that_changed_is_gone_through_alone(world: World) -> None:
    ran(world)
    world.file(DETAILS).unlink()
    adopted: list[str] = []

    def adopt(output: Any, *others: Any) -> None:
        adopted.append(output.path.name)

    world.patch.setattr(run, "adopt", adopt)
    assert len(ran(world).results) == 2
    assert adopted == [f"{STEM}.json"]


def test_another_model_in_the_same_journal_leaves_the_first_finished(world: World) -> None:
    ran(world)
    both = replace(world.sweep(), models=(ModelEntry("FullImage"), ModelEntry("FindIt-Nano")))
    model = FakeModel()
    assert len(go(both, Host(model, "r1"))) == 4
    assert model.calls == 2 * ROWS
    world.patch.setattr(run, "Journal", refused)
    results = go(both, Host(model, "r1"))
    assert [result.model for result in results] == ["FullImage"] * 2 + ["FindIt-Nano"] * 2
    assert ran(world).error == "", "nor for a part of it"


def finished_cells(world: World) -> int:
    """How many cells say that they are finished."""
    paths = (world.folder / "out").rglob("*_provenance.json")
    return sum(FINISHED in json.loads(path.read_text(encoding="utf-8")) for path in paths)


@pytest.mark.parametrize("damage", [b"", b"[]\n{}", b"\xff\xfe"])
def test_image_hashes_are_not_believed_when_they_are_damaged(world: World, damage: bytes) -> None:
    ran(world)
    (world.folder / "out" / IMAGE_HASHES).write_bytes(damage)
    flipped(world.picture)
    compared(world, 2, "")


def test_a_mark_that_was_edited_is_not_believed(world: World) -> None:
    first = ran(world)
    for old, new in (('"rows": 6', '"rows": 5'), ('"coords_doubt": null', '"coords_doubt": "ill"')):
        says(PROVENANCE, old, new)(world)
        assert compared(world, 0, "").results == first.results


def test_cells_whose_messages_show_other_pictures_are_not_finished(world: World) -> None:
    def message(query, variant):
        return (image("0.png"), *prompts.message(query, variant))

    ran(world)
    assert finished_cells(world) == 2
    shutil.rmtree(world.folder / "out")
    world.patch.setattr(findit, "prompt_set", lambda: (prompts.NAME, message))
    ran(world)
    assert finished_cells(world) == 0


def test_answers_with_log_probabilities_take_the_place_of_others(world: World) -> None:
    """In the cells that ask for them, and in those that share their calls."""
    ran(world)
    world.fields["confidences"] = True
    assert ran(world).calls == 2 * ROWS
    world.fields.clear()
    compared(world, 0, "")


def test_what_was_not_known_of_the_model_is_recorded(world: World) -> None:
    world.revision = None
    ran(world)
    world.revision = "r2"
    end = compared(world, 0, "")
    assert '"r2"' in end.files[f"FullImage/{STEM}{IDENTITY}"]


# --- what is not imported -------------------------------------------------------------------------

AGAIN = """
import sys
from vlmeval_findit.cli import main
status = main(sys.argv[1:])
heavy = {"torch", "vlmeval", "transformers", "ray"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else status)
"""

MODELS = {
    "of VLMEvalKit": "{name: InternVL2-1B, space: grid1000}",
    "ours": "FullImage",
    "of one's own": "{name: Mine, checkpoint: mine, like: Qwen2.5-VL, space: grid1000}",
    "of servers": "{name: Any, space: grid1000}",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_a_finished_sweep_is_started_again_without_torch_and_without_vlmevalkit(
    world: World, kind: str
) -> None:
    if package_folder() is None and kind != "of servers":
        pytest.skip("VLMEvalKit is not installed")
    (world.folder / "mine").mkdir()
    (world.folder / "mine" / "config.json").write_text("{}")
    text = GRID.replace("FullImage", f"[{MODELS[kind]}]")
    (world.folder / "sweep.yaml").write_text(text)
    sweep, more = demo_sweep(world.folder, text), []
    if kind == "of servers":
        with ChatServer(lambda asked, number: completion("[1, 2, 3, 4]")) as server:
            first = go(sweep, ServersHost([server.url], Inference()))
        more = ["--base-url", server.url]
    else:
        first = go(sweep, LateHost(lambda: Host(FakeModel(), "r1")))
    world.journal.unlink()
    files = [world.folder / "out", world.journal]
    arguments = ["sweep", "sweep.yaml", "--work-dir", str(files[0]), "--journal", str(files[1])]
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, *arguments, *more],
        cwd=world.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert all(result.question.name in done.stdout for result in first)
    assert not world.journal.exists()
