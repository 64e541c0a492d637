"""A sweep's file: what it says, and how a bad one is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from host_runs import REPOSITORY, environment, require_host

from vlmeval_findit.benchmarks.findit.benchmark import HOST_CLASSES
from vlmeval_findit.benchmarks.findit.grid import all_tables, benchmark, formats, variants
from vlmeval_findit.benchmarks.findit.names import parse
from vlmeval_findit.boxes.reply_format import KEYS
from vlmeval_findit.boxes.representation import BOX_KEYS
from vlmeval_findit.cli import main
from vlmeval_findit.cli.export_config import host_config
from vlmeval_findit.core.config import ConfigError
from vlmeval_findit.engine.config import STAGES, Inference, ModelEntry, Race, questions_of
from vlmeval_findit.engine.config_file import parse_sweep, read_sweep
from vlmeval_findit.engine.servers import ServersHost
from vlmeval_findit.models.table import find_model

CONFIGS = REPOSITORY / "configs"
GOOD = "models: FullImage\ndatasets: Demo\n"

# fmt: off
BAD = {
    "empty": ("", "line 1: the file is empty"),
    "not YAML": ("models: [A", "line 1: not YAML: expected ',' or ']'"),
    "list": ("- FullImage", "line 1: should be a mapping with the keys models, "),
    "no models": ("datasets: Demo", "line 1: models is missing"),
    "no datasets": ("models: FullImage", "line 1: datasets is missing"),
    "key": (GOOD + "modles: x", "line 3: no key 'modles': did you mean models?"),
    "key twice": (GOOD + "models: FullImage", "line 3: models stands twice"),
    "model": (
        "models:\n - FullImage\n - FulImage\ndatasets: Demo",
        "line 3: no model 'FulImage' in the model table: did you mean FullImage?",
    ),
    "model without space": (
        "models: [{name: Mine}]\ndatasets: Demo",
        "that the table does not have needs `row` or",
    ),
    "space": (
        "models: [{name: Mine, space: gird1000}]\ndatasets: Demo",
        "line 1: no coordinate space 'gird1000': did you mean grid1000?",
    ),
    "space without bounds": (
        "models: [{name: Mine, space: {kind: smart_resize}}]\ndatasets: Demo",
        "line 1: smart_resize needs the min_pixels",
    ),
    "key of a model": (
        "models:\n- name: FullImage\n  setings: {}\ndatasets: Demo",
        "line 3: no key 'setings': did you mean settings?",
    ),
    "settings": (
        "models: [{name: FullImage, settings: [1]}]\ndatasets: Demo",
        "settings: [1] should be a mapping of names",
    ),
    "reads_like": (
        "models: [{name: FullImage, reads_like: Gemma 5}]\ndatasets: Demo",
        "line 1: no model 'Gemma 5' in the model table: did you mean Gemma 4?",
    ),
    "no name": ("models: [{space: unit}]\ndatasets: Demo", "line 1: name is missing"),
    "slash": ("models: [Qwen/Qwen3-VL-8B-Instruct]\ndatasets: Demo", "no slash in it"),
    "model twice": (
        "models: [FullImage, FullImage]\ndatasets: Demo",
        "line 1: FullImage stands twice",
    ),
    "dataset": (
        "models: FullImage\ndatasets:\n  - Demo\n  - Pascl\n",
        "line 4: no dataset 'Pascl': did you mean Pascal?",
    ),
    "no dataset": ("models: FullImage\ndatasets: []", "line 2: an empty list"),
    "number": ("models: FullImage\ndatasets: [7]", "line 2: datasets: 7 should be a name"),
    "representation": (
        GOOD + "representations:\n  - xyxy\n  - xyxx\n",
        "line 5: no representation 'xyxx': did you mean xyxy?",
    ),
    "output": (GOOD + "outputs: jsn", "line 3: no output 'jsn': did you mean json?"),
    "JSON key": (GOOD + "keys: [bbox2d]", "line 3: no key 'bbox2d': did you mean bbox_2d?"),
    "structure": (GOOD + "structures: nest", "line 3: no structure 'nest': did you mean nested?"),
    "centre": (GOOD + "centres: [formulas]", "did you mean formula?"),
    "mark": (GOOD + "marks: [none, bxo]", "no mark 'bxo': did you mean box?"),
    "nothing to mark": (GOOD + "marks: [none, box]", "marks: box fits no cell"),
    "unfit key": (GOOD + "keys: [bbox, class_name]", "line 3: keys: class_name fits no cell"),
    "a key for text": (
        GOOD + "outputs: text\nkeys: [bbox_2d]",
        "line 4: keys: bbox_2d fits no cell",
    ),
    "no cell": (
        GOOD + "representations: all-labelled\nstructures: decomposed\noutputs: json",
        "line 2: no cell of Demo fits the axes",
    ),
    "frames of an image": (GOOD + "frames: [8]", "line 3: frames: 8 fits no cell"),
    "frames": (GOOD + "frames: 0", "line 3: frames: 0 should be a whole number, at least 1"),
    "captions": (GOOD + "captions: [false, true]", "line 3: captions: True fits no cell"),
    "limit": (GOOD + "limit: many", "line 3: limit: 'many' should be a whole number"),
    "limit yes": (GOOD + "limit: true", "line 3: limit: True should be a whole number"),
    "flag": (
        GOOD + "skip_missing_images: 1",
        "line 3: skip_missing_images: 1 should be true or false",
    ),
    "inference": (
        GOOD + "inference: {thread: 8}",
        "line 3: no key 'thread': did you mean threads?",
    ),
    "cpus": (GOOD + "inference: {cpus: true}", "line 3: cpus: True should be a number"),
    "nan": (GOOD + "inference: {gpus: .nan}", "line 3: gpus: nan should be a number"),
    "inf": (GOOD + "inference: {gpus: .inf}", "line 3: gpus: inf should be a number"),
    "gpus": (GOOD + "inference: {gpus: -1}", "line 3: gpus: -1 should be a number"),
    "axes and stages": (
        GOOD + "stages: [{outputs: all}]\nkeys: all",
        "line 4: keys stands in every stage",
    ),
    "first winner": (
        GOOD + "stages:\n- representations: winner",
        "line 4: winner is the best format of the",
    ),
    "winner without stages": (GOOD + "representations: winner", "there is none"),
    "no money": (
        "datasets: Demo\nmodels: {name: Mine, space: unit}\nmax_usd: 0",
        "line 3: max_usd: 0 should be US dollars, more than 0",
    ),
    "all money": (
        "datasets: Demo\nmodels: {name: Mine, space: unit}\nmax_usd: .inf",
        "max_usd: inf should be US dollars",
    ),
    "money in words": (
        "datasets: Demo\nmodels: {name: Mine, space: unit}\nmax_usd: two",
        "max_usd: 'two' should be US dollars",
    ),
    "no time": (
        "datasets: Demo\nmodels: {name: Mine, space: unit}\ninference: {timeout: 0}",
        "timeout: 0 should be seconds, more than 0",
    ),
    "time yes": (
        "datasets: Demo\nmodels: {name: Mine, space: unit}\ninference: {timeout: yes}",
        "timeout: True should be seconds, more than 0",
    ),
    "a header": (
        "datasets: Demo\nmodels: {name: Mine, space: unit, headers: {api-key: 12345678}}",
        "line 2: api-key: should be a text",
    ),
    "provider": (
        "models: [{name: GPT-5.4, provider: opnai}]\ndatasets: Demo",
        "line 1: no provider 'opnai': did you mean openai?",
    ),
    "provider and checkpoint": (
        "models: [{name: GPT-5.4, provider: openai, checkpoint: a/b}]\ndatasets: Demo",
        "line 1: a checkpoint is of a model on this machine",
    ),
    "prices": (
        "models: [{name: GPT-5.4, prices: 3}]\ndatasets: Demo",
        "line 1: prices [3]: IN,OUT in US dollars a million tokens",
    ),
    "batch": (GOOD + "batch: opnai", "line 3: no batch interface 'opnai': did you mean openai?"),
    "race": (GOOD + "race: {sed: 1}", "line 3: no key 'sed': did you mean seed?"),
    "seed": (GOOD + "race: {seed: x}", "line 3: seed: 'x' should be a whole number"),
    "line": ("models: [{name: FullImage, line: 3}]\ndatasets: Demo", "line 1: no key 'line'"),
    "place of a key": (
        "models:\n- name: FullImage\n\n  seting:\n    a: 1\ndatasets: Demo",
        "line 4: no key 'seting': did you mean settings?",
    ),
    "replicas": (
        GOOD + "inference: {replicas: -1}",
        "line 3: replicas: -1 should be at least 0 (as many as fit)",
    ),
    "an object": (
        "models: !!python/object:os.system {}\ndatasets: Demo",
        "line 1: could not determine a constructor",
    ),
    "decoding": (
        GOOD + "decodings: constrianed",
        "line 3: no decoding 'constrianed': did you mean constrained?",
    ),
}
# fmt: on


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_line(case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(ConfigError) as refused:
        parse_sweep(text, "sweep.yaml")
    assert message in str(refused.value)
    assert str(refused.value).startswith("sweep.yaml, line ")
    assert "12345678" not in str(refused.value), "a header may be a key"


@pytest.mark.parametrize(
    ("said", "race"), [("true", Race()), ("false", None), ("{seed: 3}", Race(3)), ("", None)]
)
def test_a_race_is_said_in_a_word_or_with_its_seed(said: str, race: Race | None) -> None:
    assert parse_sweep(GOOD + f"race: {said}\nmax_usd:").race == race


def test_both_decodings_are_asked() -> None:
    sweep = parse_sweep(GOOD + "decodings: [none, constrained]\noutputs: json")
    assert sweep.stages[0].decodings == ("none", "constrained")


def test_values_alone_are_lists_of_one_and_all_is_all() -> None:
    sweep = parse_sweep("models: FullImage\ndatasets: all\nkeys: all\nlimit: 5\nwork_dir: w")
    assert sweep.models == (ModelEntry("FullImage", line=1),)
    assert sweep.tables == benchmark()
    assert len(benchmark()) == 20
    assert sweep.stages[0].keys == KEYS
    named = variants(sweep.tables, formats(sweep.stages[0]))
    assert {cell.key for cell in named} == {*BOX_KEYS}
    assert str(sweep.journal) == "w/calls.jsonl"
    assert sweep.limit == 5


def test_a_model_of_ones_own() -> None:
    sweep = parse_sweep(
        "models:\n- name: Mine\n  space: {kind: pixels}\n  settings: {seed: 1}\n"
        "  resources: {batch_size: 4}\n  served: org/mine\ndatasets: [Demo_multilabel]"
    )
    (entry,) = sweep.models
    assert entry.settings == {"seed": 1}
    assert entry.resources == {"batch_size": 4}
    assert entry.served == "org/mine"
    assert sweep.tables == (all_tables()["Demo_multilabel"],)


def test_tables_of_another_benchmark_are_asked_in_the_formats_too() -> None:
    sweep = parse_sweep("models: Qwen3-VL\ndatasets: [RefL4Full_val]\noutputs: [text, json]")
    names = [v.name for v in variants(sweep.tables, formats(sweep.stages[0]))]
    assert "FindIt_RefL4Full_val_xyxy_json" in names
    assert all(name.startswith("FindIt_RefL4Full_val_") for name in names)


def test_tables_of_two_benchmarks_have_no_common_best_format() -> None:
    with pytest.raises(ConfigError, match=r"line 2: .*several benchmarks"):
        parse_sweep("models: Qwen3-VL\ndatasets: [Pascal, RefL4Full_val]")


# --- models over HTTP -----------------------------------------------------------------------------

HTTP = "datasets: Demo\nmodels: {name: Mine, space: unit"


def test_what_a_sweep_says_of_models_over_http() -> None:
    sweep = parse_sweep(
        f"{HTTP}, headers: {{api-key: of-my-own}}}}\nmax_usd: 2.5\ninference: {{timeout: 90}}"
    )
    assert sweep.max_usd == 2.5
    assert sweep.inference.timeout == 90.0
    (entry,) = sweep.models
    assert entry.headers == {"api-key": "of-my-own"}
    assert "of-my-own" not in repr(sweep)
    host = ServersHost(["http://a/v1", "http://b/v1"], sweep.inference, ["x-a: 1"])
    host.check(entry)
    assert "of-my-own" not in str(host.settings(entry)), "it is part of no key and no journal"
    for endpoint in host._endpoints(entry):
        assert endpoint.headers == {"x-a": "1", "api-key": "of-my-own"}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("{max_tokens: 0}", "line 2: Mine: max_tokens: 0 should be a whole number"),
        ("{max_usd: 3}", "max_usd is the whole sweep's"),
        ("{max_tokens_field: limit}", "max_tokens_field 'limit'"),
    ],
)
def test_settings_of_a_served_model_are_refused_before_the_first_call(
    settings: str, why: str
) -> None:
    (entry,) = parse_sweep(f"{HTTP}, settings: {settings}}}").models
    with pytest.raises(ValueError, match=why):
        ServersHost(["http://a/v1"], Inference()).check(entry)


# --- what ships -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper_grid", "format_search", "smoke"])
def test_shipped_files_are_valid(name: str) -> None:
    sweep = read_sweep(CONFIGS / f"{name}.yaml")
    assert all(find_model(entry.name) for entry in sweep.models)


def test_the_paper_grid_has_every_model_and_dataset() -> None:
    sweep = read_sweep(CONFIGS / "paper_grid.yaml")
    rows = [find_model(entry.name) for entry in sweep.models]
    assert len({row.name for row in rows if row}) == len(rows) == 12
    assert sweep.tables == benchmark()


def test_the_shipped_search_is_the_command() -> None:
    sweep = read_sweep(CONFIGS / "format_search.yaml")
    assert sweep.stages == STAGES
    assert sweep.limit == 50
    assert [table.name for table in sweep.tables] == ["Pascal"]


# --- the command line -----------------------------------------------------------------------------


def test_a_dry_run_needs_neither_torch_nor_vlmeval(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules.update(torch=None, vlmeval=None, ray=None);"
    code = f"{blocked} from vlmeval_findit.cli import main; sys.exit(main())"
    command = ["sweep", str(CONFIGS / "smoke.yaml"), "--dry-run", "--limit", "2"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=REPOSITORY,
        env=environment(tmp_path / "lmu"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "40 cells, 80 queries, " in done.stdout
    assert "80 model calls, 80 of them to be made" in done.stdout


def test_where_nothing_is_read_nothing_is_checked(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pydantic'] = None;"
    code += "from vlmeval_findit.cli import main; sys.exit(main(['models']))"
    command, lmu = [sys.executable, "-c", code], environment(tmp_path / "lmu")
    subprocess.run(command, cwd=REPOSITORY, env=lmu, capture_output=True, check=True)


def test_the_command_says_line_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("models: FullImage\ndatasets: [Dmo]\n")
    assert main(["sweep", str(path)]) == 2
    assert f"error: {path}, line 2: no dataset 'Dmo': did you mean Demo?" in capsys.readouterr().err
    assert main(["search", "--model", "FulImage"]) == 2
    assert "did you mean FullImage?" in capsys.readouterr().err
    assert main(["search", "--model", "FullImage", "--dataset", "Pascl"]) == 2
    assert "did you mean Pascal?" in capsys.readouterr().err


def test_a_search_is_counted_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--dataset", "Demo", "--limit", "5", "--dry-run"]
    assert main(["search", "--model", "FullImage", *arguments]) == 0
    counted = "19 cells, 95 queries, 2 images, 95 model calls, 95 of them to be made"
    assert counted in capsys.readouterr().out


def test_export_is_a_config_of_vlmevalkit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    assert main(["sweep", str(CONFIGS / "smoke.yaml"), "--export-config", str(path)]) == 0
    config = json.loads(path.read_text())
    assert set(config["model"]) == {"OpenCV-Detector", "FullImage"}
    assert len(config["data"]) == 20
    for name, entry in config["data"].items():
        assert parse(name).name == entry["dataset"] == name
        assert entry["class"] == HOST_CLASSES[parse(name).data.family]
    assert f"--config {path}" in capsys.readouterr().out
    assert main(["sweep", str(CONFIGS / "format_search.yaml"), "--export-config", str(path)]) == 2
    assert "cannot be exported" in capsys.readouterr().err


def test_export_names_what_cannot_be_said() -> None:
    two = "models: [FullImage, {name: Mine, space: unit}]\ndatasets: Demo"
    with pytest.raises(ValueError, match="differ in space"):
        host_config(parse_sweep(two))
    one = host_config(parse_sweep("models: [{name: Mine, space: unit}]\ndatasets: Demo"))
    assert all(entry["space"] == "unit" for entry in one["data"].values())


@pytest.mark.host
def test_the_classes_of_the_export_are_the_hosts() -> None:
    require_host()
    from vlmeval_findit.host import register

    register()
    from vlmeval_findit.host.datasets import dataset_classes

    assert {*HOST_CLASSES.values()} <= {cls.__name__ for cls in dataset_classes()}


def test_complete_names_are_asked_as_they_are() -> None:
    named = "FindIt_Demo_refexp_xywh_text"
    text = "models: FullImage\ndatasets: [Demo, NAMED]\nrepresentations: xyxy\noutputs: json"
    sweep = parse_sweep(text.replace("NAMED", named))
    assert [table.name for table in sweep.tables] == ["Demo"]
    asked = questions_of(sweep, formats(sweep.stages[0]))
    assert [question.name for question in asked] == ["FindIt_Demo_xyxy_json", named]
    with pytest.raises(ConfigError, match=r"line 2: .*no representation 'xyx'.*xyxy"):
        parse_sweep(text.replace("NAMED", "FindIt_Demo_xyx_json"))
    with pytest.raises(ConfigError, match="stands twice"):
        parse_sweep(text.replace("NAMED", f"{named}, {named}"))


def test_a_stage_that_waits_for_a_winner_needs_a_table() -> None:
    stages = "stages: [{outputs: json}, {representations: winner, outputs: json}]"
    with pytest.raises(ConfigError, match="no table is named"):
        parse_sweep(f"models: FullImage\ndatasets: FindIt_Demo_xyxy_json\n{stages}")


def test_a_model_that_nobody_knows_may_be_asked_for_letters() -> None:
    """The coordinate space of an answer matters where the answer is boxes."""
    assert parse_sweep("models: my-own\ndatasets: VPBench_Stage1").models[0].name == "my-own"
    with pytest.raises(ConfigError, match="no model 'my-own' in the model table"):
        parse_sweep("models: my-own\ndatasets: [VPBench_Stage1, Demo]")
