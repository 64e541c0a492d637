"""Commands that write several files, killed before each change: no files of two states."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import toy_benchmark
from kills import every_kill
from review_files import Reviewer, write
from scored_runs import World, saying, scored_outputs, speaking
from stand_ins import files_of

from vlmeval_findit.cli import main
from vlmeval_findit.core import settle_file_sets
from vlmeval_findit.protocol import ReviewVerdict

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
Files = Mapping[str, bytes]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return scored_outputs(tmp_path, monkeypatch)


def _export(target: str, *more: str) -> list[str]:
    return ["export", "outputs", "--to", target, "--out", "written/out", *more]


def _add_letters(world: World, patch: pytest.MonkeyPatch) -> None:
    """Score a run of another benchmark, which has a page and a board of its own."""
    toy_benchmark.register(patch)
    pictures = world.folder / "pictures"
    patch.setenv("FINDIT_IMAGES", f"Pascal={pictures},Letters={pictures}")
    toy_benchmark.zoo(world)
    name = f"Letters_Zoo_{toy_benchmark.FORMATS[0]}"
    world.predict("Good", name, toy_benchmark.guessing(0.5))
    shutil.copytree(world.runs, "outputs", dirs_exist_ok=True)


def _states(old: Files, new: Files, now: Files) -> set[str]:
    """Return of which states files are, as far as their content tells."""
    states = set()
    for name in {**old, **new, **now}:
        if old.get(name) != new.get(name):
            states.add("old" if now.get(name) == old.get(name) else "new")
    return states


_COMMANDS = {
    "leaderboard": (["leaderboard", "outputs", "--out", "written"], "written/leaderboard.xlsx"),
    "report": (["report", "outputs", "--out", "written/report.html"], "written/report.html"),
    "coco": (_export("coco"), "written/out"),
    "training": (_export("training", "--yes-test-data"), "written/out"),
    "hub": (_export("hub"), "written/out"),
    "fiftyone": (_export("fiftyone"), "written/out"),
}


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
@pytest.mark.parametrize("command", _COMMANDS)
def test_no_files_of_two_states(
    command: str, is_first: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, mark = _COMMANDS[command]
    written = Path("written").absolute()
    written.mkdir()
    if command == "report":
        _add_letters(world, monkeypatch)
    if not is_first:
        assert main(words) == 0
    old = files_of(written)
    shutil.copytree(written, "saved")
    world.predict("Third", NAME, speaking(NAME, 0.6))
    (world.runs / f"Third_{NAME}.json").unlink()
    world.predict("Other", NAME, saying("no boxes here"))
    shutil.copytree(world.runs, "outputs", dirs_exist_ok=True)
    for left in Path("outputs").glob("Third*"):
        left.unlink()
    assert main(words) == 0
    new = files_of(written)
    assert old != new
    _restore(written)
    kills = 0
    seen = set()
    for _ in every_kill(lambda: main(words), written):
        kills += 1
        settle_file_sets(Path(mark))
        now = files_of(written)
        # What a killed writer of one file left is deleted by the next.
        whole = {name: data for name, data in now.items() if not Path(name).name.startswith(".")}
        states = _states(old, new, whole)
        assert len(states) == 1, f"after {kills} kills: {states}"
        seen |= states
        if kills % 4 == 0:
            assert main(words) == 0
            assert files_of(written).keys() == new.keys()
            assert not any(path.name.startswith(".") for path in written.rglob("*"))
        _restore(written)
    assert kills > 4
    assert "old" in seen


def _restore(written: Path) -> None:
    shutil.rmtree(written)
    shutil.copytree("saved", written)


def test_joined_reviews_are_whole_or_as_before(world: World) -> None:
    reviewer = Reviewer(NAME)
    Path("written").mkdir()
    one = write(Path("one.jsonl"), reviewer.review(0, ReviewVerdict.LABEL))
    two = write(Path("two.jsonl"), reviewer.review(1, ReviewVerdict.LABEL, reviewer="cd"))
    out = Path("written/both.jsonl")
    join = ["data", "reviews", str(one), str(two), "--out", str(out)]
    _kill_each(join, out, {None})
    before = out.read_bytes()
    three = write(Path("three.jsonl"), reviewer.review(2, ReviewVerdict.LABEL, reviewer="ef"))
    more = ["data", "reviews", str(out), str(three), "--out", str(out)]
    _kill_each(more, out, {before})
    assert out.read_bytes() != before


def _kill_each(words: list[str], out: Path, allowed: set[bytes | None]) -> None:
    shutil.copytree(out.parent, "saved", dirs_exist_ok=True)
    for _ in every_kill(lambda: main(words), out.parent.absolute()):
        assert (out.read_bytes() if out.exists() else None) in allowed
        assert main(words) == 0
        assert list(out.parent.iterdir()) == [out], "what killed commands left is gone"
        _restore(out.parent)


@pytest.mark.slow
def test_a_killed_score_is_read_as_it_was_or_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of two scorings are refused by what reads them: their sums differ."""
    predictions = world.folder / "outputs" / f"Good_{NAME}.json"
    shutil.copytree("outputs", "saved")
    score = ["score", str(predictions), "--thought-marks", "<plan> </plan>"]
    for _ in every_kill(lambda: main(score), Path("outputs").absolute()):
        capsys.readouterr()
        status = main(["leaderboard", "outputs", "--out", "board"])
        assert status == 0 or "score" in capsys.readouterr().err
        shutil.rmtree("outputs")
        shutil.copytree("saved", "outputs")


def _writers(world: World) -> dict[str, list[str]]:
    """Return commands that write a file or a set of them into one folder."""
    reviewer = Reviewer(NAME)
    other = next(path for path in Path("outputs").glob(f"*_{NAME}.json") if "Good" not in path.name)
    one = str(write(Path("one.jsonl"), reviewer.review(0, ReviewVerdict.LABEL)))
    return {
        "score": ["score", f"outputs/Good_{NAME}.json", "--thought-marks", "<plan> </plan>"],
        "another score": [
            "score",
            str(other),
            "--thought-marks",
            "<plan> </plan>",
        ],
        "leaderboard": ["leaderboard", "outputs", "--out", "outputs"],
        "report": ["report", "outputs", "--out", "outputs/report.html"],
        "data reviews": ["data", "reviews", one, "--out", "outputs/reviews.jsonl"],
        "figures": ["figures", "--template", "outputs/figures.yaml"],
        "compare": [
            "compare",
            f"outputs/Good_{NAME}.json",
            str(other),
            "--json",
            "outputs/compare.json",
        ],
    }


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["score", "leaderboard", "report", "data reviews", "figures"])
def test_any_next_command_clears_what_a_killed_one_left(killed: str, world: World) -> None:
    writers = _writers(world)
    folder = Path("outputs").absolute()
    shutil.copytree("outputs", "saved")
    left = 0
    for _ in every_kill(lambda: main(writers[killed]), folder):
        hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
        left += bool(hidden)
        following = list(writers)[left % len(writers)]
        assert main(writers[following]) == 0
        hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
        assert hidden == [], f"{killed}, then {following}"
        shutil.rmtree(folder)
        shutil.copytree("saved", folder)
    assert left, "a kill leaves something"
