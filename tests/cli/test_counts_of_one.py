"""Of one thing, no command says "1 runs"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scored_runs import saying, small_world

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import FAILED_ANSWER

NAME = "FindIt_Pascal_xyxy_json"
A_BOX = '[{"bbox": [0, 0, 9, 9]}]'

NOUNS = (
    "annotations answers boxes calls cells classes datasets formats images labels models objects "
    "pictures places points queries replies requests reviews rows runs samples"
).split()
# "0 of 1 rows" is right: the whole is a plural.
WRONG = re.compile(
    rf"(?<!of )(?<!of the )(?<![\d.,–-])\b1 (({'|'.join(NOUNS)})\b|\w+ (are|have|were)\b).*"
)

COMMANDS = [
    "score outputs",
    "errors outputs",
    "coords outputs",
    "leaderboard outputs --out board",
    "report outputs --out page.html",
    "compare outputs/M outputs/N",
    "audit outputs",
    "calibration outputs",
    "samples outputs",
    "export outputs --to coco --out coco",
    "export outputs --to fiftyone --out fiftyone",
    "export outputs --to hub --out hub",
    f"data show {NAME} --index 0",
    f"run --data {NAME} --model LocalBaseline --dry-run",
]


@pytest.mark.parametrize("reply", [A_BOX, "[]", "no idea", f"{FAILED_ANSWER} via API."])
def test_one_is_singular(
    reply: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = small_world(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    for model in ("M", "N"):
        world.predict(model, NAME, saying(reply), folder=f"../outputs/{model}", rows=1)
    (world.folder / "pictures" / "0.jpg").unlink()
    for words in COMMANDS:
        main(words.split())
        said = capsys.readouterr()
        text = f"{said.out}\n{said.err}"
        assert WRONG.search(text) is None, f"{words}: {WRONG.search(text)}"
