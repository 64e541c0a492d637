"""VLMEvalKit's loop skips what it cannot do and ends with 0; for FindIt's datasets it is 1."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import ChatServer, completion, error, in_turn
from host_runs import RUN_FINDIT, STOCK, environment, run
from host_task import run_task
from PIL import Image
from upstream import make_clone

from vlmeval_findit.storage import lmu_data_root

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"
CLASS = {"class": "FindItObjectDetection", "dataset": DATA}
BASELINE = {"FullImage": {"class": "FindItBaseline", "baseline": "FullImage"}}


@pytest.fixture(autouse=True)
def _registered(lmu: Path) -> Iterator[None]:
    from vlmeval_findit.host import OUTCOMES, register

    register()
    yield
    OUTCOMES.clear()


@pytest.fixture
def mytiny(lmu: Path) -> str:
    """Return the name of a table of a user's, which VLMEvalKit takes as multiple choice."""
    image = io.BytesIO()
    Image.new("RGB", (64, 64)).save(image, "PNG")
    encoded = base64.b64encode(image.getvalue()).decode()
    for folder in (lmu, lmu_data_root()):
        (folder / "mytiny.tsv").write_text(
            f"index\timage\tquestion\tA\tB\tanswer\n0\t{encoded}\twhat?\tx\ty\tA\n"
        )
    return "mytiny"


def write(path: Path, model: object, data: object) -> str:
    path.write_text(json.dumps({"model": model, "data": data}))
    return str(path)


ASKED = ["--model", "FullImage", "--limit", "2"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--data", "FindIt_Demo_xyxy_jsn", *ASKED], "did you mean json?"),
        (["--data", "FindIt_Dmo_xyxy_json", *ASKED], "unknown dataset 'Dmo'"),
        (["--data", "SelfRetrieval_Nothing", *ASKED], "SelfRetrieval_Nothing"),
        (["--data", "VPBench_Nothing", *ASKED], "VPBench_Nothing"),
        (["--data", "FindIt-Demo", *ASKED], "did you mean"),
        (["--data", DATA, *ASKED, "--mode", "eval"], "was not scored: there are no answers"),
        (["--data", DATA, *ASKED, "--api-mode"], "leave the flag out"),
        (["--data", "FindIt_Pascal_xyxy_json", *ASKED], "no table Pascal.tsv"),
        (["--data", DATA, "--model", "Nobody"], f"Nobody on {DATA}: "),
    ],
)
def test_what_is_not_run_or_not_scored_is_said(words: list[str], says: str, tmp_path: Path) -> None:
    problems = run_task(words, tmp_path)
    assert len(problems) == 1, problems
    assert says in problems[0]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({DATA: {**CLASS, "class": "FindItReferingExpression"}}, "FindItReferringExpression?"),
        ({DATA: {**CLASS, "class": "FindItVideoDetection"}}, "is not its class"),
        ({"Mine": {**CLASS, "class": "FindItNothing"}}, "Class FindItNothing is not supported"),
        ({"Mine": CLASS}, f"the configuration calls {DATA} 'Mine'"),
        ({DATA: {**CLASS, "space": "gird1000"}}, "did you mean grid1000?"),
        ({DATA: {**CLASS, "dataset": "FindIt_Demo_xyxy_jsn"}}, "did you mean json?"),
    ],
)
def test_what_a_config_file_says_wrongly_is_said(data: object, says: str, tmp_path: Path) -> None:
    config = write(tmp_path / "config.json", BASELINE, data)
    problems = run_task(["--config", config, "--limit", "2"], tmp_path / "o")
    assert len(problems) == 1, problems
    assert says in problems[0]


def test_failed_calls_and_then_an_incomplete_run(tmp_path: Path) -> None:
    def script(asked: object, number: int) -> object:
        return error(400, "no") if number % 2 else completion("[]")

    with ChatServer(script) as server:  # type: ignore[arg-type]
        model = {"Qwen3-VL": {"class": "FindItServer", "model": "Qwen3-VL", "base_url": server.url}}
        config = write(tmp_path / "config.json", model, {DATA: CLASS})
        words = ["--config", config, "--limit", "4"]
        (problem,) = run_task(words, tmp_path / "o")
        assert "2 calls failed" in problem
        (problem,) = run_task([*words, "--mode", "eval"], tmp_path / "o")
    assert problem.endswith("was not scored: calls are missing or failed: run it again without "
                            "--mode eval")  # fmt: skip


