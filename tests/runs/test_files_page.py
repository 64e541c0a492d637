"""docs/reference/files.md names every key in the files of a run."""

from __future__ import annotations

import json
import re

from paths import ROOT
from scored_runs import World, failing, saying, speaking, world

from vlmeval_findit.core.run_files import RunFiles

__all__ = ["world"]

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"
PAGE = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")


def test_every_key_is_on_the_page(world: World) -> None:
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
    keys: dict[str, set[str]] = {"Details": set(), "Provenance": set(), "Identity": set()}
    cut_off = saying('[{"bbox_2d": [0, 0, 500, 500]}, {"bbox_2d": [1, 2')
    answers = {"Good": speaking(DATA, 0.5), "Failing": failing, "Cut": cut_off}
    for model, answer in answers.items():
        files = RunFiles(world.run(model, DATA, answer).path)
        for line in files.details.read_text().splitlines():
            keys["Details"] |= json.loads(line).keys()
        keys["Provenance"] |= json.loads(files.provenance.read_text()).keys()
        keys["Identity"] |= json.loads(files.identity.read_text()).keys()
    assert {"errors", "lenient"} <= keys["Details"]
    for section, names in keys.items():
        assert names - {*re.findall(r"`(\w+)`", sections[section])} == set()
