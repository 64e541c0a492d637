"""What our tables and files can tell is refused before VLMEvalKit or torch are imported.

Both are replaced by modules that raise, so these tests need no clock: an import of either fails.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import mkdtemp

import pytest
from adapters import write_adapter
from engine_fakes import demo_sweep
from host_runs import environment
from paths import ROOT

from vlmeval_findit import __version__
from vlmeval_findit.cli import (
    USED_BY_NONE,
    deployments_for,
    main,
    probe,
    run,
    search,
    sweep,
)
from vlmeval_findit.core import find_runner, host_flags, package_folder
from vlmeval_findit.engine import OF_SOME, deployment_of, own_models
from vlmeval_findit.models import Budget, ModelEntry, ModelOptions, declared_options

DATA = "FindIt_Scenes_mini_xyxy_json"
ADAPTER = write_adapter(Path(mkdtemp(prefix="findit-refused-")), "/nowhere")

RUNNER = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--data', nargs='+')
parser.add_argument('--config', type=str)
parser.add_argument('--api-nproc', type=int, default=4)
parser.add_argument('--temperature', type=float, default=None)
parser.add_argument('--judge', type=str, default=None)
parser.add_argument('--verbose', action='store_true')
parser.add_argument('--reuse-aux', type=str.lower, nargs='?')
"""
CONFIG = """supported_VLM = {"Their-VL-7B": partial(vlm.Their, model_path="their/vl")}"""
DATASETS = """\
URL = {"TheirBench_DEV": "https://example.org/x.tsv"}
NAMES = [f"{x}_2fps" for x in ("Clips",)]
"""
SWEEP = f"models: [{{name: mine,\n checkpoint: /nowhere, like: Qwen3-VL}}]\ndatasets: {DATA}"

WORDS = {
    "NANO": f"--data {DATA} --model FindIt-Nano",
    "ASKED": f"--data {DATA}",
    "SERVER": "--base-url http://localhost:1/v1",
    "ADAPTER": str(ADAPTER),
    "THIS_FILE": __file__,
}
REFUSED = r"""
ASKED --model my-ft=ADAPTER --like Qwen3-VL
  base_model_name_or_path /nowhere: the folder does not exist
--data Scenes_mini --model FindIt-Nano
  did you mean FindIt_Scenes_mini_xyxy_json, SelfRetrieval_Scenes_mini or VPBench_Scen
--data FindIt_Scens_mini_xyxy_json --model FindIt-Nano
  did you mean Scenes_mini
--data TheirBnch_DEV --model Their-VL-7B
  unknown dataset 'TheirBnch_DEV': did you mean TheirBench_DEV?
--data Made --model Their-VL-7B
  unknown dataset 'Made'
ASKED --model FindIt-Nanno
  unknown model 'FindIt-Nanno': did you mean FindIt-Nano?
NANO --dtype floot16
  unknown --dtype 'floot16': did you mean
NANO --work-dir THIS_FILE
  test_early_checks.py is not a folder
--config config.json
  python -m vlmeval
NANO --judge-args '{"space": "gird1000"}'
  unknown coordinate space 'gird1000': did you mean grid1000?
NANO --judge-args space=unit
  --judge-args space=unit: not a JSON object. Type: --judge-args '{"space": "unit"}'
NANO --judge-args '{"spase": "unit"}'
  --judge-args: unknown setting 'spase': did you mean space?
ASKED --model mine=/nowhere
  /nowhere: the folder does not exist
ASKED --model mine=owner/name
  it shares: --like NAME
ASKED --model Qwen/Qwen2.5-VL-7B-Instruct
  Type --model Qwen2.5-VL-7B, which is the same checkpoint, asked as the protocol says, or
ASKED --model models/my-ft
  Type --model NAME=models/my-ft
ASKED --model mine=Qwen/Qwen3-VL-8B-Instruct --like Qwen2.5-VL
  Qwen/Qwen3-VL-8B-Instruct is Qwen3-VL, not Qwen2.5-VL
ASKED --model Their-VL-7B=owner/name --like Qwen3-VL
  Their-VL-7B is a model of VLMEvalKit's
ASKED --model FirstOption
  FirstOption cannot answer
ASKED
  --data without --model
--model FindIt-Nano
  --model without --data
--data FindIt_Pascal_xyxy_json --model FindIt-Nano
  no table Pascal.tsv
NANO --limit 0
  --limit: 0 should be a whole number, at least 1
NANO --mode evl
  unknown --mode 'evl': did you mean eval?
NANO --api-nprc 3
  unknown flag '--api-nprc': did you mean --api-nproc?
ASKED --model mine SERVER
  the coordinate space of the model 'mine' is not known
ASKED --model Qwen3-VL --base-url localhost
  localhost
ASKED --model GPT-5.4 --provider opnai
  did you mean openai?
search --model Qwen3-VL-9B --space unit --data Scenes_mini
  unknown model 'Qwen3-VL-9B': did you mean Qwen3-VL
NANO --image-root Pascal=.
  no dataset of --data has images called 'Pascal' (there are: Scenes_mini)
NANO --device gpu
  --device gpu: unknown device; devices are cpu, cuda
sweep sweep.yaml --formats best_formats.yaml
  --formats best_formats.yaml: the file does not exist
ASKED --model FullImage --temperature 1.5
  --temperature has no effect: FullImage is a baseline
NANO --samples 8
  samples: 8 greedy replies of FindIt-Nano would be equal: type --temperature 0.7
NANO --samples 8 --temperature 1 --mode eval
  --samples: leave --mode out
NANO --data MMBench --samples 8 --temperature 1
  --samples: MMBench is not FindIt's
ASKED --model GPT-6-Astra --provider openai --temperature 1 --dry-run
  temperature: GPT-6-Astra accepts none at openai
ASKED --model Qwen3-VL SERVER --batch-size 2
  --batch-size has no effect: Qwen3-VL is a model of a server
NANO --space unit --judge-args '{"space": "grid1000"}'
  --space unit and --judge-args name two spaces
NANO --data MMBench --judge-args '{"spaced": "unit"}'
  --judge-args: unknown setting 'spaced': did you mean space?
NANO --judge someone
  --judge has no effect: no judge scores
NANO --max-usd 2
  --max-usd has no effect: FindIt-Nano is a model on this machine
search --model Qwen3-VL SERVER --executor ray
  --executor has no effect: Qwen3-VL is a model of a server
--data TheirBench_DEV --model Their-VL-7B --max-usd 2
  --max-usd is for FindIt's datasets
sweep sweep.yaml
  line 1: /nowhere: the folder does not exist
""".strip().split("\n")
"""A command line, with :data:`WORDS`; below it, a part of what it is refused with."""

