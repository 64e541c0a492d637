"""Self-retrieval the whole way, by the encoder that ships: run, gone on, scored again, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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

from vlmeval_findit.models.dual_encoder.encoder import NANO_SIGLIP

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "SelfRetrieval_Scenes_mini"
MODEL = "SceneDescriber"


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    return tmp_path_factory.mktemp("lmu")


@pytest.fixture(scope="module")
def finished(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("finished")
    arguments = ["--data", DATA, "--model", MODEL, "--work-dir", "outputs"]
    done = run(RUN_FINDIT, arguments, cwd, environment(lmu))
    assert done.returncode == 0, done.stdout
    return cwd / "outputs"


def provenance(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())


def test_honest_captions_retrieve_their_pictures(finished: Path) -> None:
    path = predictions(finished, MODEL, DATA)
    found = metric_values(path)
    assert found["pairs"] >= 80
    assert found["captions"] >= found["pairs"]
    assert {"pairs_as_published", "captions_as_published"} <= set(found)
    assert len(replies(path)) == 50
    scorer = provenance(path)["scorer"]
    assert scorer["name"] == NANO_SIGLIP
    assert scorer["source"] == f"default of {DATA}"
    assert scorer["settings"]["padding"] == "padded to 64 tokens, not masked"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--data", "SelfRetrieval", "--model", "FindIt-Nano"],
            "data get SelfRetrieval --from dataset.json",
        ),
        (["--data", "FindIt_Scenes_mini_xyxy_json", "--model", MODEL], "cannot answer"),
        (
            ["--data", DATA, "--model", MODEL, "--judge-args", '{"encoder": "Siglip"}'],
            "did you mean SigLIP?",
        ),
    ],
    ids=["no table", "another benchmark", "no such encoder"],
)
def test_what_cannot_work_is_refused_before_a_call(
    arguments: list[str], says: str, lmu: Path, tmp_path: Path
) -> None:
    done = run(RUN_FINDIT, arguments, tmp_path, environment(lmu))
    assert done.returncode == 2
    assert says in done.stdout
    assert "Infer" not in done.stdout
