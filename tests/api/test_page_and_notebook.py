"""The page and the notebook of the Python API: all of their code is run."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import refl4_stand_in
from custom_data import data_folder
from few_fast import few_fast
from jsonl_data import LINES, import_lines
from paths import ROOT
from scored_runs import World, failing, saying, scored_outputs, small_world, speaking
from vpbench_stand_in import write_tsv
from word_encoder import install

from vlmeval_findit.benchmarks.selfretrieval import ImagePair, write_table
from vlmeval_findit.benchmarks.vpbench import prepare_stage1
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import FAILED_ANSWER, SAMPLE_SETTING
from vlmeval_findit.storage import MORE_SAMPLES

PAGE = ROOT / "docs" / "how-to" / "python.md"
README = ROOT / "README.md"
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
PASCAL = "FindIt_Pascal_xyxy_json"


def test_the_examples_of_the_page_are_right(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pandas")
    scored_outputs(tmp_path, monkeypatch)
    text = re.sub(r"^```.*$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, None, 0)
    assert len(test.examples) > 15
    failures: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=failures.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(failures)


def test_the_python_of_the_readme_is_right() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.DOTALL)
    values: dict[str, Any] = {}
    exec(block, values)
    shown = re.findall(r"^(scored\S+)  # (.*)$", block, re.MULTILINE)
    assert shown
    assert [repr(eval(expression, values)) for expression, _ in shown] == [x for _, x in shown]


def run_notebook() -> dict[str, Any]:
    """Run the cells in the current folder, and return their variables."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not re.search(r"/(home|work|tmp|Users)/", text)
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    values: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        assert not cell["outputs"]
        exec(compile("".join(cell["source"]), f"notebook.ipynb, cell {number}", "exec"), values)
    values["plt"].close("all")
    return values


def test_the_notebook_runs(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pandas")
    scored_outputs(tmp_path, monkeypatch, Fails=failing)
    values = run_notebook()
    # The worst answers are misses on their images, and two runs are compared.
    assert len(values["worst"]) == 10
    assert values["worst"].score.max() < values["queries"].score.max()
    assert not values["worst"].failed.any()
    assert len(values["figure"].axes) == 1
    assert " minus " in values["difference"].columns.name


# --- the notebook on runs of every kind -----------------------------------------------------------


def two_models(world: World, name: str) -> None:
    world.predict("Good", name, speaking(name, 0.9))
    world.predict("Poor", name, speaking(name, 0.2))


def custom(world: World, kind: str, name: str) -> None:
    assert import_lines(world.folder, LINES[kind]) == 0
    two_models(world, name)


def ref_l4(world: World) -> None:
    refl4_stand_in.write_images(world.folder / "lmu" / "images" / "RefL4")
    parquet = refl4_stand_in.write_parquet(world.folder / "parquet")
    get = ["data", "get", "RefL4Full_val", "--from", str(parquet), "--no-images", "--force"]
    assert main(get) == 0
    two_models(world, "FindIt_RefL4Full_val_xyxy_json")


def vp_bench(world: World) -> None:
    lmu = world.folder / "lmu"
    prepare_stage1(write_tsv(lmu / "stage.tsv"), lmu)
    for letter in "AB":
        world.predict(f"Always-{letter}", "VPBench_Stage1", saying(letter))


def self_retrieval(world: World) -> None:
    pairs = [ImagePair(at, f"u{at}", ("0.jpg", "1.jpg")) for at in range(4)]
    write_table(world.folder / "lmu", "SelfRetrieval", pairs, {"source": "a test"})
    captions = json.dumps({"left_image": "a cat", "right_image": "a dog"})
    for model, reply in (("Good", captions), ("Silent", "none")):
        world.predict(model, "SelfRetrieval", saying(reply))


def samples(world: World) -> None:
    for number, folder in ((1, ""), (2, f"{MORE_SAMPLES}/2"), (3, f"{MORE_SAMPLES}/3")):
        settings = {"temperature": 0.7, **({SAMPLE_SETTING: number} if number > 1 else {})}
        world.predict(
            "M", PASCAL, speaking(PASCAL, 0.5, 20), folder=folder,
            change=lambda run, settings=settings: replace(
                run, answering=replace(run.answering, settings=settings)
            ),
        )  # fmt: skip


def all_failed(world: World) -> None:
    world.predict("M", PASCAL, saying(f"{FAILED_ANSWER} via API."))


def other_rows(world: World) -> None:
    world.predict("Begun", PASCAL, speaking(PASCAL, 0.5), rows=5)
    world.predict("Whole", PASCAL, speaking(PASCAL, 0.5))


def two_formats(world: World) -> None:
    for name in (PASCAL, "FindIt_Pascal_xyxy_text"):
        world.predict("M", name, speaking(name, 0.5))


def without_pictures(world: World) -> None:
    two_models(world, PASCAL)
    (world.folder / "pictures").rename(world.folder / "elsewhere")


def several_benchmarks(world: World) -> None:
    for make in (self_retrieval, vp_bench):
        make(world)
    two_models(world, PASCAL)
    two_models(world, "FindIt_Pascal_point_text")


NOTHING = "No two runs are over the same queries."

# Makes runs, the metric that is shown, answers that are drawn, and what is compared
KINDS: Mapping[str, tuple[Callable[[World], None], str, int, str]] = {
    "imported": (
        lambda world: custom(world, "objdet", "FindIt_Mine_xyxy_json"),
        "F1@0.5", 4, "Good minus Poor",
    ),
    "video": (
        lambda world: custom(world, "objdet_video", "FindIt_Mine_f4_xyxy_json"),
        "F1@0.5", 4, "Good minus Poor",
    ),
    "points": (
        lambda world: two_models(world, "FindIt_Pascal_point_text"),
        "Pointing accuracy", 10, "Good minus Poor",
    ),
    "Ref-L4": (ref_l4, "acc_0.5", 10, "Good minus Poor"),
    "VP-Bench": (vp_bench, "Accuracy", 10, "Always-A minus Always-B"),
    "self-retrieval": (self_retrieval, "Pairs", 0, "Good minus Silent"),
    "samples": (samples, "F1@0.5", 10, NOTHING),
    "all calls failed": (all_failed, "F1@0.5", 0, NOTHING),
    "other rows": (other_rows, "F1@0.5", 10, NOTHING),
    "two formats": (two_formats, "F1@0.5", 10, f"{PASCAL} minus FindIt_Pascal_xyxy_text"),
    "no pictures": (without_pictures, "F1@0.5", 0, "Good minus Poor"),
    "several benchmarks": (several_benchmarks, "Accuracy", 10, "Always-A minus Always-B"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:[0-9]+ rows without image")
@pytest.mark.parametrize("kind", few_fast(KINDS, 2))
def test_the_notebook_runs_on_every_kind(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    make, metric, drawn, compared = KINDS[kind]
    data_folder(tmp_path, monkeypatch)
    install(monkeypatch, {"0.jpg": "a cat", "1.jpg": "a dog"})
    world = small_world(tmp_path, monkeypatch)
    make(world)
    world.runs.rename(tmp_path / "outputs")
    values = run_notebook()
    assert values["metric"] == metric
    assert len(values["worst"]) == drawn
    difference = values["difference"]
    assert (difference if compared == NOTHING else difference.columns.name) == compared
