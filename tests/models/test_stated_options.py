"""An option is declared once: what follows from its field is what was declared."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from vlmeval_findit.cli import main
from vlmeval_findit.core import MisplacedError, validate
from vlmeval_findit.engine import KINDS, Asking, CallOptions
from vlmeval_findit.models import (
    MODEL_KEYS,
    ModelEntry,
    ModelOptions,
    declared_options,
    entry_values,
    options_to,
)
from vlmeval_findit.serving import ServeOptions
from vlmeval_findit.sweeps import Sweep

OPTIONS = declared_options()
RECORDS: dict[str, Any] = {
    "entry": ModelEntry,
    "serve": ServeOptions,
    "calls": CallOptions,
    "sweep": Sweep,
    "asking": Asking,
}
# Parts of an entry that have names of any kind
OPEN = {"settings", "resources"}

LIMITED = [name for name, row in OPTIONS.items() if row.type in (int, float)]


def typed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value_goes_where_a_record_takes_it(name: str) -> None:
    option = OPTIONS[name].option
    if not option.to or option.place in OPEN:
        return
    field = option.to.partition(".")[2] or name
    assert field in {each.name for each in fields(RECORDS[option.place])}
    value: Any = {bool: True, int: 3, float: 0.5}.get(OPTIONS[name].type, "x")
    assert ModelOptions(**{name: value}).going_to(option.place) == {field: value}


@pytest.mark.parametrize("name", sorted(options_to(*OPEN)))
def test_settings_and_resources_are_keys_of_a_model(name: str) -> None:
    assert name in MODEL_KEYS
    value: Any = {int: 3, float: 0.5}.get(OPTIONS[name].type, "bfloat16")
    entry = validate(ModelEntry, entry_values({"name": "mine", name: value}))
    assert getattr(entry, OPTIONS[name].option.place) == {name: value}
    by_flag = ModelOptions(**{name: value}).entry("Qwen3-VL")
    assert getattr(by_flag, OPTIONS[name].option.place) == {name: value}
    if name in LIMITED:
        with pytest.raises(MisplacedError, match=f"^{name}: -1 should be"):
            validate(ModelEntry, entry_values({"name": "mine", name: -1}))


@pytest.mark.parametrize("name", LIMITED)
def test_a_number_out_of_range_is_refused_by_its_flag(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MisplacedError, match=f"^{typed(name)}: -1 should be"):
        ModelOptions(**{name: -1}).check(typed)
    if not OPTIONS[name].option.of_some:
        assert main(["probe", "--model", "FullImage", typed(name), "-1"]) == 2
        assert f"{typed(name)}: -1" in capsys.readouterr().err


def test_every_option_that_not_all_use_has_users() -> None:
    """An option that goes to a model, its calls or its server acts for some kind only."""
    used = frozenset[str]().union(*(kind.uses for kind in KINDS))
    placed = options_to("settings", "resources", "serve", "calls", "asking")
    assert placed - used == set()


def test_every_option_says_what_it_is() -> None:
    shared = {"space", "force"}  # with commands that ask no model
    assert {name for name, row in OPTIONS.items() if not row.option.text} == shared
