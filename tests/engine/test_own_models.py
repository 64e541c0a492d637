"""Models of FindIt's in this process: loaded for the first call, known as VLMEvalKit knows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from host_runs import environment, require_host

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.cli import main
from vlmeval_findit.engine import (
    deployment_of,
)
from vlmeval_findit.models import ModelEntry, local_names

QUESTIONS = [parse(f"FindIt_Demo_{name}") for name in ("xyxy_json", "multilabel_xywh_text")]

SWEEP = """
models: [FullImage, FindIt-Nano, {name: mine, like: FindIt-Nano, checkpoint: CHECKPOINT}]
datasets: [Demo]
representations: [xyxy]
outputs: [json]
limit: 2
"""

IN_A_PROCESS = """
import sys
from vlmeval_findit.cli import main
status = main(sys.argv[1:])
print([name for name in ("vlmeval", "torch", "transformers") if name in sys.modules])
sys.exit(status)
"""


def shipped(name: str = "FindIt-Nano") -> str:
    return local_names()[name][1]


def test_a_finished_sweep_loads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second sweep has a process to itself; the first loads its models in this one."""
    pytest.importorskip("torch")
    config = tmp_path / "sweep.yaml"
    config.write_text(SWEEP.replace("CHECKPOINT", shipped()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    words = ["sweep", str(config), "--work-dir", "out"]
    assert main(words) == 0
    first = capsys.readouterr().out.splitlines()
    again = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, *words],
        env=environment(tmp_path / "lmu"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines() == [*first, "[]"], "a finished sweep asks nothing"


ENTRIES = [
    ModelEntry("FullImage"),
    ModelEntry("FindIt-Nano"),
    ModelEntry("FindIt-Nano", {"temperature": 0.7, "dtype": "float32"}),
    ModelEntry("FindIt-Nano", {"max_new_tokens": 5}, space="grid1000"),
    ModelEntry("FindIt-Nano", {"model_path": shipped("FindIt-Nano-px")}, space="pixels"),
    ModelEntry("FindIt-Nano", resources={"batch_size": 2, "device": "cpu"}),
    ModelEntry("mine", checkpoint=shipped(), like="FindIt-Nano"),
    ModelEntry("mine", {"template": {"a": [1, {"b": None}]}}, checkpoint=shipped()),
    ModelEntry("Qwen3-VL-8B", {"max_pixels": 1605632, "revision": "main"}),
]


@pytest.mark.host
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_a_model_is_known_as_under_vlmevalkits_runner(entry: ModelEntry) -> None:
    """Either goes on where the other ended."""
    require_host()
    from vlmeval_findit.host import VLMEvalKitModel, make_known, preflight, register

    register()
    said = []
    for known in (VLMEvalKitModel(entry), deployment_of(entry)):
        with preflight.models_of_command([]):
            try:
                if entry.checkpoint is not None:
                    make_known(entry.name, entry.checkpoint, entry.like)
                known.check()
                described = [known.describe(variant) for variant in QUESTIONS]
                said.append(([dict(known.key(variant)) for variant in QUESTIONS], described))
            except ValueError as error:
                said.append(str(error))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            ModelEntry("FullImage", headers={"A": "b"}),
            "headers has no effect: FullImage is asked at no server",
        ),
        (
            ModelEntry("FullImage", {"dtype": "float32"}, where="s.yaml, line 3: "),
            "s.yaml, line 3: settings of FullImage:",
        ),
        (ModelEntry("mine", checkpoint="/nowhere", like="FindIt-Nano"), "does not exist"),
    ],
)
def test_what_cannot_be_asked_is_refused_without_the_host(entry: ModelEntry, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        deployment_of(entry).check()
