"""What a command costs besides its calls: one's own data, finished runs, `run` beside `sweep`.

Without ``--benchmark-enable`` tables are small, and times are not judged. All times are of the
processor, and each is judged by another of the same run.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scale_runs import GRID, import_table
from stub_servers import stubs

import vlmeval_findit
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import FindItVariant, message
from vlmeval_findit.data import load_dataset

MOST = 1.3
"""Most times as long as what it is compared with."""

MOST_OF_BARE = 8.0
"""Most times what calls over as many JPEGs cost aiohttp alone, without its start.

Measured were 5.7 to 6.4 (2.43 to 2.49 s; aiohttp 0.39 to 0.42 s) on two cores with nothing else,
4.6 to 5.6 with other work, by
``pytest benchmarks/test_fixed_costs.py -k jpegs --benchmark-enable -s``.
"""

MOST_OF_SCORING = 0.6
"""Most of what it costs to score all cells of a finished sweep that recognising it may cost.

Measured were 0.09 to 0.11 (3.7 s and 34 to 43 s) over 100,000 calls on two cores with other work.
"""

BARE_CLIENT = Path(__file__).with_name("bare_client.py")

JPEG = (420, 310)
"""Pixels of noise: a JPEG file of 100 KB."""

IN_A_PROCESS = """
import sys, time
from vlmeval_findit.cli import main
status = main(sys.argv[1:])
print(time.process_time(), file=sys.stderr)
sys.exit(status)
"""

FORMATS = "representations: [xyxy, xywh]\noutputs: [json, text]\ndatasets: [Scale]\n"
NAMES = [f"FindIt_Scale_{name}" for name in ("xyxy_json", "xyxy_text", "xywh_json", "xywh_text")]


def seconds(folder: Path, *command: str) -> float:
    """Return the processor time of a command of its own process."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return float(done.stderr.split()[-1])


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def print_line(what: str) -> None:
        with capsys.disabled():
            print(f"\n{what}", end="")

    return print_line


def test_prompts_of_ones_own_data_cost_what_shipped_data_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measures: bool, say: Callable[[str], None]
) -> None:
    rows = 20_000 if measures else 20
    import_table(tmp_path, rows, monkeypatch, pictures=2)
    own = parse(NAMES[0])
    assert isinstance(own, FindItVariant)
    shipped = parse("FindIt_RefCOCO_xyxy_json")
    assert isinstance(shipped, FindItVariant)
    queries = list(load_dataset(NAMES[0]).queries.values())
    taken = {}
    for variant in (shipped, own) * 3:
        began = time.process_time()
        for query in queries:
            message(query, variant)
        used = time.process_time() - began
        taken[variant] = min(used, taken.get(variant, used))
    say(f"{rows} prompts: {taken[own]:.2f} s, of shipped data {taken[shipped]:.2f} s")
    assert not measures or taken[own] <= MOST * taken[shipped]


def test_a_finished_sweep_costs_the_same_here_and_at_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measures: bool, say: Callable[[str], None]
) -> None:
    import_table(tmp_path, 500 if measures else 3, monkeypatch, pictures=2)
    here = tmp_path / "here.yaml"
    there = tmp_path / "there.yaml"
    here.write_text(f"models: [FullImage]\nwork_dir: here\n{FORMATS}")
    stub = "models: [{name: Stub, served: stub, space: grid1000}]"
    there.write_text(f"{stub}\nwork_dir: there\n{FORMATS}")
    with stubs(delay=0.0) as servers:
        at_server = ["sweep", str(there), "--base-url", servers.urls[0]]
        times = []
        for command in (["sweep", str(here)], at_server):
            first = seconds(tmp_path, *command)
            times.append((first, min(seconds(tmp_path, *command) for _ in range(2))))
    (first_here, again_here), (first_there, again_there) = times
    say(
        f"finished here {again_here:.1f} s (with its calls {first_here:.1f}), "
        f"at a server {again_there:.1f} s ({first_there:.1f})"
    )
    assert not measures or again_here <= MOST * again_there


def test_a_finished_sweep_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measures: bool, say: Callable[[str], None]
) -> None:
    rows = 1
    if measures:
        rows = 2500 if os.environ.get("FINDIT_MILLION") else 250
    import_table(tmp_path, rows, monkeypatch, pictures=250)
    config = tmp_path / "sweep.yaml"
    config.write_text(f"{GRID}work_dir: swept\n")
    asked = seconds(tmp_path, "sweep", str(config))
    finished = min(seconds(tmp_path, "sweep", str(config)) for _ in range(2))
    scored = seconds(tmp_path, "sweep", str(config), "--force")
    cells = len(list((tmp_path / "swept").rglob("*_score.csv")))
    say(
        f"{cells * rows:,} calls in {cells} cells: finished {finished:.1f} s, "
        f"scored again {scored:.1f}, with its calls {asked:.1f}"
    )
    assert not measures or finished <= MOST_OF_SCORING * scored


def test_a_run_at_a_server_costs_what_a_sweep_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measures: bool, say: Callable[[str], None]
) -> None:
    import_table(tmp_path, 250 if measures else 3, monkeypatch, pictures=2)
    config = tmp_path / "sweep.yaml"
    config.write_text(f"models: [{{name: Qwen3-VL, served: stub}}]\n{FORMATS}work_dir: swept\n")
    with stubs(delay=0.0) as servers:
        url = ["--base-url", servers.urls[0]]
        swept = seconds(tmp_path, "sweep", str(config), *url)
        model = ["--model", "Qwen3-VL=stub", "--work-dir", "ran"]
        ran = seconds(tmp_path, "run", "--data", *NAMES, *model, *url)
        assert servers.seen().statuses["200"] > 0
    say(f"run {ran:.1f} s, sweep {swept:.1f} s")
    assert not measures or ran <= MOST * swept


def test_calls_over_as_many_jpegs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measures: bool, say: Callable[[str], None]
) -> None:
    calls = 1000 if measures else 3
    if measures:
        # As an installation is, even where Python is told to write no bytecode.
        compileall.compile_dir(Path(vlmeval_findit.__file__).parent, quiet=1)
    import_table(tmp_path, calls, monkeypatch, pictures=calls, size=JPEG, suffix=".jpg")
    with stubs(delay=0.02) as servers:
        address = servers.urls[0]
        asked = ["run", "--data", NAMES[0], "--model", "Qwen3-VL=stub", "--work-dir", "ran"]
        asked += ["--base-url", address, "--api-nproc", "64"]
        spent = seconds(tmp_path, *asked)
        assert servers.seen().statuses["200"] == calls
        again = seconds(tmp_path, *asked)
        assert not servers.seen().statuses
        bare = [sys.executable, str(BARE_CLIENT), str(tmp_path / "pictures"), "1", "64", address]
        done = subprocess.run(bare, check=True, capture_output=True, text=True)
    floor = float(done.stdout) / 1000 * calls
    say(
        f"{calls} calls over as many JPEGs: {spent:.2f} s, {spent / floor:.1f} times aiohttp's "
        f"{floor:.2f}; once more, with all calls finished, {again:.2f} s"
    )
    assert not measures or spent <= MOST_OF_BARE * floor
