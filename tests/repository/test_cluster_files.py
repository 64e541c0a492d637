"""``configs/cluster``: what can be tried of it on one machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import fake_program
import pytest
import yaml
from fake_program import ends, lines
from paths import ROOT

FOLDER = ROOT / "configs" / "cluster"


def test_scripts_are_bash_and_yaml_can_be_read() -> None:
    subprocess.run(["bash", "-n", *FOLDER.glob("*.sh")], check=True)
    for path in FOLDER.glob("*.yaml"):
        for item in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            assert "spec" not in item or {"apiVersion", "kind", "metadata"} <= item.keys()


def test_a_slurm_job_tells_its_sweep_the_ray_address(tmp_path: Path) -> None:
    programs = {
        "scontrol": "printf 'node1\\nnode2\\n'",
        "srun": '"${@:2}"',
        "ray": 'echo -n "$3 "; while [ "$1" != -- ]; do shift; done; "${@:2}"',
        "findit": 'echo "$RAY_ADDRESS" "$@"',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = ["bash", str(FOLDER / "slurm.sh"), "sweep.yaml"]
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "start it with sbatch" in done.stderr
    environment |= {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "node1:6379 auto sweep sweep.yaml --executor ray --gpus 1\n"


SRUN = """#!/bin/bash
# One node, whose host is this machine.
trap 'kill $child; wait $child; exit 143' TERM
SLURM_GPUS_ON_NODE=4 "$@" & child=$!
wait $child
"""
ASKER = """
import sys, time, pathlib
path = pathlib.Path(sys.argv[-1].removeprefix("@"))
def wait(count):
    while len(path.read_text().splitlines()) != count:
        time.sleep(0.05)
wait(2)
print("two", flush=True)
while not pathlib.Path("one died").exists():
    time.sleep(0.05)
wait(1)
print("one", flush=True)
wait(2)
print(path.read_text(), flush=True)
"""


@pytest.mark.slow
def test_the_file_says_which_servers_answer(tmp_path: Path) -> None:
    """A job on one node of four GPUs, with servers of two each."""
    if shutil.which("curl") is None or shutil.which("flock") is None:
        pytest.skip("curl or flock is absent")
    programs = fake_program.install(tmp_path / "bin", "vllm")
    record = tmp_path / "record"
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "PORT": str(port),
        "SECONDS_BEFORE_AGAIN": "1",
        "FAKE_RECORD": str(record),
    }
    script = [str(FOLDER / "slurm_servers.sh"), "org/model", "Qwen3-VL", sys.executable, "-c"]
    job = subprocess.Popen(
        ["bash", *script, ASKER], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "two\n"
    started = lines(record)
    assert sorted(item["cuda"] for item in started) == ["0,1", "2,3"]
    for item in started:
        assert item["argv"][1:4] == ["org/model", "--served-model-name", "Qwen3-VL"]
    os.kill(started[0]["pid"], signal.SIGKILL)
    (tmp_path / "one died").touch()
    assert job.stdout.readline() == "one\n", "it is taken out while it is down"
    reported = job.stdout.read().split()
    assert len(reported) == 2
    assert all(item.startswith("http://") and item.endswith("/v1") for item in reported)
    assert job.wait(30) == 0
    started = lines(record)
    assert len(started) == 3
    assert ends([item["pid"] for item in started])
    time.sleep(1.5)  # longer than SECONDS_BEFORE_AGAIN
    assert lines(record) == started, "none is started again"
    assert len(list(tmp_path.glob("servers-7-*.log"))) == 2
