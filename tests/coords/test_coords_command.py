"""``findit coords`` and the check that every score makes, over runs on disk."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from few_fast import few_fast
from simulated_deployments import HABITS, PROFILES, Habit, convention, run

from vlmeval_findit.benchmarks.findit import FindItQuery as Row
from vlmeval_findit.benchmarks.findit import ScoredReply, write_table
from vlmeval_findit.boxes import ParsedReply, Truth
from vlmeval_findit.cli import main
from vlmeval_findit.coords import (
    AnsweredQuery,
    Convention,
    NotBoxesError,
    RunReplies,
    metrics_in,
    replies_of_run,
    score_check,
)
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Answering, Settings
from vlmeval_findit.scoring import (
    RunScore,
    check_replies,
    load_run,
    run_identity,
    score_file,
    score_rows,
)
from vlmeval_findit.storage import RunFiles, read_identity, read_predictions, write_identity

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
GRID = convention("grid1000/xyxy")
PIXELS = convention("pixels/xyxy")

Deployment = Callable[..., Path]


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Makes the prediction file of a model that answers in a convention and records another."""
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))

    def make(
        says: Convention | Callable[..., Convention] = GRID,
        space: dict[str, Any] | None = None,
        queries: int = 120,
        habit: Habit = HABITS["good"],
        name: str = NAME,
    ) -> Path:
        built = run(np.random.default_rng(0), PROFILES["phrases"], says, habit, queries)
        write_table(tmp_path, "Pascal", [_row(i, each) for i, each in enumerate(built)], {})
        path = tmp_path / "runs" / f"Model_{name}.json"
        path.parent.mkdir(exist_ok=True)
        replies = [{"index": i, "prediction": _reply(each.numbers)} for i, each in enumerate(built)]
        path.write_text(json.dumps(replies), encoding="utf-8")
        recorded = run_identity(
            load_dataset(name),
            "Model",
            Answering("Test"),
            list(range(queries)),
            space or {"kind": "grid1000"},
        )
        write_identity(RunFiles(path).identity, recorded)
        return path

    return make


def _row(index: int, each: AnsweredQuery) -> Row:
    boxes = tuple(map(tuple, each.truths))
    truth = Truth(boxes, (0,) * len(boxes))  # type: ignore[arg-type]
    return Row(index, "thing", each.width, each.height, (f"{each.image}.jpg",), truth)


def _reply(boxes: Sequence[Sequence[float]]) -> str:
    return json.dumps([{"bbox_2d": list(box), "label": "thing"} for box in boxes])


def coords(*arguments: object) -> int:
    return main(["coords", *map(str, arguments)])


def test_a_terminal_shows_doubtful_runs_first(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "FindIt_Pascal_xyxy_text"
    right = deployment()
    _ = deployment(space={"kind": "pixels"}, name=text)
    assert coords(right.parent) == 1
    assert capsys.readouterr().out.count("if the answers were read as") == 2
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coords(right.parent) == 1
    first, second, rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"Model on {text}: declared pixels")
    assert first.endswith("the run's convention is wrong")
    assert second.startswith(f"Model on {NAME}: ")
    assert second.endswith(": it fits")
    assert rest.endswith("run_findit.py coords FILE")
    assert coords(right) == 0
    assert "if the answers were read as" in capsys.readouterr().out


