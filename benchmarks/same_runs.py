"""Write the files of runs of every kind, to compare two versions of them.

Whatever answers says the same in every version: baselines, a model on this machine, a chat server
with all kinds of replies, a batch service, a model that records what it likes, VLMEvalKit's own
runner. Journals, prediction files and all that lies next to them::

    PYTHONPATH=OLD_CLONE python OLD_CLONE/benchmarks/same_runs.py old
    PYTHONPATH=.         python benchmarks/same_runs.py new
    diff -r old new

A clone that lacks this file takes a copy of it. Times, ports and paths are replaced by their names,
and lines of journals are sorted: calls end in any order.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "support"))

from batch_server import BatchServer  # noqa: E402
from chat_server import GARBAGE, Answer, Asked, ChatServer, completion, error  # noqa: E402
from engine_fakes import FakeDeployment, demo_sweep, go  # noqa: E402
from host_runs import STOCK, environment, run  # noqa: E402

from vlmeval_findit.cli import main as findit  # noqa: E402

SECRET = "wJalrXUtnFEMI"  # Of a variable of the environment: some replies quote it
FORMATS = ("FindIt_Demo_xyxy_json", "FindIt_Demo_xywh_text")
STUB = "models: [{name: Stub, served: stub, space: grid1000}]\ndatasets: [Demo]\n"
TWO_FORMATS = "representations: [xyxy, xywh]\noutputs: [json, text]\n"

# --- what is replaced -----------------------------------------------------------------------------

_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?(\.\d+)?)?( UTC|\+00:00|Z)?"), "TIME"),
    (re.compile(r'([\\"]+(?:\w*seconds\w*|\w*at_once|at)[\\"]+: )[0-9.e-]+'), r"\1N"),
    (re.compile(r', "crc32": "[0-9a-f]{8}"'), ""),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"\d+\.\d/s|left [\d:.a-z ]+(?= failed)"), "SPEED"),
)
# Of files beside predictions: hashes of files with times, and of the code; costs, of which some are
# times
_HASHES = re.compile(r"\b[0-9a-f]{12,64}\b")
_COSTS = re.compile(r'"cost": \{[^}]*\}|"costs": \{.*?\}\}', re.DOTALL)
_BESIDE = re.compile(r"_(score|details|provenance|identity)\.|checksums\.json$|\.txt$")


def _plain(path: Path, folder: Path) -> str:
    """Return a file's text without what differs between two equal runs."""
    text = _sheet(path) if path.suffix == ".xlsx" else path.read_text("utf-8", "backslashreplace")
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "CLONE")
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    if path.name.endswith("calls.jsonl"):
        return "\n".join(sorted(text.splitlines()))
    if path.name == "README.md":  # A card, with a row of costs for each run
        return "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    if _BESIDE.search(path.name):
        return _COSTS.sub("COST", _HASHES.sub("HASH", text))
    return text


def _sheet(path: Path) -> str:
    from openpyxl import load_workbook

    rows = load_workbook(path).worksheets[0].iter_rows(values_only=True)
    return "\n".join("\t".join(map(repr, row)) for row in rows)