PASSED_ON = (
    "NANO --mode infer",
    "--data Clips_2fps --model Their-VL-7B",
    "--data MyTable --model Their-VL-7B",
    "--data TheirBench_DEV --model Their-VL-7B --temperature 1 --judge x --reuse-aux all --verbose",
)
"""Command lines whose datasets and flags VLMEvalKit may know."""

DRIVER = """\
import contextlib, io, json, os, sys
import vlmeval_findit.cli.run, vlmeval_findit.cli.search, vlmeval_findit.cli.sweep
from pydantic import TypeAdapter
from vlmeval_findit.benchmarks import benchmarks
from vlmeval_findit.cli import main

benchmarks()
TypeAdapter(int)
for name, arguments in enumerate(json.load(sys.stdin)):
    if os.fork() == 0:
        folder = os.path.join(os.getcwd(), str(name))
        os.mkdir(folder)
        os.chdir(folder)
        with open("sweep.yaml", "w") as f:
            f.write(os.environ["SWEEP"])
        sys.stdout = sys.stderr = output = io.StringIO()
        try:
            status = main(arguments)
        except AssertionError as error:
            status = str(error)
        with open(f"../{name}.json", "w") as f:
            json.dump([status, output.getvalue(), sorted(os.listdir(folder))], f)
        os._exit(0)
    os.wait()
"""
"""Runs every command line in a separate process, with what all of them import imported once."""