def test_a_wrong_space_is_reported_with_the_right_score(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = deployment(says=PIXELS)
    assert coords(path.parent, "--json", tmp_path / "told.json") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "pixels of the image, xyxy: F1 " in out
    assert "the run's convention is wrong" in out
    (told,) = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert (told["verdict"], told["alarm"], told["declared"]) == ("other", True, GRID.name)
    assert told["fit"]["best"] == "pixels/xyxy"
    assert told["fit"]["distortion"]["x"]["scale"] == pytest.approx(1, abs=0.05)
    read_as = {line["convention"]: line["F1@0.5"] for line in told["read_as"]["rows"]}
    assert read_as["pixels/xyxy"] > read_as["grid1000/xyxy"] + 30


def test_the_advised_command_scores_in_the_space_that_fits(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``coords`` says the command, it works twice, and the recorded score stays."""
    path = deployment(says=PIXELS)
    path = path.rename(path.with_name(f"My Model_{NAME}.json"))
    identity = RunFiles(path.with_name(f"Model_{NAME}.json")).identity
    values = json.loads(identity.read_text("utf-8").replace('"Model"', '"My Model"'))
    RunFiles(path).identity.write_text(json.dumps(values), encoding="utf-8")
    identity.unlink()
    right = metrics_in(read(path, "My Model", space={"kind": "pixels"}), PIXELS)
    assert main(["score", str(path)]) == 0
    files = RunFiles(path)
    recorded = {file: file.read_bytes() for file in (files.score, files.details, files.provenance)}
    other = RunFiles(path, ".space-pixels")
    for _ in range(2):
        capsys.readouterr()
        assert coords(path) == 1
        words = shlex.split(capsys.readouterr().out.strip().splitlines()[-1])
        assert main(words[words.index("score") :]) == 0
        output = capsys.readouterr().out
        assert f"the recorded score is unchanged; the new score is {other.score}" in output
        assert "My Model (space-pixels)" in output
        assert {file: file.read_bytes() for file in recorded} == recorded
    result = load_run(other.provenance)
    assert result.metric_values["F1@0.5"] == pytest.approx(right["F1@0.5"])
    (note,), (space,) = result.provenance.forced, result.provenance.spaces_in_words
    assert note.startswith("coordinate space: recorded")
    assert space.startswith("pixels (given when scored; coordinate space: recorded")
    for file in (other.score, other.provenance):
        assert coords(file) == 0
        assert "it fits" in " ".join(capsys.readouterr().out.split())

    # A folder is the recorded scores; the other score is shown if its file is named.
    board = ["leaderboard", "--out", str(tmp_path / "board")]
    assert main([*board, str(path.parent)]) == 0
    output = capsys.readouterr()
    assert "space-pixels" not in output.out
    assert f"name a file to see it: {other.provenance}" in output.err
    assert main([*board, str(path), str(other.score)]) == 0
    assert "My Model (space-pixels)" in capsys.readouterr().out
    table = (tmp_path / "board" / "leaderboard.md").read_text("utf-8")
    assert "My Model (space-pixels)" in table
    export = ["export", "--to", "coco", "--out", str(tmp_path / "coco")]
    assert main([*export, str(other.score)]) == 2
    assert "in another space than the run recorded" in capsys.readouterr().err


NEXT_STEPS = {
    "percent": "score it in that space; the recorded score stays: {score} --space percent {file}",
    "letterbox1": 'score --space \'{"kind": "letterbox", "side": 1}\' {file}',
    "longer1000": "no --space reads thousandths of the longer side; a plug-in can",
    "crop1000": "no --space reads thousandths of the square in its middle; a plug-in can",
    "square640": "{score} --plugin FILE.py --space NAME {file}",
    "grid1000_flipy": "thousandths of the image counted from the bottom: send the image as it is",
}


@pytest.mark.parametrize("name", few_fast(NEXT_STEPS, 2))
def test_whatever_fits_has_a_next_step(
    name: str, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    path = deployment(says=convention(f"{name}/xyxy"))
    assert coords(path) == 1
    said = " ".join(capsys.readouterr().out.split())
    wanted = NEXT_STEPS[name].replace("{file}", str(path))
    assert wanted.replace("{score}", "python run_findit.py score") in said


def test_a_run_in_percent_is_scored_in_that_space(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    path = deployment(says=convention("percent/xyxy"))
    assert main(["score", "--space", "percent", str(path)]) == 0
    percent = load_run(RunFiles(path, ".space-percent").provenance).metric_values["F1@0.5"]
    right = deployment(says=GRID)
    assert percent == pytest.approx(score_file(right).metric_values["F1@0.5"], abs=1)


def read(path: Path, model: str = "Model", space: Any = None) -> RunReplies:
    """Read a run in a space, or as it recorded."""
    name = path.stem.partition("_")[2]
    identity = None if space else read_identity(path)
    replies = read_predictions(path)
    return replies_of_run(model, load_dataset(name), replies, Settings(space), identity)


@pytest.mark.parametrize("order", ["xyxy", "xywh"])
def test_what_the_score_would_be_is_what_it_is(order: str, deployment: Deployment) -> None:
    """Read as declared the metrics are the score's; read as answered, those of the right run."""
    grid = convention(f"grid1000/{order}")
    pixels = convention(f"pixels/{order}")
    path = deployment(says=pixels, name=f"FindIt_Pascal_{order}_json_bbox_2d")
    wrong, right = (read(path, space={"kind": kind}) for kind in ("grid1000", "pixels"))
    scored = score_file(path).metric_values
    for figure, value in metrics_in(wrong, grid).items():
        assert value == pytest.approx(scored[figure])
    assert metrics_in(wrong, pixels) == pytest.approx(metrics_in(right, pixels))


@pytest.mark.parametrize("representation", ["xyxy", "xywh", "yxyx", "yxhw", "cxcywh"])
def test_numbers_are_those_of_the_reply(representation: str, deployment: Deployment) -> None:
    """Whatever the order, the coordinate check sees the numbers of the reply."""
    says = convention(f"grid1000/{representation}")
    path = deployment(says=says, queries=10, name=f"FindIt_Pascal_{representation}_json_bbox_2d")
    result = read(path)
    assert result.declared.name == says.name
    output = [box for query in result.queries for box in query.numbers]
    replies = json.loads(path.read_text(encoding="utf-8"))
    told = [each["bbox_2d"] for reply in replies for each in json.loads(reply["prediction"])]
    assert np.allclose(output, told)


def test_every_frame_of_a_video_is_a_query() -> None:
    truth = Truth(((1, 2, 3, 4), (5, 6, 7, 8)), (0, 2))
    row = Row(0, "cat", 100, 50, ("clip/1.jpg", "clip/2.jpg", "clip/3.jpg"), truth)
    reading = ParsedReply([(10, 20, 30, 40), (0, 0, 0, 0)], [], [1, 2], None)
    matched = ScoredReply(row, None, reading, None)  # type: ignore[arg-type]
    frames = RunReplies(GRID, [matched]).queries
    assert [(list(each.truths), list(each.numbers)) for each in frames] == [
        ([(1, 2, 3, 4)], []),
        ([], [[10, 20, 30, 40]]),
        # Eight numbers that are no rectangle are no box.
        ([(5, 6, 7, 8)], []),
    ]
    assert {each.image for each in frames} == {"clip/1.jpg"}


def test_what_has_neither_boxes_nor_points_is_left_out() -> None:
    letters = SimpleNamespace(variant=SimpleNamespace(name="Colours_Small"))
    with pytest.raises(NotBoxesError, match="its answers are neither boxes nor points"):
        replies_of_run("Model", letters, [], Settings(), None)
    points = replies_of_run(
        "Qwen3-VL", load_dataset("FindIt_Demo_point_text"), [], Settings(), None
    )
    assert points.are_points


# --- the check that every score makes -------------------------------------------------------------


def test_a_score_warns_of_a_wrong_space(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = deployment(says=PIXELS)
    assert main(["score", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if "but the answers follow" in line)
    assert "declared thousandths" in line
    assert "pixels of the image" in line
    told = json.loads(RunFiles(path).provenance.read_text(encoding="utf-8"))["coords_doubt"]
    assert told in line
    assert main(["leaderboard", str(path), "--out", str(tmp_path / "board")]) == 0
    doubt, _, agree = told.partition(" (")
    assert agree.endswith(" agree)")
    assert f": {doubt}\n" in capsys.readouterr().out
    pages = [each.read_text(encoding="utf-8") for each in (tmp_path / "board").rglob("*.md")]
    assert any("Coordinate space in doubt" in each for each in pages)
    page = tmp_path / "report.html"
    assert main(["report", str(path), "--out", str(page)]) == 0
    assert "<h3>Coordinate space in doubt</h3>" in page.read_text(encoding="utf-8")


def test_a_score_warns_of_a_wrong_coordinate_order(deployment: Deployment) -> None:
    order = score_file(deployment(says=convention("grid1000/xywh"))).coords_doubt
    assert order is not None
    assert "follow thousandths of width and height, xywh" in order
    path = deployment(lambda rng: PIXELS if rng.random() < 0.4 else GRID, queries=250)
    spaces = score_file(path).coords_doubt
    assert spaces is not None
    assert "% of the answers follow pixels" in spaces


def rows_of(path: Path) -> RunScore:
    dataset = load_dataset(NAME)
    replies = read_predictions(path)
    return score_rows(check_replies("Model", dataset, replies, Settings(), read_identity(path)))


def test_of_a_long_run_no_more_is_sampled_than_intended(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ = rows_of(deployment(queries=400))
    dataset = load_dataset(NAME)
    sample = score_check.sample(dataset, run_.rows)
    assert len(sample) == 64
    joined = score_check.join_samples([sample] * 5)
    assert len(joined) == score_check.MOST_QUERIES
    # Evenly: from the first part to the last.
    assert joined[0] == sample[0]
    assert joined[-1] in sample[-5:]
    tried: list[int] = []
    monkeypatch.setattr(
        score_check, "is_suspicious", lambda some, _: tried.append(len(some)) or False
    )
    assert score_check.warning(dataset, joined, run_.spaces) is None
    assert tried == [80]


@pytest.mark.parametrize("reply", ["[]", "no idea", ""])
def test_without_boxes_there_is_nothing_to_judge(
    reply: str, deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No table of zeros, and the next command."""
    path = deployment(queries=30)
    replies = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([{**each, "prediction": reply} for each in replies]))
    assert coords(path, "--json", tmp_path / "checks.json") == 0
    said = capsys.readouterr().out
    assert "nothing to judge: no boxes were read in the answers to 30 queries" in said
    assert "F1" not in said
    assert f"errors {path}" in said
    (check,) = json.loads((tmp_path / "checks.json").read_text(encoding="utf-8"))
    assert check["boxes"] == 0


def test_unreadable_answers_are_no_evidence_of_a_space(
    deployment: Deployment,
) -> None:
    path = deployment(queries=30)
    replies = json.loads(path.read_text(encoding="utf-8"))
    for reply in replies:
        reply["prediction"] = '[{"bbox_2d": [1e305, 1, 2, 3], "label": "thing"}]'
    path.write_text(json.dumps(replies), encoding="utf-8")
    assert score_file(path).coords_doubt is None
    assert coords(path) == 0
    replies[0]["prediction"] = _reply([[1, 2, 3, 4]] * 5000)
    path.write_text(json.dumps(replies), encoding="utf-8")
    assert max(len(query.numbers) for query in rows_of(path).sample) == 50