def command(name: str, *words: str) -> None:
    """Run a command, and write what it prints, and its status."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = findit(list(words))
    os.environ.pop("MMEVAL_ROOT", None)  # VLMEvalKit's runner sets it
    Path(f"{name}.txt").write_text(f"{out.getvalue()}status {status}\n")


# --- what answers ---------------------------------------------------------------------------------


def _with_logprobs(text: str) -> dict[str, Any]:
    content = [{"token": each, "logprob": -0.125} for each in re.findall(r"\S+\s*", text)]
    return {"logprobs": {"content": content}}


def _answered(text: str, **message: Any) -> Answer:
    answer = json.loads(completion(text, message=message).body)
    answer["choices"][0] |= _with_logprobs(text)
    return Answer(json.dumps(answer).encode())


_ODD = "It is left of \u4e2d\u6587 \ud83d."
_BOX = '[{"bbox": [100, 200, 640, 900]}]'
_KINDS: tuple[Callable[[], Answer], ...] = (
    lambda: _answered(_BOX),
    lambda: _answered(
        "[100, 200, 640, 900]", reasoning_content="It is left of \u4e2d\u6587 \ud83d."
    ),
    lambda: _answered(f"<think>Hm.</think>{_BOX}"),
    lambda: completion('[{"bbox": [1', finish_reason="length"),
    lambda: error(400, "this request is refused"),
    lambda: completion(choices=[]),
    lambda: _answered(f"the key is {SECRET}"),
    lambda: _answered(_BOX, reasoning_content=f"the key is {SECRET}"),
    lambda: completion(None, message={"tool_calls": [{"function": {"name": "box"}}]}),
    lambda: _answered(""),
    lambda: completion("\u4e2d\u6587 \ud83d\x00 [1, 2, 3, 4]", finish_reason="odd", usage=None),
    lambda: GARBAGE,
    lambda: error(500, "it fell over", Retry_After="0"),
)


def _texts(body: Mapping[str, Any]) -> str:
    """Return a request's texts and a hash of its images."""
    whole = json.dumps([body["messages"], body.get("seed")], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


class Chat:
    """Answers each question in a kind of its own: broken ones once, then with a box."""

    def __init__(self) -> None:
        self._asked = Counter[str]()

    def __call__(self, asked: Asked, number: int) -> Answer:
        question = _texts(asked.body)
        self._asked[question] += 1
        kind = _KINDS[int(question[:8], 16) % len(_KINDS)]
        if kind in _KINDS[-2:] and self._asked[question] > 1:
            return _answered(_BOX)
        return kind()


class Anything:
    """A model of VLMEvalKit's kind that records what it likes."""

    _damaged: tuple[Any, ...] = ({"findit": {"thought": 7}}, '{"findit": {"cut o')
    _records: tuple[Any, ...] = (
        None,
        {"mine": 1, "tuple": (1, 2)},
        '{"mine": 1,  "spaced": true}',
        "a text",
        "",
        7,
        ["a", "list"],
        {"a": float("nan")},
        {"a": Path("x")},
        {"findit": {"thought": "hm", "finish_reason": "stop", "of a later version": 1}, "mine": 2},
        '{"findit": {"tokens": {"prompt": 7}}, "mine": 2}',
        {"findit": {"call": {"error": "it says so itself", "cost": 0.25}}, "mine": 2},
        {"findit": {"thought": f"the key is {SECRET}", "finish_reason": "stop"}, "mine": 2},
        {"key": SECRET},
        *_damaged,
    )
    _texts: tuple[Any, ...] = (_BOX, "", "Failed to obtain answer via API.", None, f"is {SECRET}")

    def __init__(self) -> None:
        self._calls = 0

    def generate(self, message: Any, dataset: str) -> Any:
        self._calls += 1
        text = self._texts[self._calls // len(self._records) % len(self._texts)]
        record = self._records[self._calls % len(self._records)]
        if self._calls % 31 == 0:
            raise OSError("no such device")
        if record in self._damaged:
            text = _BOX
        if self._calls % 13 == 0:
            return text
        return {"prediction": text, "extra_records": record}


# --- runs -----------------------------------------------------------------------------------------


def baselines() -> None:
    """Ask baselines, by a sweep over formats and by runs in every format of files."""
    Path("sweep.yaml").write_text(f"models: FullImage\ndatasets: [Demo]\n{TWO_FORMATS}")
    command("sweep", "sweep", "sweep.yaml", "--work-dir", "swept")
    for suffix in ("json", "tsv", "xlsx"):
        os.environ["PRED_FORMAT"] = suffix
        command(suffix, "run", "--data", *FORMATS, "--model", "FullImage", "--work-dir", suffix)
    del os.environ["PRED_FORMAT"]
    Path("swept/calls.jsonl").unlink(missing_ok=True)
    command("resumed", "sweep", "sweep.yaml", "--work-dir", "swept")


def on_this_machine() -> None:
    """Ask a small model, with log-probabilities and without."""
    data = ["FindIt_Demo_xyxy_json_bbox_2d", "FindIt_Demo_xywh_text"]
    model = ["--model", "FindIt-Nano", "--logprobs", "--limit", "6"]
    command("run", "run", "--data", *data, *model, "--work-dir", "ran")
    Path("sweep.yaml").write_text(f"models: FindIt-Nano\ndatasets: [Demo]\n{TWO_FORMATS}limit: 4\n")
    command("sweep", "sweep", "sweep.yaml", "--work-dir", "swept")
    command("coords", "coords", "ran")


def at_a_server() -> None:
    """Ask a chat server, with and without log-probabilities, several samples, and in a run."""
    Path("sweep.yaml").write_text(f"{STUB}{TWO_FORMATS}inference: {{threads: 3}}\n")
    with ChatServer(Chat()) as server:
        url = ["--base-url", server.url]
        command("logprobs", "sweep", "sweep.yaml", *url, "--work-dir", "logprobs", "--logprobs")
        command("resumed", "sweep", "sweep.yaml", *url, "--work-dir", "logprobs", "--logprobs")
        command("plain", "sweep", "sweep.yaml", *url, "--work-dir", "plain")
        command("priced", "sweep", "sweep.yaml", *url, "--work-dir", "priced", "--prices", "1,2")
        sampled = ["--samples", "3", "--temperature", "0.7"]
        command("sampled", "sweep", "sweep.yaml", *url, "--work-dir", "sampled", *sampled)
        for suffix in ("json", "tsv", "xlsx"):
            os.environ["PRED_FORMAT"] = suffix
            asked = ["--data", *FORMATS, "--model", "Qwen3-VL=stub", *url, "--logprobs"]
            command(suffix, "run", *asked, "--work-dir", suffix)
        del os.environ["PRED_FORMAT"]
        Path("plain/calls.jsonl").unlink()  # What only prediction files have comes back
        command("merged", "sweep", "sweep.yaml", *url, "--work-dir", "plain")
    command("samples", "samples", "sampled")
    command("errors", "errors", "json")
    command("status", "status", "logprobs")
    command("hub", "export", "logprobs", "--to", "hub", "--out", "published")


def in_batches() -> None:
    """Ask batch services."""
    Path("sweep.yaml").write_text(f"{STUB}{TWO_FORMATS}limit: 6\ninference: {{poll: 0.05}}\n")
    for kind in ("openai", "anthropic"):
        with BatchServer(polls=1, outcomes={2: "errored", 4: "expired"}) as server:
            url = ["--base-url", server.url, "--batch", kind]
            command(kind, "sweep", "sweep.yaml", *url, "--work-dir", kind)


def of_any_kind() -> None:
    """Ask a model that returns texts and records of any type."""
    sweep = demo_sweep(Path.cwd())
    go(sweep, FakeDeployment(Anything()))
    go(sweep, FakeDeployment(Anything()))


def in_vlmevalkit() -> None:
    """Run VLMEvalKit's own runner: a baseline, a small model, and a server of a config file."""
    folder = Path.cwd()
    env = environment(folder / "lmu", AWS_SECRET_ACCESS_KEY=SECRET, PRED_FORMAT="json")
    with ChatServer(Chat()) as server:
        models = {
            "Served": {"class": "FindItServer", "model": "Qwen3-VL-8B", "base_url": server.url},
            "Full": {"class": "FindItBaseline"},
            "Nano": {"class": "FindItLocalModel", "like": "FindIt-Nano"},
        }
        data = {name: {"class": "FindItObjectDetection", "dataset": name} for name in FORMATS}
        Path("config.json").write_text(json.dumps({"model": models, "data": data}))
        done = run(STOCK, ["--config", "config.json", "--api-nproc", "1"], folder, env)
    Path("stock.txt").write_text(f"status {done.returncode}\n")
    Path("stock.log").write_text(done.stdout)


RUNS: Mapping[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        baselines,
        on_this_machine,
        at_a_server,
        in_batches,
        of_any_kind,
        in_vlmevalkit,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="a new folder for the files")
    parser.add_argument("--runs", nargs="*", default=list(RUNS), choices=RUNS)
    options = parser.parse_args()
    out = options.out.absolute()
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
    for name in options.runs:
        folder = out / "made" / name
        folder.mkdir(parents=True)
        os.chdir(folder)
        os.environ["LMUData"] = str(folder / "lmu")  # noqa: SIM112
        RUNS[name]()
        kept = 0
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            is_kept = path.is_file() and inside.parts[0] != "lmu"
            if (
                is_kept
                and path.name != "status.json"
                and path.suffix not in (".lock", ".log", ".parquet", ".msgpack")
            ):
                target = out / name / "-".join(inside.parts)
                target.parent.mkdir(exist_ok=True)
                target.write_text(_plain(path, folder), "utf-8", "backslashreplace")
                kept += 1
        print(f"{name}: {kept} files", flush=True)
    shutil.rmtree(out / "made")


if __name__ == "__main__":
    main()
