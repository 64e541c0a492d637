"""The public names of the Python API, and prompts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.findit import BENCHMARK
from vlmeval_findit.data import load_dataset


def test_importing_it_imports_nothing_else() -> None:
    root = Path(findit.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); before = set(sys.modules); "
    code += "import vlmeval_findit; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "{'vlmeval_findit'}"


def test_commands_without_models_import_nothing_heavy() -> None:
    code = (
        "import sys, vlmeval_findit as f\n"
        "f.read('[]', 'xyxy_json', size=(9, 9), space='unit')\n"
        "f.reward(['[]'], [[[0, 0, 5, 5]]], 'xyxy_json', sizes=(9, 9), space='unit')\n"
        "f.score(['[]'], [[]], 'xyxy_json', sizes=(9, 9), space='unit').metric_values\n"
        "f.prompt('dog', 'xyxy_json', 'a.jpg'); f.load_runs; f.draw; f.open_model('FullImage')\n"
        "heavy = {'torch', 'vlmeval', 'pandas', 'scipy', 'vl_convert', 'transformers', 'cv2'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there_and_documented() -> None:
    assert set(findit.__all__) <= set(dir(findit))
    for name in findit.__all__:
        assert getattr(findit, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'scor'"):
        findit.scor  # noqa: B018


# --- prompt ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["multilabel_cxcywh_json_nested", "cxcywh_json_cx-formula"])
def test_a_prompt_is_that_of_runs(world: World, form: str) -> None:
    variant = BENCHMARK.parse(f"FindIt_Pascal_{form}")
    query = next(iter(load_dataset("FindIt_Pascal_xyxy_json").queries.values()))
    label: str | Sequence[str] = ["cat", "dog"] if variant.multilabel else query.label
    asked = findit.prompt(label, variant.format, query.images, family=variant.family)
    if variant.multilabel:
        query = replace(query, label="cat, dog")
    assert asked == BENCHMARK.prompts()[0].message(query, variant)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "refex"}, "did you mean refexp"),
        ({"family": "refexp", "images": ["a.jpg", "b.jpg"]}, "not 2 frames"),
        ({"family": "refexp", "label": ["a", "b"]}, "no multi-label"),
        ({"family": "insdet"}, "with references"),
        ({"references": ["a.jpg"]}, "without references"),
        ({"images": []}, "at least one image"),
        ({"label": []}, "at least one label"),
    ],
)
def test_prompts_that_there_are_not(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        findit.prompt(**{"label": "cat", "format": "xyxy_json", "images": "a.jpg", **change})
