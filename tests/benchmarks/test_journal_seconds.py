"""What it costs to check every line of a journal when it is opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_fakes import FakeHost, FakeModel, Message, demo_sweep, go
from measured import seconds

from vlmeval_findit.core.replies import Recorded
from vlmeval_findit.engine.journal.lines import as_line
from vlmeval_findit.engine.journal.reading import records
from vlmeval_findit.engine.journal.writer import Journal

LINES = 20_000


class Recording(FakeModel):
    """Says with its replies what our own models record."""

    def generate(self, message: Message, dataset: str) -> dict[str, str]:
        record = Recorded(
            space={"kind": "grid1000"},
            finish_reason="stop",
            images=({"original": [500, 375], "sent": [500, 375], "processed": [504, 364]},),
            tokens={"prompt": 312, "completion": 24},
            model={"row": "Qwen3-VL", "served": "org/model"},
            call={"id": "gen-1763763600-abcdef", "cost": 0.00012},
        )
        return {"prediction": "[1, 2, 3, 4]", "extra_records": record.as_json()}


def test_opening_costs_little_more_than_reading_json(tmp_path: Path, measures: bool) -> None:
    if not measures:
        pytest.skip("measures only with --benchmark-enable")
    go(demo_sweep(tmp_path), FakeHost(Recording()))
    path = tmp_path / "calls.jsonl"
    known = [as_line(record) for record in records(path)]
    path.write_bytes(b"".join(known * (LINES // len(known))))
    raw = path.read_bytes().splitlines()
    opened = seconds(lambda: Journal(path, reserve=0).close())
    loaded = seconds(lambda: [json.loads(line) for line in raw])
    print(
        f"\n{len(raw):,} lines of {len(raw[0])} bytes: json.loads {1e6 * loaded / len(raw):.1f} us "
        f"a line, opening {1e6 * opened / len(raw):.1f} us: {opened / loaded:.2f} times"
    )
    assert opened < 4 * loaded