@pytest.mark.slow
def test_a_spending_limit_ends_upstreams_runner_with_a_sentence(lmu: Path, tmp_path: Path) -> None:
    settings = {"prices": [10, 50], "max_usd": 0.05}
    with ChatServer(in_turn(completion("[]", usage={"cost": 0.02}))) as server:
        entry = {"class": "FindItServer", "model": "Qwen3-VL", "base_url": server.url, **settings}
        config = write(tmp_path / "config.json", {"Qwen3-VL": entry}, {DATA: CLASS})
        words = ["--config", config, "--limit", "6", "--work-dir", str(tmp_path / "o")]
        done = run(STOCK, words, tmp_path, environment(lmu))
        assert len(server.asked) == 2
    assert done.returncode != 0
    assert "the next call could pass the limit of $0.05 ($0.0400 spent)" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_baseline_does_not_blame_a_users_table(mytiny: str, tmp_path: Path) -> None:
    from vlmeval_findit.host import variant_of

    (problem,) = run_task(["--data", mytiny, DATA, *ASKED], tmp_path)
    assert problem == f"FullImage on {mytiny}: FullImage answers FindIt's queries only: ask a model"
    for dataset in (mytiny, "MMBench_DEV_EN", None):
        assert variant_of(dataset) is None
    with pytest.raises(ValueError, match="did you mean json"):
        variant_of("FindIt_Demo_xyxy_jsn")


def test_a_run_that_is_whole_has_no_problem(tmp_path: Path) -> None:
    words = ["--data", DATA, "--model", "FullImage"]
    for mode in ("infer", "all", "eval"):
        assert run_task([*words, "--mode", mode], tmp_path) == []


def test_what_is_not_findits_is_left_to_vlmevalkit(tmp_path: Path) -> None:
    assert run_task(["--data", "MyNothing", "--model", "Nobody"], tmp_path) == []
    (problem,) = run_task(["--data", "MyNothing", "--model", "FullImage"], tmp_path)
    assert problem.endswith("was not run: VLMEvalKit has no dataset of that name")


# --- whole processes ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("host", ["ms-vlmeval", "upstream"])
def test_the_runner_ends_with_a_status(host: str, mytiny: str, lmu: Path, tmp_path: Path) -> None:
    program = STOCK
    if host == "upstream":
        program = [str(make_clone(tmp_path / "clone") / "run.py")]
    env = environment(lmu)
    model = ["--model", "FullImage"]
    for status, words in (
        (1, ["--data", "FindIt_Demo_xyxy_jsn", *model]),
        (1, ["--data", DATA, *model, "--mode", "eval", "--work-dir", "none"]),
        (1, ["--data", mytiny, DATA, *model]),
        (1, ["--data", DATA, "FindIt_Pascal_xyxy_json", *model]),
        (0, ["--data", DATA, *model]),
        (0, ["--data", DATA, *model, "--mode", "infer", "--work-dir", "infer"]),
        (0, ["--data", "MyNothing", "--model", "Nobody"]),
    ):
        done = run(program, words, tmp_path, env)
        assert done.returncode == status, (words, done.stdout[-3000:])
        assert ("\nFindIt: " in done.stdout) == bool(status), words


@pytest.mark.slow
def test_run_ends_with_1_where_a_dataset_of_vlmevalkits_failed(lmu: Path, tmp_path: Path) -> None:
    env = environment(lmu, HTTPS_PROXY="http://127.0.0.1:9")
    for data in ([DATA, "COCO_VAL"], ["RefCOCO"]):
        done = run(RUN_FINDIT, ["--data", *data, "--model", "FindIt-Nano"], tmp_path, env)
        assert done.returncode == 1, (data, done.stdout[-3000:])
        assert f"FindIt: FindIt-Nano on {data[-1]}: was not run: " in done.stdout
    assert "RefCOCO is VLMEvalKit's dataset" in done.stdout
    assert "FindIt's is --data FindIt_RefCOCO_xyxy_json" in done.stdout
