"""A dry run refuses what its run would refuse before the first call, in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from few_fast import every_nth_fast

from vlmeval_findit.cli import main
from vlmeval_findit.core import package_folder
from vlmeval_findit.protocol import FORCE_VARIABLE

DATA = "FindIt_Demo_xyxy_json"
NOWHERE = "http://127.0.0.1:9/v1"
AT = f"--base-url {NOWHERE}"

# Entries of models, and what else their file and command say, that cannot be run
WRONG = {
    "a baseline's space": ("{name: FullImage, space: unit}", "", ""),
    "a baseline's setting": ("{name: FullImage, settings: {shade: 3}}", "", ""),
    "a baseline's headers": ("{name: FullImage, headers: {a: b}}", "", ""),
    "a baseline's words": ("{name: FullImage}", "", "--system words.txt"),
    "a baseline at a server": ("{name: FullImage}", "", AT),
    "a local model's headers": ("{name: Qwen3-VL, headers: {a: b}}", "", ""),
    "a local model's setting": ("{name: Qwen3-VL, settings: {shade: 3}}", "", ""),
    "a local model's value": ("{name: Qwen3-VL, settings: {max_pixels: many}}", "", ""),
    "a local model's served name": ("{name: Qwen3-VL, served: mine}", "", ""),
    "a checkpoint that is not here": (
        "{name: Mine, like: Qwen3-VL, checkpoint: /nowhere/at/all}",
        "",
        "",
    ),
    "a model that nobody has": ("{name: Mine, space: unit}", "", ""),
    "an unknown space's bounds": ("Qwen2.5-VL", "", AT),
    "OpenRouter's setting": ("{name: GPT-5.4, settings: {dtype: float16}}", "", ""),
    "a server's weights": (
        "{name: Qwen3-VL, settings: {dtype: half}}",
        "",
        f"--base-url {NOWHERE}",
    ),
    "a server's checkpoint": ("{name: Qwen3-VL, checkpoint: a/b}", "", AT),
    "a server's limit": (
        "{name: Qwen3-VL, settings: {max_tokens: 0}}",
        "",
        f"--base-url {NOWHERE}",
    ),
    "a provider's costs": (
        "{name: Mine, space: unit, provider: openai, served: mine}",
        "max_usd: 2",
        "",
    ),
    "an address": ("Qwen3-VL", "", "--base-url localhost"),
    "a header": ("Qwen3-VL", "", f"--base-url {NOWHERE} --header colonless"),
    "a batch at two servers": ("Qwen3-VL", "batch: openai", f"--base-url {NOWHERE},{NOWHERE}2"),
    "a batch elsewhere": ("{name: GPT-5.4, provider: openai}", "batch: anthropic", ""),
    "a name at a provider": ("{name: Qwen3-VL, provider: openai}", "", ""),
    "a served model that is not local": ("{name: FullImage}", "serve: vllm", "--gpus 1"),
    "a flag that nobody uses": ("{name: FullImage}", "", "--api-nproc 3"),
    "samples without a temperature": ("Qwen3-VL", "samples: 2", ""),
    "a template that is not there": ("{name: Qwen3-VL, prompt_template: none.txt}", "", ""),
    "a table that is not here": ("FullImage", "datasets: FindIt_Pascal_xyxy_json", ""),
    "a folder that is a file": ("FullImage", "work_dir: words.txt", ""),
    "a journal that is none": ("FullImage", "journal: words.txt", ""),
    "best formats that are none": ("FullImage", "work_dir: taken", ""),
    "a server's resource": ("{name: Qwen3-VL, resources: {shade: 3}}", "", AT),
    "logprobs that are not asked for": (
        "{name: Qwen3-VL, settings: {logprobs: false}}",
        "logprobs: true",
        AT,
    ),
    "a flag for logprobs that are not asked for": (
        "Qwen3-VL",
        "",
        f'{AT} --logprobs --extra-body {{"logprobs":false}}',
    ),
    "plain decoding by a class": ("{name: Mine, space: unit}", f"datasets: {DATA}_constrained", ""),
}


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if package_folder() is None:
        pytest.skip("VLMEvalKit is not installed: pip install 'vlmeval-findit[run]'")
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("OPENROUTER_API_KEY", "of-nobody")
    monkeypatch.setenv("OPENROUTER_BASE_URL", NOWHERE)
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    monkeypatch.setenv(FORCE_VARIABLE, "")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("Look twice.\n")
    Path("taken").mkdir()
    Path("taken/best_formats.yaml").write_text("models: [FullImage]\n")


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    status = main(["sweep", "sweep.yaml", *arguments])
    printed = capsys.readouterr()
    assert status == 2, printed
    return printed.err.partition("error: ")[2]


@pytest.mark.parametrize("what", every_nth_fast(WRONG, 3))
def test_a_dry_run_refuses_what_its_run_does(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry, more, flags = WRONG[what]
    data = "" if "datasets:" in more else f"datasets: {DATA}\n"
    Path("sweep.yaml").write_text(f"models: [{entry}]\n{data}limit: 1\n{more}\n")
    by_run = refused(flags.split(), capsys)
    assert by_run
    assert refused([*flags.split(), "--dry-run"], capsys) == by_run


@pytest.fixture
def server() -> Iterator[ChatServer]:
    def right(asked: Asked, number: int) -> Answer:
        return completion('[{"bbox": [0, 0, 1000, 1000]}]')

    with ChatServer(right) as started:
        yield started


OTHERS = {
    "another space": "space: unit",
    "another temperature": "temperature: 0.5",
    "another name at its server": "served: other",
    "another way of reading": "space: grid1000, reads_like: GPT-5.4",
}


@pytest.mark.parametrize("key", OTHERS)
def test_a_dry_run_refuses_to_go_on_as_another(
    key: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--base-url", server.url]
    file = f"datasets: {DATA}\nlimit: 1\nmodels:"
    Path("sweep.yaml").write_text(f"{file} [{{name: Mine, space: grid1000}}]\n")
    assert main(["sweep", "sweep.yaml", *at, "--dry-run"]) == 0
    assert main(["sweep", "sweep.yaml", *at]) == 0
    assert main(["sweep", "sweep.yaml", *at, "--dry-run"]) == 0
    Path("sweep.yaml").write_text(f"{file} [{{name: Mine, space: grid1000, {OTHERS[key]}}}]\n")
    asked = len(server.asked)
    by_run = refused(at, capsys)
    assert refused([*at, "--dry-run"], capsys) == by_run
    assert len(server.asked) == asked


# What an answer depends on, and no key has, and how its setup is described
IN_A_JOURNAL = {
    "another server": ("", "--base-url SERVER/other", "endpoint of answers"),
    "another header": ("", "--base-url SERVER --header x-team:b", "header x-team"),
    "another row": (", like: InternVL3", "--base-url SERVER", "row of the model table of answers"),
}


@pytest.mark.parametrize("what", IN_A_JOURNAL)
def test_a_dry_run_takes_no_answers_of_another(
    what: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where they are in a journal that runs of several folders share."""
    keys, flags, words = IN_A_JOURNAL[what]
    file = f"datasets: {DATA}\nlimit: 1\njournal: all.jsonl\nmodels: [{{name: Mine, space: unit"
    Path("sweep.yaml").write_text(f"{file}, like: Qwen3-VL}}]\n")
    assert main(["sweep", "sweep.yaml", "--base-url", server.url, "--work-dir", "first"]) == 0
    Path("sweep.yaml").write_text(f"{file}{keys or ', like: Qwen3-VL'}}}]\n")
    asked = len(server.asked)
    at = [*flags.replace("SERVER", server.url).split(), "--work-dir", "second"]
    by_run = refused(at, capsys)
    assert words in by_run
    assert refused([*at, "--dry-run"], capsys) == by_run
    assert len(server.asked) == asked
    assert main(["sweep", "sweep.yaml", *at, "--dry-run", "--force"]) == 0
