"""Files of torch.save: what they hold is told without torch, and without calling what they name."""

from __future__ import annotations

import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters import write_adapter
from late import Late

from vlmeval_findit.models import read_torch_file, refuse_missing, tensors_in

torch = Late("torch")
BLOCK = "model.layers.0.q_proj.weight"
each_form = pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "before 1.6"])


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    pytest.importorskip("torch")


def tensors(dtype: str = "float32", prefix: str = "") -> dict[str, Any]:
    names = (BLOCK, "model.layers.1.q_proj.weight", "lm_head.weight")
    return {f"{prefix}{name}": torch.zeros(2, 3, dtype=getattr(torch, dtype)) for name in names}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def save(file: Path, values: Any, is_zip: bool) -> None:
    torch.save(values, file, _use_new_zipfile_serialization=is_zip)


def in_form(folder: Path, form: str, values: Any, is_zip: bool) -> Path:
    """Save values as a form of checkpoint; returns the checkpoint."""
    if form == "shards":
        names = [f"pytorch_model-0000{at}-of-00002.bin" for at in (1, 2)]
        save(folder / names[0], {"other.weight": torch.zeros(2)}, is_zip)
        save(folder / names[1], values, is_zip)
        index = {"weight_map": {str(at): name for at, name in enumerate(names)}}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
        return folder
    if form == "adapter":
        base = folder / "base"
        base.mkdir()
        (base / "config.json").write_text("{}")
        adapter = write_adapter(folder / "adapter", base)
        (adapter / "adapter_model.safetensors").unlink()
        save(adapter / "adapter_model.bin", values, is_zip)
        return adapter
    save(folder / "pytorch_model.bin", values, is_zip)
    return folder


each_checkpoint = pytest.mark.parametrize("form", ["single", "shards", "adapter"])


@each_form
@each_checkpoint
@pytest.mark.parametrize(
    ("keys", "beside"),
    [
        (("state_dict",), lambda: {"epoch": 3, "hyper_parameters": {"lr": 0.1}}),
        (
            ("model",),
            lambda: {"optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}, "groups": [{}]}},
        ),
        (("module",), lambda: {"step": torch.tensor(7), "args": object}),
        (
            ("model_state_dict",),
            lambda: {"rng": (torch.zeros(4, dtype=torch.uint8), Path("x"))},
        ),
        (("state", "net"), dict),
        (("what", "ever", "holds it"), lambda: {"loss": [0.5]}),
    ],
)
def test_weights_within_a_trainers_state_are_named(
    keys: tuple[str, ...], beside: Callable[[], Any], form: str, is_zip: bool, folder: Path
) -> None:
    values: Any = OrderedDict(tensors())
    others = beside()
    for key in reversed(keys):
        values = {key: values}
    checkpoint = in_form(folder, form, {**others, **values}, is_zip)
    inside = "".join(f"['{key}']" for key in keys)
    with pytest.raises(ValueError, match="its weights are in ") as refused:
        refuse_missing(str(checkpoint))
    where, _, typed = str(refused.value).partition(": ")
    assert inside in typed
    command = typed.partition('python -c "')[2].removesuffix('"')
    assert where in command
    if object not in others.values() and "rng" not in others:  # Torch refuses to load objects
        exec(command)
        refuse_missing(str(checkpoint))


@each_form
@each_checkpoint
def test_what_is_no_state_dict_is_refused(form: str, is_zip: bool, folder: Path) -> None:
    checkpoint = in_form(folder, form, torch.nn.Linear(2, 3), is_zip)
    with pytest.raises(ValueError, match=r"an object was saved, not its weights\. Save"):
        refuse_missing(str(checkpoint))


@each_form
@each_checkpoint
@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_fsdp_wrapped_module."])
def test_wrappers_are_told_by_torchs_files_too(
    prefix: str, form: str, is_zip: bool, folder: Path
) -> None:
    values = tensors(prefix=prefix)
    checkpoint = in_form(folder, form, values, is_zip)
    if form == "single":
        with pytest.raises(ValueError, match=f"names of all 3 weights begin with {prefix}"):
            refuse_missing(str(checkpoint))
    else:
        refuse_missing(str(checkpoint))  # The loading is judged


@each_form
@each_checkpoint
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint32"])
def test_integers_in_torchs_files_need_their_settings(
    dtype: str, form: str, is_zip: bool, folder: Path
) -> None:
    checkpoint = in_form(folder, form, tensors(dtype), is_zip)
    with pytest.raises(ValueError, match=r"\.bin: 3 weights of integers .*: [IU]\d+"):
        refuse_missing(str(checkpoint))
    settings = {"quantization_config": {"quant_method": "gptq"}}
    (checkpoint / "config.json").write_text(json.dumps(settings))
    refuse_missing(str(checkpoint))


@each_form
@each_checkpoint
@pytest.mark.parametrize(
    "values",
    [
        lambda: OrderedDict(tensors()),
        lambda: {name: torch.nn.Parameter(each) for name, each in tensors().items()},
        lambda: tensors("bfloat16"),
        lambda: tensors("float8_e4m3fn"),
        lambda: {"a.position_ids": torch.arange(3), "attn.bias": torch.ones(2, dtype=torch.bool)},
        lambda: torch.nn.Linear(2, 3).state_dict(),
        lambda: {"weight": torch.eye(3).to_sparse()},
        dict,
    ],
    ids=range(8),
)
def test_other_tensors_pass(
    values: Callable[[], Any], form: str, is_zip: bool, folder: Path
) -> None:
    refuse_missing(str(in_form(folder, form, values(), is_zip)))


@each_form
def test_names_types_and_shapes_are_read(is_zip: bool, tmp_path: Path) -> None:
    values = {"a": torch.zeros(2, 3).half(), "b": torch.nn.Parameter(torch.zeros(())), "c": 7}
    save(tmp_path / "w.bin", values, is_zip)
    assert tensors_in(read_torch_file(tmp_path / "w.bin")) == {
        "a": ("F16", (2, 3)),
        "b": ("F32", ()),
    }


class Calls:
    """Makes a folder when its pickle is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._path),)


@each_form
def test_nothing_that_a_file_names_is_called(is_zip: bool, folder: Path) -> None:
    trap = folder / "made"
    in_form(folder, "single", {"a.weight": torch.zeros(2), "b": Calls(trap)}, is_zip)
    refuse_missing(str(folder))
    assert not trap.exists()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Calls(trap)))
    refuse_missing(str(folder))  # Whoever loads it says what it is
    assert not trap.exists()
