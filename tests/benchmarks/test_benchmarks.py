"""Names find their benchmark: by the longest prefix, with the nearest where there is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vlmeval_findit import benchmarks
from vlmeval_findit.protocol import DatasetNameError

PASCAL = "FindIt_Pascal_xyxy_json"


def test_files_are_named_after_model_and_dataset() -> None:
    for name, why in (
        ("Pascal_xyxy_json", "did you mean FindIt_Pascal_xyxy_json"),
        ("MMBench", r"a name begins with .*FindIt_"),
    ):
        with pytest.raises(DatasetNameError, match=why):
            benchmarks.parse(name)
        assert not benchmarks.is_dataset_name(name)
    for stem, result in (
        (f"Qwen3-VL_{PASCAL}", ("Qwen3-VL", PASCAL)),
        (f"a_FindIt_b_{PASCAL}", ("a_FindIt_b", PASCAL)),
        (PASCAL, None),
        ("m_FindIt_Nothing_xyxy_json", None),
    ):
        assert benchmarks.name_after_model(stem) == result


def test_listing_prefixes_imports_no_benchmark() -> None:
    code = (
        "import sys; from vlmeval_findit import benchmarks; benchmarks.prefixes()\n"
        "loaded = [m for m in sys.modules if m.endswith('.benchmark') and 'benchmarks' in m]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_listed_name_is_a_question_of_its_benchmark() -> None:
    for benchmark in benchmarks.benchmarks():
        listed = benchmark.variant_names()
        assert listed
        for name in listed:
            assert benchmarks.benchmark_of(name) is benchmark
            assert benchmark.parse(name).name == name
