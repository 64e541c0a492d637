"""Folders of models that try to take the machine, or say other than they hold."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bounded import told_within
from weight_headers import write_index

from vlmeval_findit.models import NANO, SHIPPED

Change = Callable[[Path], object]

_SECONDS = 60  # of the processor
_MEBIBYTES = 400  # A small model takes some 60


def told_of(folder: Path, change: Change, load: Callable[[Path], object]) -> str:
    """Load a changed model in a process of its own; return what is said, or its answer.

    Its memory and time are bounded: who takes more is killed, or has no memory.
    """
    hostile_model(folder, change)
    told = told_within(partial(load, folder), seconds=_SECONDS, mebibytes=_MEBIBYTES)
    assert not folder.with_name("unpickled").exists()
    return told


class _Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, told: Path) -> None:
        self._told = told

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self._told}",))


def hostile_model(folder: Path, change: Change) -> Path:
    """Copy a small model, and change its files."""
    shutil.copytree(SHIPPED[NANO], folder)
    change(folder)
    return folder


def _template(text: str) -> Change:
    return lambda folder: (folder / "chat_template.jinja").write_text(text)


def _data(name: str, data: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(data)


def _huge(name: str) -> Change:
    def write(folder: Path) -> None:
        with (folder / name).open("wb") as f:
            f.write(b'{"a": "')
            for _ in range(300):
                f.write(b"x" * (1 << 20))
            f.write(b'"}')

    return write


def _values(name: str, change: Callable[[dict[str, Any]], object]) -> Change:
    def edit(folder: Path) -> None:
        values = json.loads((folder / name).read_text())
        change(values)
        (folder / name).write_text(json.dumps(values))

    return edit


def _header(change: Callable[[dict[str, Any]], object]) -> Change:
    """Return a change of the header of the weights; the numbers stay."""

    def edit(folder: Path) -> None:
        path = folder / "model.safetensors"
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        values = json.loads(data[8 : 8 + length])
        change(values)
        text = json.dumps(values).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])

    return edit


def _lengths(length: int) -> Change:
    def edit(folder: Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(length.to_bytes(8, "little") + path.read_bytes()[8:])

    return edit


def _first(values: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = next(each for key, each in values.items() if key != "__metadata__")
    return entry


def _set(entry: dict[str, Any], **more: Any) -> None:
    entry.update(more)


def _overlap(values: dict[str, Any]) -> None:
    """Let one tensor lie on another of the same size."""
    places: dict[str, Any] = {}
    for key, each in values.items():
        if key == "__metadata__":
            continue
        kind = f"{each['dtype']} {each['shape']}"
        if kind in places:
            each["data_offsets"] = places[kind]
            return
        places[kind] = each["data_offsets"]
    raise LookupError("no two tensors are alike")


def _index_of(name: str) -> Change:
    def edit(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder.with_name("outside.safetensors"))
        write_index(folder, name.format(folder=folder.parent))

    return edit


def _linked(name: str) -> Change:
    def edit(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(name)

    return edit


def _fifo(name: str) -> Change:
    def edit(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return edit


def _pickled(name: str, in_place: bool = True) -> Change:
    def edit(folder: Path) -> None:
        if in_place:
            (folder / "model.safetensors").unlink()
        told = folder.with_name("unpickled")
        (folder / name).write_bytes(pickle.dumps({"lm_head.weight": _Evil(told)}, protocol=2))

    return edit


def _torchs(*pieces: bytes, times: int = 1) -> Change:
    """Return a change that stores a file of torch.save, of a packed pickle of so many pieces."""

    def edit(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        begin, *rest = pieces
        with (
            zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as parts,
            parts.open("archive/data.pkl", "w", force_zip64=True) as part,
        ):
            part.write(begin)
            for _ in range(times):
                for piece in rest:
                    part.write(piece)

    return edit


def _of_itself() -> bytes:
    """Return a pickle of an object that has itself a thousand times."""
    values: dict[str, Any] = {}
    values.update({str(at): values for at in range(2000)})
    return pickle.dumps(values, protocol=2)


def _both(*changes: Change) -> Change:
    def edit(folder: Path) -> None:
        for change in changes:
            change(folder)

    return edit


_DEEP = b"[" * 200_000
_BOMB = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
_LONG = "{{ '%99999999999d' % 1 }}"


def _only(condition: str) -> Change:
    """Return a template that asks for gigabytes, which is stopped at once, under a condition."""
    return _template(
        f"{{% if {condition} %}}{_LONG}{{% endif %}}"
        "<|image_pad|>{{ messages[-1]['content'][-1]['text'] }}"
    )


TEMPLATES: dict[str, Change] = {
    "loops within loops": _template(_BOMB),
    "a range of all": _template("{% for i in range(10**9) %}x{% endfor %}"),
    "a padded number": _template(_LONG),
    "a product of text": _template("{{ 'a' * 10**10 }}"),
    "a power": _template("{{ 9 ** 9 ** 9 }}"),
    "a text that doubles": _template(
        "{% set n = namespace(t='ab') %}{% for i in range(60) %}{% set n.t = n.t ~ n.t %}"
        "{% endfor %}{{ n.t }}"
    ),
    "a macro of itself": _template("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}"),
    "a list that grows": _template(
        "{% set n = namespace(t=[1]) %}{% for i in range(60) %}{% set n.t = n.t + n.t %}"
        "{% endfor %}{{ n.t|length }}"
    ),
    "attributes": _template("{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    "formats": _template("{{ '{0.__class__.__mro__}'.format(messages) }}"),
    "centred": _template("{{ 'a'|center(10**10) }}"),
    "undefined": _template("{{ nothing.at.all }}"),
    "no syntax": _template("{% for %}"),
    "it raises": _template("{{ raise_exception('no') }}"),
    "an include": _template("{% include '/etc/passwd' %}"),
    "not UTF-8": _data("chat_template.jinja", b"\xff\xfe{{ messages }}"),
    "empty": _template(""),
    "nested brackets": _template("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}"),
    "no image": _template("{{ messages[0]['content'][1]['text'] }}"),
    "a thousand images": _template("{% for i in range(1000) %}<|image_pad|>{% endfor %}"),
}

_PARTS = "messages[-1]['content']"

_WORDS = ("dog", "person", "left", "JSON", "bbox", "17", "%", "think", "\\", "@", "http", "猫", "и")
_WORDS += ("🐈", "“", "NONE", "<|im_end|>", "\t", "point", "null", "behind")

# Templates that do harm in some conversations only
PARTIAL: dict[str, Change] = (
    {
        f"only with {images} images": _only(f"{_PARTS}|length == {images + 1}")
        for images in (0, 2, 5, 9)
    }
    | {
        "only with several images": _only(f"{_PARTS}|length > 2"),
        "only without a system message": _only("messages|length == 1"),
        "only with a system message": _only("messages[0]['role'] == 'system'"),
        "only with a long question": _only(f"{_PARTS}[-1]['text']|length > 500"),
        "only with a very long question": _only(f"{_PARTS}[-1]['text']|length > 20000"),
        "only with lines": _only(f"'\\n' in {_PARTS}[-1]['text']"),
        "only with braces": _only(f"'{{' in {_PARTS}[-1]['text']"),
        "only with other letters": _only(f"'ä' in {_PARTS}[-1]['text']"),
    }
    | {f"only with {word!r}": _only(f"{word!r} in {_PARTS}[-1]['text']") for word in _WORDS}
    | {
        "only without a text": _only(f"not {_PARTS}[-1]['text']"),
        "only with capitals": _only(f"{_PARTS}[-1]['text']|upper == {_PARTS}[-1]['text']"),
        "only in this century": _only("strftime_now('%Y')|int > 1999"),
    }
)

FILES: dict[str, Change] = {
    "config: an array": _data("config.json", b"[1, 2]"),
    "config: deep": _data("config.json", _DEEP),
    "config: deep object": _data("config.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "config: not UTF-8": _data("config.json", b'{"model_type": "\xff"}'),
    "config: empty": _data("config.json", b""),
    "config: huge": _huge("config.json"),
    "config: a link to itself": _linked("config.json"),
    "config: a queue": _fifo("config.json"),
    "config: a long number": _data("config.json", b'{"model_type": ' + b"9" * 10_000 + b"}"),
    "config: layers without end": _values(
        "config.json", lambda v: _set(v["text_config"], num_hidden_layers=10**9)
    ),
    "config: a vocabulary without end": _values(
        "config.json", lambda v: _set(v["text_config"], vocab_size=10**12)
    ),
    "config: no heads": _values(
        "config.json", lambda v: _set(v["text_config"], num_attention_heads=0)
    ),
    "config: negative": _values("config.json", lambda v: _set(v["text_config"], hidden_size=-1)),
    "config: text for a number": _values(
        "config.json", lambda v: _set(v["text_config"], hidden_size="64")
    ),
    "weights: a header of 8 EB": _lengths(2**63 - 1),
    "weights: a negative length": _lengths(2**64 - 1),
    "weights: a header of the file's size": _lengths(1_000_000),
    "weights: no header": _lengths(0),
    "weights: overlap": _header(_overlap),
    "weights: negative offsets": _header(lambda v: _set(_first(v), data_offsets=[-8, 8])),
    "weights: offsets backwards": _header(lambda v: _set(_first(v), data_offsets=[64, 0])),
    "weights: offsets beyond": _header(lambda v: _set(_first(v), data_offsets=[0, 2**62])),
    "weights: offsets of text": _header(lambda v: _set(_first(v), data_offsets=["0", "8"])),
    "weights: a shape of more": _header(lambda v: _set(_first(v), shape=[2**40, 2**40])),
    "weights: a negative shape": _header(lambda v: _set(_first(v), shape=[-1, -64])),
    "weights: an unknown type": _header(lambda v: _set(_first(v), dtype="F7")),
    "weights: entries of text": _header(lambda v: v.update(extra="text")),
    "weights: a deep header": lambda folder: (folder / "model.safetensors").write_bytes(
        (len(_DEEP)).to_bytes(8, "little") + _DEEP
    ),
    "weights: a link to itself": _linked("model.safetensors"),
    "weights: a queue": _fifo("model.safetensors"),
    "index: outside": _index_of("../outside.safetensors"),
    "index: absolute": _index_of("{folder}/outside.safetensors"),
    "index: missing": _index_of("model-00001-of-00001.safetensors"),
    "index: a list": _both(
        _index_of("x"), _data("model.safetensors.index.json", b'{"weight_map": [1]}')
    ),
    "index: itself": _index_of("model.safetensors.index.json"),
    "pickle: torch's": _pickled("pytorch_model.bin"),
    "pickle: training arguments": _pickled("training_args.bin", in_place=False),
    "pickle: a memory of 2^31 places": _torchs(b"\x80\x02}r\xff\xff\xff\x7f."),
    "pickle: a text of 2^40 bytes": _torchs(b"\x80\x04\x8e" + (2**40).to_bytes(8, "little")),
    "pickle: an object of itself": _torchs(_of_itself()),
    "pickle: gigabytes of nothing": _torchs(b"\x80\x02N", b"0N" * (1 << 19), times=500),
    "tokenizer: an array": _data("tokenizer.json", b"[]"),
    "tokenizer: deep": _data("tokenizer.json", _DEEP),
    "tokenizer: empty": _data("tokenizer.json", b""),
    "tokenizer: not UTF-8": _data("tokenizer.json", b"\xff\xff"),
    "tokenizer: huge": _huge("tokenizer.json"),
    "tokenizer: a link to itself": _linked("tokenizer.json"),
    "tokenizer config: an array": _data("tokenizer_config.json", b"[]"),
    "tokenizer config: no image": _values("tokenizer_config.json", lambda v: v.pop("image_token")),
    "processor: an array": _data("processor_config.json", b"[]"),
    "processor: no patches": _values(
        "processor_config.json", lambda v: _set(v["image_processor"], patch_size=0)
    ),
    "processor: pixels without end": _values(
        "processor_config.json",
        lambda v: _set(
            v["image_processor"], size={"shortest_edge": 10**12, "longest_edge": 10**13}
        ),
    ),
    "processor: no deviation": _values(
        "processor_config.json", lambda v: _set(v["image_processor"], image_std=[0, 0, 0])
    ),
    "generation: an array": _data("generation_config.json", b"[]"),
    "generation: text for an end": _values(
        "generation_config.json", lambda v: _set(v, eos_token_id="x")
    ),
}
