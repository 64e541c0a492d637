"""Stage 2 the whole way: stage 1, its best marks, two models asked by their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from host_runs import (
    RUN_FINDIT,
    environment,
    metric_values,
    predictions,
    replies,
    require_host,
    run,
)
from PIL import Image
from stage2_stand_in import Layout, rows, write_part

from vlmeval_findit import cli
from vlmeval_findit.benchmarks.vpbench.question_tables import write_table
from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind, VPQuery

pytestmark = [pytest.mark.host, pytest.mark.slow]

MODELS = ["FirstOption", "RandomOption"]
STAGE_1 = "VPBench_Mine"
STAGE_2 = ["VPBench_Stage2_bvp", "VPBench_Stage2_rbvp_described", "VPBench_Stage2_text"]
BVP = STAGE_2[0]


def stage_1() -> list[VPQuery]:
    """Questions about ovals and boxes, red and blue ones; the first option is right for blue ovals,
    and for one of two red ovals and blue boxes.
    """
    made = []
    for index in range(24):
        shape, colour = ("oval", "box")[index % 2], ("blue", "red")[index // 2 % 2]
        wrong = (shape == "box") + (colour == "red") + (index // 4 % 2)
        made.append(
            VPQuery(
                index=index,
                label=f"what {index}",
                images=("one.png",),
                hint="",
                question=f"What is in the {colour} {shape} number {index}?",
                options=(("A", "a car"), ("B", "a bus")),
                answer="A" if wrong < 2 else "B",
                amount="1",
                shapes=(shape,),
                properties=(colour,),
                kind=QuestionKind.REFERENCE,
                absent=False,
                source="mine",
                cluster="one.png",
            )
        )
    return made


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    folder = tmp_path_factory.mktemp("lmu")
    write_part(folder / "parts", 0, rows(Layout.JSON), Layout.JSON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        assert cli.main(["data", "get", "VPBench", "--from", str(folder / "parts")]) == 0
    write_table(folder, STAGE_1, stage_1(), {"source": "a test"})
    (folder / "images" / STAGE_1).mkdir()
    Image.new("RGB", (80, 60), (90, 140, 90)).save(folder / "images" / STAGE_1 / "one.png")
    return folder


@pytest.fixture(scope="module")
def refused(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stage 2 before stage 1."""
    cwd = tmp_path_factory.mktemp("finished")
    done = run(RUN_FINDIT, ["--data", BVP, "--model", *MODELS], cwd, environment(lmu))
    assert done.returncode == 2, done.stdout
    assert "the best mark of 'FirstOption' is not known" in done.stdout
    assert "run_findit.py --data VPBench_Stage1 --model FirstOption" in done.stdout
    assert not list(cwd.rglob("*_calls.jsonl"))
    (cwd / "sweep.yaml").write_text(
        f"models: [{', '.join(MODELS)}]\ndatasets: [{', '.join(STAGE_2)}]\n"
        "work_dir: swept\njournal: swept/calls.jsonl\n"
    )
    return cwd


@pytest.fixture(scope="module")
def finished(refused: Path, lmu: Path) -> Path:
    """Stage 1, its best marks, stage 2."""
    env = environment(lmu)
    done = run(RUN_FINDIT, ["--data", STAGE_1, "--model", *MODELS], refused, env)
    assert done.returncode == 0, done.stdout
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LMUData", str(lmu))
            given = ["--best-marks", str(refused / "outputs"), "--at-least", "6"]
            assert cli.main(["leaderboard", *given]) == 0
    done = run(RUN_FINDIT, ["--data", *STAGE_2, "--model", *MODELS], refused, env)
    assert done.returncode == 0, done.stdout
    return refused


def identity(path: Path) -> dict[str, object]:
    beside = path.parent.parent / f"{path.stem}_identity.json"
    at = path.with_name(f"{path.stem}_identity.json")
    found: dict[str, object] = json.loads((at if at.is_file() else beside).read_text())
    return found


def test_what_models_see_best_says_what_it_rests_on(finished: Path, lmu: Path) -> None:
    said = json.loads((lmu / "VPBench_best_marks.json").read_text())
    assert set(said["models"]) == set(MODELS)
    first = said["models"]["FirstOption"]
    assert first["best"] == "oval-blue"
    assert first["shapes"]["oval"] == {"accuracy": 75.0, "questions": 12}
    assert [one["file"] for one in first["runs"]] == [f"FirstOption_{STAGE_1}.json"]
    assert len(first["runs"][0]["predictions_sha256"]) == 64
    assert "oval" in said["good"]["shapes"]


def test_each_model_is_asked_by_its_own_mark(finished: Path) -> None:
    ways = [identity(predictions(finished / "outputs", model, BVP)) for model in MODELS]
    first, other = ways
    assert first["resolved_options"]["mark"] == "oval-blue"  # type: ignore[index]
    assert first["prompt_hash"] == other["prompt_hash"]
    path = predictions(finished / "outputs", "FirstOption", BVP)
    assert len(replies(path)) == 18
    provenance = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
    assert (provenance["totals"]["unscored"], provenance["totals"]["asked"]) == (6, 12)
    # Without the rows that have no answer "A" is right every second time.
    assert metric_values(path)["accuracy"] == 50.0


def test_a_run_does_not_go_on_with_another_mark(finished: Path, lmu: Path) -> None:
    env = environment(lmu, FINDIT_VP_MARK="box-black")
    arguments = ["--data", BVP, "--model", "FirstOption", "--reuse"]
    done = run(RUN_FINDIT, arguments, finished, env)
    assert done.returncode == 2, done.stdout
    assert "mark of the questions: recorded oval-blue, now box-black" in done.stdout