LINES = [*REFUSED[::2], *PASSED_ON, "NANO", "--version"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the output of all lines; VLMEvalKit and torch can be read, not imported."""
    folder = tmp_path_factory.mktemp("ran")
    package, lmu = folder / "vlmeval", folder / "lmu"
    (package / "dataset").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('vlmeval was imported')")
    (package / "run.py").write_text(RUNNER)
    (package / "config.py").write_text(CONFIG)
    (package / "dataset" / "names.py").write_text(DATASETS)
    for name in ("torch", "transformers"):
        (folder / f"{name}.py").write_text(f"raise AssertionError('{name} was imported')")
    env = environment(lmu, PYTHONPATH=f"{folder}:{ROOT}", SWEEP=SWEEP)
    for name in ("MyTable.tsv", "Made.tsv", "Made.meta.json"):  # The last two are of data get
        (lmu / name).write_text("index\tquestion\n")
    command = [sys.executable, "-c", DRIVER]
    typed = [re.sub("|".join(WORDS), lambda word: WORDS[word[0]], line) for line in LINES]
    lines = json.dumps([*map(shlex.split, typed)])
    subprocess.run(command, input=lines, cwd=folder, env=env, text=True, check=True)
    return folder


@pytest.mark.parametrize("line", LINES)
def test_mistakes_are_refused_without_importing_vlmevalkit(line: str, ran: Path) -> None:
    result = ran / f"{LINES.index(line)}.json"
    assert result.exists(), "ended otherwise: with a traceback"
    status, output, left = json.loads(result.read_text())
    if line in PASSED_ON:
        assert status == "vlmeval was imported", output
    elif line == "NANO":
        assert status == "torch was imported", output
    elif line == "--version":
        assert status == 0
        assert f"vlmeval-findit {__version__}" in output
        assert f"VLMEvalKit unknown, {ran / 'vlmeval'}" in output
    else:
        assert REFUSED[REFUSED.index(line) + 1].strip() in output
        assert (status, left) == (2, ["sweep.yaml"]), "nothing is written"
        assert output.startswith("error: ")


FOR_ALL = {
    "data",
    "help_all",
    "model",
    "work_dir",
    "mode",
    "limit",
    "judge_args",
    "force",
    "space",
    "skip_missing_images",
    "prompts",
    "reuse",
    "reuse_aux",
    "keep_failed",
    "ignore",
    "dry_run",
    "provider",
    "image_root",
    "batch",
    "rest",
    "verbose",
    "quiet",
    "plugin",
}
"""Flags that every way of asking uses, or that choose the way."""


def test_every_flag_has_its_users() -> None:
    names = {option.name for option in run.run_command.params}
    for command in (search.command, sweep.sweep_command, probe.command):
        names |= {option.name for option in command.params} & {*declared_options()}
    if package_folder() is not None:
        flags = host_flags(find_runner([], "a test").path)
        names |= {flag.names[0].lstrip("-").replace("-", "_") for flag in flags}
    assert len(names) > 40
    assert names - {*FOR_ALL, *OF_SOME, *USED_BY_NONE} == set()


def test_a_name_at_a_server_without_its_address_is_refused() -> None:
    entry = ModelEntry("Qwen3-VL", served="mine")
    with pytest.raises(
        ValueError, match=r"mine is its name at a server\. Name the server: --base-url"
    ):
        deployment_of(entry).check()


@pytest.mark.parametrize(
    ("device", "gpus", "refused"),
    [
        ("cpu", "", ""),
        ("cuda:1", "4,7", ""),
        ("cuda:2", "4,7", "--device cuda:2: not here; type --device cuda:0 or cuda:1"),
        ("cuda:first", "0", "--device cuda:first: unknown device"),
    ],
)
def test_a_device_that_is_not_there_is_refused_without_torch(
    device: str, gpus: str, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    monkeypatch.setattr(own_models, "AMD_DRIVER", Path("/nowhere"))
    entry = ModelEntry("FindIt-Nano", resources={"device": device})
    with pytest.raises(ValueError, match=f"^{refused}") if refused else nullcontext():
        deployment_of(entry).check()


def test_a_dry_run_or_a_cluster_needs_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--data", DATA, "--model", "FindIt-Nano", "--limit", "2", "--device", "gpu"]
    assert main([*words, "--dry-run"]) == 0
    assert "model calls" in capsys.readouterr().out
    config = "models: [{name: FindIt-Nano, device: gpu}]\ndatasets: Demo\nrepresentations: xyxy"
    grid = demo_sweep(tmp_path, config, limit=1)
    (on_ray,) = deployments_for(grid, ModelOptions(executor="ray"), Budget())
    assert on_ray.name == "FindIt-Nano"
    with pytest.raises(ValueError, match="--device gpu: unknown device"):
        deployments_for(grid, ModelOptions(), Budget())


# --- a name that VLMEvalKit has, too --------------------------------------------------------------


@pytest.fixture
def both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let VLMEvalKit's source name datasets of FindIt's."""
    theirs = {"RefCOCO", "RefCOCO_testA", "D3", "Pascal", "COCO_VAL"}
    monkeypatch.setattr("vlmeval_findit.cli.early_checks.has_dataset", theirs.__contains__)


@pytest.mark.parametrize("name", ["RefCOCO", "RefCOCO_testA", "D3", "Pascal"])
def test_a_name_of_two_datasets_says_whose_it_is(
    name: str, both_have: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.cli import check_host_dataset, note_of_shared_names

    monkeypatch.setenv("LMUData", str(tmp_path))
    ours = f"FindIt_{name}_xyxy_json"
    note = check_host_dataset(name)
    assert note is not None
    assert f"{name} is VLMEvalKit's dataset" in note
    assert note.endswith(f"FindIt's is --data {ours}")
    (tmp_path / f"{name}.tsv").write_text("index\n")
    with pytest.raises(ValueError, match=rf"FindIt's: --data {ours}; VLMEvalKit's, by its"):
        check_host_dataset(name)
    assert f"{name} is FindIt's here (run --data {ours})" in str(note_of_shared_names([name]))


def test_a_name_of_one_dataset_needs_no_note(both_have: None) -> None:
    from vlmeval_findit.cli import check_host_dataset, note_of_shared_names

    assert check_host_dataset("COCO_VAL") is None
    assert note_of_shared_names(["RefL4", "Demo"]) is None


def test_a_split_or_category_of_theirs_is_no_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VLMEvalKit lists RefCOCO's splits, and a category D3: neither can be run."""
    from vlmeval_findit.cli import check_host_dataset

    source = "URL = {'RefCOCO': 'https://x'}\nSPLITS = ['RefCOCO_testA', 'x']\nKINDS = {'D3', 'E'}"
    monkeypatch.setattr("vlmeval_findit.core.vlmevalkit._text", lambda part: source)
    monkeypatch.setenv("LMUData", str(tmp_path))
    assert "RefCOCO is VLMEvalKit's dataset" in str(check_host_dataset("RefCOCO"))
    for name in ("RefCOCO_testA", "D3"):
        with pytest.raises(ValueError, match=f"did you mean FindIt_{name}_xyxy_json?"):
            check_host_dataset(name)
