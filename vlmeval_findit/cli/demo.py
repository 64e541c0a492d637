"""``run_findit.py demo``: the demonstration, without a network or weights."""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..demo.tables import ensure_demo
from ..places import image_folder
from .printing import print_rows

DEMO_DATASETS = (
    "FindIt_Demo_xyxy_json",
    "FindIt_Demo_cxcywh_text",
    "FindIt_Demo_all-labelled_json_bbox_2d_nested",
    "FindIt_Demo_multilabel_yxyx_json_class_name",
    "FindIt_Demo_refexp_xywh_text",
    "FindIt_Demo_described_yxhw_json_decomposed",
    "FindIt_Demo_insdet_xyxy_json_coordinates",
    "FindIt_Demo_video_f8_xyxy_json",
    "FindIt_Demo_video_f1_xyxy_text",
)
DEMO_MODELS = ("OpenCV-Detector", "FullImage")


def main(argv: Sequence[str]) -> int:
    """Real photographs, a classical detector, the whole path; needs no network and no weights."""

    parser = argparse.ArgumentParser(prog="run_findit.py demo", description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=Path("outputs/demo"))
    args = parser.parse_args(argv)
    ensure_demo()
    args.work_dir.mkdir(parents=True, exist_ok=True)
    log = args.work_dir / "demo.log"
    print(f"Photographs: {image_folder('Demo').path}")
    print(f"Running {len(DEMO_DATASETS)} variants with {', '.join(DEMO_MODELS)} through VLMEvalKit")
    command = [sys.executable, "-m", "vlmeval_findit", "--data", *DEMO_DATASETS]
    command += ["--model", *DEMO_MODELS, "--work-dir", str(args.work_dir)]
    with log.open("w", encoding="utf-8") as f:
        done = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, check=False)
    files = [
        args.work_dir / model / f"{model}_{name}_score.csv"
        for name in DEMO_DATASETS
        for model in DEMO_MODELS
    ]
    missing = [path for path in files if not path.is_file()]
    if done.returncode or missing:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise ValueError(f"the demonstration did not run through; the end of {log}:\n{tail}")
    rows: list[dict[str, str]] = []
    for path in files:
        with path.open(encoding="utf-8", newline="") as f:
            rows += csv.DictReader(f)
    print_rows(rows)
    print(f"Scores, details and provenance: {args.work_dir}/<model>/; VLMEvalKit's log: {log}")
    return 0
