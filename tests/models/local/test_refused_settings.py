"""What a model on this machine cannot take is refused by its files, before any call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast

import vlmeval_findit as findit
from vlmeval_findit.cli import main
from vlmeval_findit.models import (
    NANO,
    NANO_PX,
    find_model,
    local_names,
    refuse_settings,
    run_settings,
)

# Settings, and words of the refusal
REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "below the processor": ({"max_pixels": 1000}, "min_pixels 2304 > max_pixels 1000"),
    "above the processor": ({"min_pixels": 10**8}, "> max_pixels 28224"),
    "against each other": ({"min_pixels": 9999, "max_pixels": 4000}, "min_pixels 9999 > max"),
    "of another processor": ({"patches": 7}, "takes no patches"),
    "a type of integers": ({"dtype": "int8"}, "unknown dtype 'int8'"),
    "a server's type": ({"dtype": "fp8"}, "unknown dtype 'fp8'"),
    "unknown attention": ({"attention": "nonsense"}, "unknown attention 'nonsense'"),
    "misspelt attention": ({"attention": "spda"}, "did you mean sdpa?"),
    "attention of a package": ({"attention": "flash_attention_3"}, "package flash_attn_interface"),
    "a folder's commit": ({"revision": "main"}, "revision has no effect"),
    "an unknown switch": ({"template": {"enable_thinking": False}}, "template.enable_thinking"),
    "FindIt's messages": ({"template": {"messages": []}}, "messages is set by FindIt"),
    "FindIt's turn": ({"template": {"add_generation_prompt": False}}, "is set by FindIt"),
    "an unknown engine": ({"engine": "onnx"}, "unknown engine 'onnx'"),
    "an engine without GPUs": ({"engine": "numpy", "dtype": "half"}, "takes no dtype half"),
    "an engine's attention": ({"engine": "numpy", "attention": "sdpa"}, "takes no attention sdpa"),
    "no adapter": ({"merge_adapter": True}, "merge_adapter"),
}
TAKEN: Mapping[str, Mapping[str, Any]] = {
    "both bounds": {"min_pixels": 576, "max_pixels": 1000},
    "within the processor": {"max_pixels": 9000},
    "eager": {"attention": "eager"},
    "a kernel of the hub": {"attention": "kernels-community/flash-attn"},
    "half": {"dtype": "half"},
    "NumPy": {"engine": "numpy"},
    "NumPy's only type": {"engine": "numpy", "dtype": "float32"},
}


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("what", every_nth_fast(REFUSED, 3))
def test_a_sweep_names_the_line_before_others_are_asked(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, words = REFUSED[what]
    models = ["FullImage", {"name": NANO, "settings": dict(settings)}]
    sweep = {"models": models, "datasets": ["Demo"], "outputs": ["json"], "limit": 1}
    Path("sweep.yaml").write_text(json.dumps(sweep))
    assert main(["sweep", "sweep.yaml", "--work-dir", "out"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "sweep.yaml, line 1: " in said
    assert not list(Path("out").glob("**/*.jsonl"))


@pytest.mark.parametrize("what", REFUSED)
def test_python_refuses_it_when_a_model_is_opened(what: str) -> None:
    settings, words = REFUSED[what]
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        findit.open_model(NANO, **settings)
    assert words in str(refusal.value)


@pytest.mark.parametrize("what", TAKEN)
@pytest.mark.parametrize("name", [NANO, NANO_PX])
def test_what_a_processor_takes_is_not_refused(name: str, what: str) -> None:
    row, checkpoint = local_names()[name]
    refuse_settings(row, checkpoint, run_settings(TAKEN[what]))


def test_of_a_checkpoint_elsewhere_only_tables_are_known() -> None:
    row = find_model("Qwen3-VL")
    assert row is not None
    given = {"revision": "main", "template": {"any_switch": True}, "max_pixels": 999_999}
    refuse_settings(row, "Qwen/Qwen3-VL-8B-Instruct", run_settings(given))
    with pytest.raises(ValueError, match="min_pixels 200704 > max_pixels 1000"):
        refuse_settings(row, "Qwen/Qwen3-VL-8B-Instruct", run_settings({"max_pixels": 1000}))


def test_packages_of_other_machines_are_not_looked_for() -> None:
    row, checkpoint = local_names()[NANO]
    settings = run_settings({"attention": "flash_attention_2"})
    refuse_settings(row, checkpoint, settings, elsewhere=True)
