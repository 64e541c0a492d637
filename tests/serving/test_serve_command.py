"""``--serve`` of ``run``, ``sweep``, ``search`` and ``probe``: asked, recorded, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fake_program
import pytest
from adapters import write_adapter
from engine_fakes import files, records
from host_runs import RUN_FINDIT, environment, predictions, replies, require_host, run

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.cli import main
from vlmeval_findit.engine import Asking, deployment_of, served_model
from vlmeval_findit.models import NANO_PX, ModelEntry
from vlmeval_findit.serving import ServeOptions

DATA = "FindIt_Demo_xyxy_json"
SHOTS = "FindIt_Demo_insdet_xyxy_json"
SWEEP = """
models: [{models}]
datasets: [FindIt_Demo_xyxy_json, FindIt_Demo_refexp_xyxy_json]
limit: 4
"""


class Machine(fake_program.Machine):
    """One with a checkpoint and a sweep of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environment["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"  # VLMEvalKit knows numbers only
        self.checkpoint, self.out = folder / "checkpoint", folder / "out"
        self.checkpoint.mkdir()
        (self.checkpoint / "config.json").write_text("{}")
        self.sweep_of(f"{{name: Qwen3-VL, checkpoint: {self.checkpoint}}}")

    def sweep_of(self, models: str) -> None:
        (self.folder / "sweep.yaml").write_text(SWEEP.format(models=models))

    def upgrade(self, version: str) -> None:
        site = self.folder / "env/lib/python3.12/site-packages"
        for old in site.glob("vllm-*"):
            old.rmdir()
        (site / f"vllm-{version}.dist-info").mkdir(parents=True)

    def sweep(self, *flags: str, program: str = "vllm", gpus: str = "1") -> list[str]:
        where = ["--work-dir", str(self.out), "--serve", program, "--gpus", gpus]
        return ["sweep", str(self.folder / "sweep.yaml"), *where, *flags]

    @property
    def answers(self) -> list[str]:
        """The keys of answered calls in the journal."""
        events = map(json.loads, (self.out / "calls.jsonl").read_text().splitlines())
        return [event["key"] for event in events if "key" in event and not event["error"]]

    def answering(self, model: str) -> dict[str, Any]:
        path = self.out / model / f"{model}_{DATA}_identity.json"
        reported: dict[str, Any] = json.loads(path.read_text())["answering"]
        return reported


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    built = Machine(tmp_path)
    for name, value in built.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FAKE", raising=False)
    return built


# --- sweeps ---------------------------------------------------------------------------------------


@pytest.mark.sees(
    "run --tensor-parallel", "key serve", "key program", "key serve gpus", "key tensor_parallel"
)
def test_a_sweep_is_asked_of_servers_that_end_with_it(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.upgrade("0.33.0")
    sweep = machine.sweep("--tensor-parallel", "2", gpus="4")
    assert main(sweep) == 0
    assert len(machine.started) == 2
    assert machine.ends(0.1), "ended before the command does"
    assert len(machine.calls) == 8
    bounds = {"min_pixels": 200_704, "max_pixels": 1_605_632}
    assert all(item["mm_processor_kwargs"] == bounds for item in machine.calls)
    who = machine.answering("Qwen3-VL")
    assert (who["server"], who["checkpoint"]) == ("vllm 0.33.0", str(machine.checkpoint))
    assert who["revision"].startswith("sha256:")
    assert who["endpoint"] is None, "a port says nothing"
    # Each server has two GPUs, and calls share it.
    times = [record["time"] for record in records(machine.out / "calls.jsonl")]
    assert all(0 < each["gpu_seconds"] <= 2 * each["seconds"] + 1e-5 for each in times)
    # Nothing is left to ask: no server starts.
    assert main(sweep) == 0
    assert len(machine.started) == 2
    # Other GPUs answer alike; another version may not, and is refused before it starts.
    assert main(machine.sweep("--limit", "5")) == 0
    assert len(machine.calls) == 10
    machine.upgrade("0.34.0")
    capsys.readouterr()
    assert main(machine.sweep("--limit", "6")) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in ("server", "vllm 0.33.0", "vllm 0.34.0"))
    assert len(machine.started) == 3
    # Answers of another program are not reused.
    journal, machine.out = str(machine.out / "calls.jsonl"), machine.folder / "other"
    assert main(machine.sweep("--journal", journal, program="sglang")) == 0
    assert len(machine.calls) == 18
    assert "mm_processor_kwargs" not in machine.calls[-1], "sglang takes no bounds with a request"


@pytest.mark.parametrize(
    ("fake", "why"),
    [
        ("dies", "ended with status 3. The last lines of"),
        ("refuses", 'answers with HTTP 500: {"error": {"message": "the engine is broken"}}'),
    ],
)
def test_a_server_that_does_not_start_ends_its_model(
    fake: str,
    why: str,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FAKE", fake)
    assert main(machine.sweep(gpus="2")) == 1
    error = capsys.readouterr().err
    assert "Qwen3-VL: stopped, it cannot be loaded: ServingError: --serve vllm: the server" in error
    assert why in error
    assert ("CUDA out of memory" in error) == (fake == "dies")
    assert machine.ends()


@pytest.mark.slow
@pytest.mark.parametrize("fake", ["dies-later", "engine-dies"])
def test_servers_that_die_are_failed_calls_and_are_started_again(
    fake: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", fake)
    assert main(machine.sweep()) == 1
    before = machine.answers
    assert 0 < len(before) < 8
    monkeypatch.setenv("FAKE", "")
    asked = len(machine.calls)
    assert main(machine.sweep()) == 0
    assert len(machine.started) == 2
    assert len(machine.calls) - asked == 8 - len(before), "only the rest is asked again"
    assert machine.answers[: len(before)] == before
    assert len(set(machine.answers)) == len(machine.answers) == 8


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_sweep_leaves_no_server_and_can_resume(
    number: signal.Signals, machine: Machine
) -> None:
    environ = {**os.environ, **machine.environment, "FAKE_SECONDS": "0.3"}
    command = [sys.executable, *RUN_FINDIT, *machine.sweep("--api-nproc", "1")]
    sweep = subprocess.Popen(command, env=environ)
    deadline = time.monotonic() + 60
    while len(machine.calls) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    sweep.send_signal(number)
    assert sweep.wait(30) == (130 if number != signal.SIGKILL else -number)
    assert 3 <= len(machine.calls) < 8
    assert machine.ends()
    assert main(machine.sweep()) == 0
    went_on = files(machine.out / "Qwen3-VL")
    machine.out.rename(machine.folder / "before")
    assert main(machine.sweep()) == 0
    assert files(machine.out / "Qwen3-VL") == went_on


def test_an_adapter_is_served_over_its_base(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_adapter(machine.folder / "ft", machine.checkpoint, r=24)
    (machine.checkpoint / "config.json").write_text('{"vision_config": {}}')
    machine.sweep_of(f"{{name: my-ft, checkpoint: {folder}, like: Qwen3-VL}}")
    assert main(machine.sweep()) == 0
    (started,) = machine.started
    words = started["argv"]
    assert words[1] == str(machine.checkpoint)
    assert words[words.index("--served-model-name") + 1] == "my-ft-base"
    assert words[-5:] == [
        "--enable-lora",
        "--lora-modules",
        f"my-ft={folder}",
        "--max-lora-rank",
        "32",
    ]
    assert {call["model"] for call in machine.calls} == {"my-ft"}
    who = machine.answering("my-ft")
    assert who["checkpoint"] == str(folder)
    assert who["settings"]["base"].startswith("sha256:")
    assert who["settings"]["adapter_merged"] is False
    # Other weights in the same folder are another model.
    write_adapter(folder, machine.checkpoint, "another.lora_A.weight", r=24)
    capsys.readouterr()
    assert main(machine.sweep()) == 2
    assert "revision: recorded sha256:" in capsys.readouterr().err
    assert len(machine.started) == 1
    entry = ModelEntry("my-ft", checkpoint=str(folder), like="Qwen3-VL")
    for program in ("sglang", "transformers"):
        with pytest.raises(ValueError, match=r"ft is an adapter. Type --serve vllm, or leave"):
            served_model(entry, ServeOptions(program))


# --- refusals and what is asked -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sweep FILE --serve vlm", "unknown program 'vlm': did you mean vllm?"),
        ("sweep FILE --serve vllm --gpus 8", "--gpus 8: this machine has 4"),
        (
            "sweep FILE --serve vllm --gpus 1.5",
            "--gpus 1.5: with --serve it should be a whole number",
        ),
        (
            "sweep FILE --serve vllm --tensor-parallel 3",
            "--gpus 4 should be a multiple of --tensor-parallel 3",
        ),
        ("sweep FILE --serve vllm --serve-args '", "--serve-args ': No closing quotation"),
        ("sweep FILE --tensor-parallel 2", "--tensor-parallel has no effect"),
        ("search --model Qwen3-VL --serve vllm --base-url http://a/v1", "--serve has no effect"),
        ("sweep FILE --serve vllm --max-usd 1", "--max-usd has no effect"),
    ],
)
def test_refused_before_anything_starts(
    command: str, why: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.replace("FILE", str(machine.folder / "sweep.yaml")).split()) == 2
    assert why in capsys.readouterr().err
    assert not machine.started


def described(
    program: str, name: str, variant: str = DATA, **settings: Any
) -> tuple[dict[str, Any], Any]:
    model = served_model(ModelEntry(name, settings), ServeOptions(program))
    actual, space, *_ = model.chat().describe(parse(variant), [])
    return dict(actual.settings), space


@pytest.mark.usefixtures("machine")
def test_a_row_is_asked_as_in_this_process() -> None:
    bounds = {"min_pixels": 200_704, "max_pixels": 12_845_056}
    reported, space = described("vllm", "Qwen2.5-VL-7B", SHOTS)
    assert reported["mm_processor_kwargs"] == bounds
    assert space == {"kind": "smart_resize", **bounds}
    # One resize, by the server: the picture is sent as it is.
    _, space = described("vllm", "Qwen2.5-VL-7B", max_pixels=802_816)
    assert space == {"kind": "smart_resize", **bounds, "max_pixels": 802_816}
    reported, _ = described("vllm", "GLM-4.6V-nothink")
    assert reported["chat_template_kwargs"] == {"enable_thinking": False}
    assert reported["skip_special_tokens"] is False, "its box markers are read"
    assert "mm_processor_kwargs" not in reported
    reported, _ = described("vllm", "InternVL3-8B-hf", SHOTS, max_new_tokens=99)
    assert reported["mm_processor_kwargs"] == {"crop_to_patches": True, "max_patches": 64}
    assert reported["max_new_tokens"] == 99
    # Those of a checkpoint's files are known.
    _, space = described("transformers", NANO_PX)
    assert (space["min_pixels"], space["max_pixels"]) == (2304, 28_224)


@pytest.mark.parametrize(
    ("program", "name", "settings", "why"),
    [
        ("vllm", "Qwen3-VL", {"attention": "eager"}, "attention has no effect: .*--serve-args"),
        ("vllm", "Qwen3-VL", {"min_pixel": 1}, "'min_pixel': did you mean min_pixels"),
        (
            "sglang",
            "Qwen3-VL",
            {"min_pixels": 1},
            "min_pixels has no effect: --serve sglang accepts no image bounds",
        ),
        ("sglang", "Qwen2.5-VL-7B", {}, "whose bounds are the server's"),
    ],
)
def test_settings_that_a_server_would_not_heed(
    program: str, name: str, settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        described(program, name, **settings)


def test_the_same_files_elsewhere_are_the_same_model(machine: Machine, tmp_path: Path) -> None:
    def key(checkpoint: Path) -> dict[str, Any]:
        entry = ModelEntry("Qwen3-VL", {"dtype": "float16"}, checkpoint=str(checkpoint))
        serving = Asking(serving=ServeOptions("vllm", 2, tensor_parallel=2))
        return dict(deployment_of(entry, serving).key(parse("FindIt_Pascal_xyxy_json")))

    before = key(machine.checkpoint)
    assert before.keys() == {"dtype", "checkpoint", "server"}
    machine.checkpoint.rename(tmp_path / "moved")
    assert key(tmp_path / "moved") == before
    (tmp_path / "moved" / "weights").write_bytes(b"1")
    assert key(tmp_path / "moved") != before


# --- single runs, probes, searches ----------------------------------------------------------------


@pytest.mark.sees("run --serve", "run --gpus")
@pytest.mark.slow
@pytest.mark.host
def test_a_run_of_the_host(machine: Machine, tmp_path: Path) -> None:
    require_host()
    flags = ["--serve", "vllm", "--gpus", "2"]
    env = environment(tmp_path / "lmu", **machine.environment)
    asked = ["--data", DATA, "--limit", "3", "--model", f"Qwen3-VL={machine.checkpoint}"]
    done = run(RUN_FINDIT, [*asked, *flags], tmp_path, env)
    assert done.returncode == 0, done.stdout
    assert len(machine.started) == 2
    assert machine.ends(0.1)
    assert len(machine.calls) == 3
    path = predictions(tmp_path / "outputs", "Qwen3-VL", DATA)
    assert len(replies(path)) == 3
    assert (tmp_path / "outputs/servers/Qwen3-VL-0.log").is_file()
    # The sweep of the same takes what the run has.
    again = run(RUN_FINDIT, [*asked, *flags], tmp_path, env)
    assert again.returncode == 0, again.stdout
    assert len(machine.calls) == 3
