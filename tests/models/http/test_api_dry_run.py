"""``--dry-run``: counted without a network, a key, torch or VLMEvalKit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from few_fast import few_fast

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.cli import main
from vlmeval_findit.engine import deployment_of
from vlmeval_findit.models import PRICES_AS_OF, ChatRequest, Load, chat_model
from vlmeval_findit.protocol import image, text
from vlmeval_findit.sweeps import count_calls, parse_sweep, sweep_groups

OFFLINE = """
import json, socket, sys

def refused(*arguments, **more):
    raise AssertionError("a dry run opened a socket")

socket.socket.connect = socket.create_connection = refused
from vlmeval_findit.cli import main
for arguments in json.loads(sys.argv[1]):
    print("status", main([*arguments, "--dry-run"]), flush=True)
assert not {"vlmeval", "torch"} & set(sys.modules)
"""

SWEEP = """
models: [GPT-5.4, {name: FullImage}]
datasets: [Demo]
representations: [xyxy, cxcywh]
outputs: json
limit: 3
"""


def test_calls_over_http_are_counted_and_weighed(demo_data: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    at_server = SWEEP.replace("{name: FullImage}", "{name: Qwen3-VL, served: tiny}")
    (tmp_path / "server.yaml").write_text(at_server)
    (tmp_path / "outputs").mkdir()
    demo = "--data FindIt_Demo_xyxy_json --model"
    commands = [
        f"{demo} GPT-5.4 --limit 3",
        f"{demo} Qwen3-VL=tiny --base-url http://127.0.0.1:9/v1",
        f"{demo} FindIt-Nano",
        "search --model GPT-5.4 --data Demo --limit 2",
        "sweep server.yaml --base-url http://127.0.0.1:9/v1",
        "sweep sweep.yaml",
        f"{demo} my-own",
    ]
    hidden = ("FINDIT_", "OPENROUTER_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, json.dumps([command.split() for command in commands])],
        env={**env, "LMUData": str(demo_data)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    outputs = re.findall(r"(.*?)^status (\d)$", done.stdout, re.M | re.S)
    assert [status for _, status in outputs] == ["0"] * 6 + ["2"]
    limited, served, local, searched, swept_at_server, swept, unknown = (out for out, _ in outputs)
    assert "GPT-5.4 over HTTP: 3 calls, 3 images" in limited
    assert "Qwen3-VL over HTTP: 19 calls, 19 images" in served
    assert "1 cell, 19 queries, 11 images, 19 model calls" in local
    assert "over HTTP" not in local
    assert "over HTTP: 38 calls, 38 images" in searched
    assert "19 cells, 38 queries, 1 image, 38 model calls, 38 of them" in searched
    assert swept_at_server.count(" over HTTP: 6 calls, 6 images") == 2
    assert "unknown model 'my-own'" in unknown
    assert "4 cells, 12 queries, 1 image, 12 model calls, 12 of them still to make" in swept
    (weighed,) = re.findall(r"^GPT-5.4 over HTTP: (.*)$", swept, re.MULTILINE)
    assert weighed.startswith("6 calls, 6 images, ")
    assert " (1,280 of them again), " in weighed, "one picture, six times"
    price = 6 * 768 * 15 / 1e6
    assert f"at most {6 * 768:,} out; " in weighed
    assert weighed.endswith(f"; $0.00 in, at most ${price:.2f} out")
    assert f"prices are of {PRICES_AS_OF}, unless --prices is given" in swept
    assert "FullImage over HTTP" not in swept


def test_what_a_cache_reads_is_priced_apart() -> None:
    """4 dollars a million tokens, 5 to keep them."""
    variant = parse("FindIt_Demo_xyxy_json")
    message = (text("a" * 4 * 2000), image("a.png"), text("a" * 4 * 1000))
    model = chat_model("Claude-Opus-5.5", "openrouter", max_tokens=100)
    shared, alone = (
        model.at_most(message, variant, ChatRequest({}, ()), shared=shared)
        for shared in (True, False)
    )
    assert shared == pytest.approx((2000 * 5 + 1000 * 4 + 100 * 20) / 1e6)
    assert alone == pytest.approx((3000 * 4 + 100 * 20) / 1e6), "a single call caches nothing"


def test_calls_without_their_images_are_counted_and_not_weighed(
    demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={tmp_path}")
    sweep = parse_sweep(SWEEP)
    asked = [*map(deployment_of, sweep.models)]
    groups = sweep_groups(sweep, asked)
    dry = count_calls(groups)
    assert (dry.counts[0].calls, dry.counts[0].load, dry.missing) == (6, Load(), 1)
    with_them = sweep_groups(replace(sweep, logprobs=True), asked)
    assert [{cell.logprobs for cell in each[0].cells} for each in (groups, with_them)] == [
        {False},
        {True},
    ]


@pytest.mark.parametrize(
    ("body", "line", "multiple"),
    few_fast(
        [
            (
                {"service_tier": "priority"},
                "GPT-5.4 asks for service_tier priority x 2: dollars",
                2.0,
            ),
            ({"service_tier": "turbo"}, "its price is not known, so that is the most", 6.0),
            ({}, "", 1.0),
            ({"service_tier": "default"}, "", 1.0),
            ({"service_tier": "flex"}, "GPT-5.4 asks for service_tier flex x 0.5: dollars", 0.5),
        ],
        2,
    ),
)
def test_a_tier_of_every_request_is_said(
    body: dict[str, str],
    line: str,
    multiple: float,
    demo_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    asked = ["run", "--data", "FindIt_Demo_xyxy_json", "--model", "GPT-5.4", "--limit", "9"]
    how = ["--provider", "openai", "--dry-run", "--work-dir", str(tmp_path)]
    assert main([*asked, *how, "--extra-body", json.dumps(body)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert line in printed
    assert bool(line) is ("asks for" in printed)
    most = re.search(r"at most \$([0-9.]+) out", printed)
    assert most is not None
    dollars = 9 * 768 * 15 / 1e6 * multiple
    assert float(most[1]) == pytest.approx(dollars, abs=0.005)
