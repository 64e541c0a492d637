"""Two commands with one output at once: the second is refused, and the files of the first stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from review_files import Reviewer, write
from scored_runs import World, scored_outputs
from stand_ins import files_of

from vlmeval_findit.cli import main
from vlmeval_findit.core import files
from vlmeval_findit.protocol import ReviewVerdict

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
Capsys = pytest.CaptureFixture[str]

COMMANDS = {  # and the same with other results, of which {} names the folder
    "leaderboard": "leaderboard {} --out written",
    "report": "report {} --out written/report.html",
    "coco": "export {} --to coco --out written/out",
    "training": "export {} --to training --out written/out --yes-test-data",
    "hub": "export {} --to hub --out written/out",
    "fiftyone": "export {} --to fiftyone --out written/out",
    "reviews": "data reviews {}/reviews.jsonl --out written/joined.jsonl",
    "json": "errors {} --json written/errors.json",
    "score": f"score written/Good_{NAME}.json",
}
NO_TIMES = ("coco", "reviews", "json", "score")  # Files that are equal when made again


def _words(command: str, results: str) -> list[str]:
    words = COMMANDS[command].format(results).split()
    if command == "score" and results == "others":
        words += ["--thought-marks", "[{ }]"]
    return words


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = scored_outputs(tmp_path, monkeypatch)
    shutil.copytree("outputs", "others")
    for path in Path("others").glob("Poor*"):
        path.unlink()
    reviewer = Reviewer(NAME)
    write(Path("outputs/reviews.jsonl"), reviewer.review(0, ReviewVerdict.LABEL))
    write(Path("others/reviews.jsonl"), reviewer.review(1, ReviewVerdict.LABEL))
    return world


def _start(command: str) -> None:
    """Empty the folder that is written; a score lies beside its predictions."""
    shutil.rmtree("written", ignore_errors=True)
    if command == "score":
        shutil.copytree("others", "written")
    else:
        Path("written").mkdir()


def _as_another_writes(patch: pytest.MonkeyPatch, write: Callable[[], object]) -> list[bool]:
    """Call ``write`` when a command has worked, before its first file; returns whether it was."""
    done: list[bool] = []
    name = files.secrets.token_hex

    def token_hex(length: int) -> str:
        if not done:
            done.append(True)
            write()
        return name(length)

    patch.setattr(files, "secrets", SimpleNamespace(token_hex=token_hex))
    return done


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_another_command_wrote_meanwhile_stays(
    command: str, is_first: bool, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    _start(command)
    assert main(_words(command, "others")) == 0
    shutil.copytree("written", "saved")
    _start(command)
    ours = _words(command, "outputs")
    if not is_first:
        assert main(ours) == 0
    capsys.readouterr()
    theirs = {}

    def write() -> None:
        shutil.copytree("saved", "written", dirs_exist_ok=True)
        theirs.update(files_of(Path("written")))

    with monkeypatch.context() as patch:
        done = _as_another_writes(patch, write)
        assert main(ours) in (1, 2)
    assert done
    words = " ".join(capsys.readouterr().err.split())
    assert "another command wrote " in words
    assert words.endswith("type this one again")
    assert files_of(Path("written")) == theirs
    # Reviews of the other would be lost: it says which file to name, too.
    assert main(ours) == (2 if command == "reviews" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_is_refused_where_nobody_else_wrote(
    command: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _start(command)
    for _ in range(2):
        with monkeypatch.context() as patch:
            done = _as_another_writes(patch, lambda: None)
            assert main(_words(command, "outputs")) == 0
        assert done


@pytest.mark.slow
@pytest.mark.parametrize("command", NO_TIMES)
def test_equal_files_of_another_command_are_no_reason(
    command: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _start(command)
    ours = _words(command, "outputs")
    assert main(ours) == 0
    shutil.copytree("written", "saved")
    _start(command)
    with monkeypatch.context() as patch:
        _as_another_writes(patch, lambda: shutil.copytree("saved", "written", dirs_exist_ok=True))
        assert main(ours) == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
def test_equal_results_of_other_settings_are_not_replaced(
    is_first: bool, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    _start("score")
    ours = _words("score", "outputs")
    theirs = [*ours, "--thought-marks", "<hm> </hm>"]
    assert main(theirs) == 0
    shutil.copytree("written", "saved")
    _start("score")
    if not is_first:
        assert main(ours) == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        _as_another_writes(patch, lambda: shutil.copytree("saved", "written", dirs_exist_ok=True))
        assert main(ours) in (1, 2)
    assert "another command wrote " in capsys.readouterr().err
    assert files_of(Path("written")) == files_of(Path("saved"))
