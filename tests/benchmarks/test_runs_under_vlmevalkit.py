"""Benchmarks other than FindIt under VLMEvalKit's runner: answered, scored, ranked, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from host_runs import (
    RUN_FINDIT,
    STOCK,
    environment,
    metric_values,
    predictions,
    replies,
    require_host,
    run,
)
from refl4_stand_in import prepared
from stage2_stand_in import Layout, rows, write_part

from vlmeval_findit import cli
from vlmeval_findit.models import NANO_SIGLIP

pytestmark = [pytest.mark.host, pytest.mark.slow]

REF_L4 = "FindIt_RefL4Full_val_xyxy_json"
CAPTIONS = "SelfRetrieval_Scenes_mini"
STAGE_2 = "VPBench_Stage2_bvp"
MODELS = {REF_L4: "FullImage", CAPTIONS: "SceneDescriber", STAGE_2: "FirstOption"}


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    folder = prepared(tmp_path_factory.mktemp("lmu"), tmp_path_factory.mktemp("parquet"))
    write_part(folder / "parts", 0, rows(Layout.JSON), Layout.JSON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        assert cli.main(["data", "get", "VPBench", "--from", str(folder / "parts")]) == 0
    return folder


@pytest.fixture(scope="module")
def outputs(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("finished")
    refused = run(
        RUN_FINDIT, ["--data", STAGE_2, "--model", MODELS[STAGE_2]], cwd, environment(lmu)
    )
    assert refused.returncode == 2, refused.stdout
    assert "run_findit.py run --data VPBench_Stage1 --model FirstOption" in refused.stdout
    assert not list(cwd.rglob("*_calls.jsonl"))
    for data, model in MODELS.items():
        env = environment(lmu, FINDIT_VP_MARK="oval-blue")
        done = run(STOCK, ["--data", data, "--model", model], cwd, env)
        assert done.returncode == 0, done.stdout
    return cwd / "outputs"


def provenance(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())


@pytest.mark.parametrize(
    ("data", "count", "values"),
    [
        # Two of eight boxes are nearly the whole picture, both by one class of four.
        (REF_L4, 8, {"acc_0.5": 25, "class_acc": 25, "large_acc": 100, "adherence": 100,
                     "class_acc_corrected": pytest.approx(100 / 6)}),
        # Without the rows that have no answer "A" is right every second time.
        (STAGE_2, 18, {"accuracy": 50}),
        (CAPTIONS, 50, {}),
    ],
)  # fmt: skip
def test_a_run_is_scored_by_its_protocol(
    data: str, count: int, values: dict[str, Any], outputs: Path
) -> None:
    path = predictions(outputs, MODELS[data], data)
    assert len(replies(path)) == count
    result = metric_values(path)
    assert {name: result[name] for name in values} == values
    if data == CAPTIONS:
        assert result["captions"] >= result["pairs"] >= 80, (
            "the encoder that ships tells pairs apart"
        )
        scorer = provenance(path)["scorer"]
        assert (scorer["name"], scorer["source"]) == (NANO_SIGLIP, f"default of {data}")
    if data == STAGE_2:
        assert provenance(path)["identity"]["resolved_options"]["mark"] == "oval-blue"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data", STAGE_2, "--model", MODELS[STAGE_2], "--reuse"],
         "mark of the questions: recorded oval-blue, now box-black"),
        (["--data", "FindIt_Scenes_mini_xyxy_json", "--model", "SceneDescriber"], "cannot answer"),
        (["--data", CAPTIONS, "--model", MODELS[CAPTIONS], "--judge-args",
          '{"encoder": "Siglip"}'], "did you mean SigLIP?"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_a_call(
    arguments: list[str], says: str, outputs: Path, lmu: Path
) -> None:
    env = environment(lmu, FINDIT_VP_MARK="box-black")
    done = run(RUN_FINDIT, arguments, outputs.parent, env)
    assert done.returncode == 2, done.stdout
    assert says in done.stdout
    assert "Infer" not in done.stdout
