"""``findit probe`` of FindIt-Nano on this machine; behind a server: test_serve_command.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_runs import RUN_FINDIT, environment, require_host, run

from vlmeval_findit.models.model_table import NANO, NANO_PX

pytestmark = [pytest.mark.host, pytest.mark.slow]


def probe(tmp_path: Path, *flags: str) -> tuple[int, str]:
    done = run(RUN_FINDIT, ["probe", *flags], tmp_path, environment(tmp_path / "lmu"))
    return done.returncode, done.stdout


THOUSANDTHS = "thousandths of width and height, xyxy"
RESIZED = "pixels of the processor's resize within 2304..28224, to multiples of 24, xywh"


@pytest.mark.parametrize(
    ("model", "form", "means", "space", "declares"),
    [
        (NANO, "xyxy_json", THOUSANDTHS, "pixels", "pixels of the image, xyxy"),
        # On large pictures the pixels of what it was shown are not the picture's.
        (NANO_PX, "xywh_json", RESIZED, "pixels", "pixels of the image, xywh"),
        (NANO_PX, "xywh_json", RESIZED, "grid1000", "thousandths of width and height, xywh"),
    ],
)
def test_a_model_on_this_machine(
    model: str, form: str, means: str, space: str, declares: str, one_thread: None, tmp_path: Path
) -> None:
    require_host()
    pytest.importorskip("torch")
    asked = ("--model", model, "--limit", "30", "--format", form)
    status, out = probe(tmp_path, *asked)
    assert status == 0, out
    assert f"declared {means}: confirmed" in " ".join(out.split())
    # What was asked is not asked again, and a stated space is compared with the answers.
    status, out = probe(tmp_path, *asked, "--space", space)
    assert status == 1, out
    assert "answers of an earlier probe are in" in out
    assert f"declared {declares}; the answers are {means}" in " ".join(out.split())
