"""Whether all weights of a model were in its checkpoint: verdicts, and who asks for them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from adapters import write_adapter
from paths import ROOT
from weight_headers import write_index, write_numbers, write_weights

from vlmeval_findit.models import (
    LoadingReport,
    Shapes,
    adapters_report,
    checked_loading,
    judge_loading,
    refuse_missing,
    refuse_unloadable,
    report_of_log,
)

BLOCKS = {f"model.layers.{at}.{of}.weight" for at in range(4) for of in ("q_proj", "norm")}
NAMES = frozenset({*BLOCKS, "model.visual.merger.weight", "model.cls_token", "lm_head.weight"})
ONE = "model.layers.1.q_proj"


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "superfluous",
    [
        (),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", "model.visual.embeddings.position_ids"),
        ("mtp.layers.0.q_proj.weight", "mtp.norm.weight"),
        ("model.layers.4.q_proj.weight", "model.layers.4.eh_proj.weight"),
        ("model.layers.4.shared_head.norm.weight", "model.layers.4.norm.weight"),
        ("bn.num_batches_tracked", f"{ONE}._extra_state"),
    ],
)
def test_what_no_answer_depends_on_passes_without_a_word(superfluous: tuple[str, ...]) -> None:
    assert judge_loading(LoadingReport(NAMES, superfluous=superfluous)) == (None, ())
    assert judge_loading(LoadingReport(NAMES, missing=superfluous)) == (None, ())


@pytest.mark.parametrize(
    "head", ["value_head.weight", "v_head.summary.bias", "score.weight", "talker.layers.0.w"]
)
def test_superfluous_weights_beside_the_model_pass_with_a_word(
    head: str, caplog: pytest.LogCaptureFixture
) -> None:
    report = LoadingReport(NAMES, superfluous=(head,))
    assert judge_loading(report) == (None, (head,))
    assert checked_loading("ft", report) == f"all there; ignored: {head}"
    assert f"ft: its model has no place for {head}" in caplog.text
    assert checked_loading("ft", LoadingReport(NAMES)) == "all there"


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            LoadingReport(NAMES, missing=(f"{ONE}.weight", "model.visual.merger.weight")),
            "2 of its 11 weights are missing .*: a part of the model was not saved",
        ),
        (LoadingReport(NAMES, missing=("lm_head.weight",)), '"tie_word_embeddings": true'),
        (
            LoadingReport(NAMES, (f"{ONE}.weight",), (f"{ONE}.base_layer.weight",)),
            "1 of its 11 weights is missing .* 1 of the weights in its files fits nowhere "
            ".*LoRA .*merge_and_unload",
        ),
        (LoadingReport(NAMES, superfluous=(f"{ONE}.lora_A.weight",)), "LoRA"),
        (LoadingReport(NAMES, superfluous=(f"{ONE}.lora_B.default.weight",)), "LoRA"),
        (LoadingReport(NAMES, superfluous=(f"{ONE}.weight_scale_inv",)), "are quantized"),
        (
            LoadingReport(NAMES, superfluous=(f"{ONE}.bias",)),
            "1 of the weights in its files fits nowhere .* another model",
        ),
        (
            LoadingReport(NAMES, superfluous=("model.layers.4.q_proj.weight",)),
            "config.json is that of another model",
        ),
        (
            LoadingReport(NAMES, mismatched=(Shapes("lm_head.weight", (8, 4), (9, 4)),)),
            r"1 of its 11 weights is of another shape \(lm_head.weight: \(8, 4\) in the files, "
            r"\(9, 4\) by config.json\): .* size or vocabulary",
        ),
        (
            LoadingReport(NAMES, tuple(NAMES), tuple(f"actor.{name}" for name in NAMES)),
            "11 of its 11 .* its names begin with actor.,",
        ),
        (
            LoadingReport(NAMES, tuple(NAMES), ("actor.vision.a.weight", "actor.text.b.weight")),
            "its names begin with actor.,",  # As files call modules that the model has elsewhere
        ),
        (
            LoadingReport(NAMES, tuple(NAMES), ("encoder.a.weight", "decoder.b.weight")),
            "another architecture",
        ),
        (
            LoadingReport(NAMES, mismatched=(Shapes("lm_head.weight", (0,), (9, 4)),)),
            r"\(0,\) in the files.*: DeepSpeed ZeRO-3 saved placeholders.* zero_to_fp32.py",
        ),
        *(
            (
                LoadingReport(NAMES, tuple(NAMES), tuple(f"{prefix}{name}" for name in NAMES)),
                f"11 of the weights in its files fit nowhere .*: .*{mend}",
            )
            for prefix, mend in (
                ("module.", "model.module.save_pretrained"),
                ("_orig_mod.", "model._orig_mod.save_pretrained"),
                ("base_model.model.", "merge_and_unload"),
                ("_fsdp_wrapped_module.", "get_state_dict"),
                ("model._checkpoint_wrapped_module.", "get_state_dict"),
            )
        ),
    ],
)
def test_all_else_is_refused_with_cause_and_remedy(report: LoadingReport, said: str) -> None:
    with pytest.raises(ValueError, match=f"^ft: .*{said}"):
        checked_loading("ft", report)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model.layers.", "model.text.layers."),
        ("model.layers.", "layers."),
        ("model.visual.", "visual."),
        ("model.visual.", "vision_tower."),
        ("model.", "net.inner."),
    ],
)
def test_weights_under_other_names_are_told_from_missing_ones(old: str, new: str) -> None:
    lost = tuple(sorted(name for name in NAMES if name.startswith(old)))
    there = tuple(name.replace(old, new, 1) for name in lost)
    said = r"\d+ of the missing are there under other names, .*transformers_version"
    with pytest.raises(ValueError, match=f"^ft: {len(lost)} of its 11 weights .*: {said}"):
        checked_loading("ft", LoadingReport(NAMES, lost, there))
    with pytest.raises(ValueError, match="a part of the model was not saved"):
        checked_loading("ft", LoadingReport(NAMES, lost, ("audio.conv.weight",)))


@pytest.mark.parametrize("attribute", ["_orig_mod", "module"])
def test_a_wrapper_around_parts_is_taken_off_them(attribute: str) -> None:
    def said(*parts: str) -> str:
        lost = tuple(name for name in sorted(NAMES) if name.startswith(parts))
        there = []
        for name in lost:
            (part,) = (each for each in parts if name.startswith(each))
            there.append(f"{part}.{attribute}{name.removeprefix(part)}")
        return judge_loading(LoadingReport(NAMES, lost, tuple(there))).refusal or ""

    visual = f"model.model.visual = model.model.visual.{attribute}"
    assert said("model.visual").endswith(f"{visual}, then model.save_pretrained(FOLDER)")
    assert " for each of the 2 parts, then" in said("model.layers.0", "model.layers.1")


# --- adapters -------------------------------------------------------------------------------------

LORA_OF = "base_model.model.model.layers.{}.q_proj.lora_{}.weight"
OWN = {LORA_OF.format(at, part): (8, 4) for at in range(3) for part in "AB"}
OF_BASE = frozenset({"base_model.model.model.layers.0.q_proj", "base_model.model.lm_head"})


def of_adapter(stored: dict[str, tuple[int, ...]]) -> LoadingReport:
    """Return the report on a file of these tensors, as peft finds them."""
    lacking = [name for name, shape in OWN.items() if stored.get(name) != shape]
    return adapters_report(lacking, sorted(stored.keys() - OWN.keys()), OWN, stored, OF_BASE)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (
            {name: shape for name, shape in OWN.items() if ".1.q_proj.lora_B" not in name},
            "1 of its 6 weights is missing .*: a part of the adapter was not saved",
        ),
        (
            {name: shape for name, shape in OWN.items() if ".2." not in name},
            "2 of its 6 weights are missing .*: a part of the adapter .* base has more layers",
        ),
        ({}, "6 of its 6 weights are missing .*: nothing of the adapter was saved"),
        (
            {f"module.{name}": shape for name, shape in OWN.items()},
            "DistributedDataParallel .* model.module.save_pretrained",
        ),
        (
            {f"_orig_mod.{name}": shape for name, shape in OWN.items()},
            "torch.compile .* model._orig_mod.save_pretrained",
        ),
        (
            dict.fromkeys(OWN, (16, 4)),
            r"^ft: 6 of its 6 weights are of another shape .*\(16, 4\) in the files, \(8, 4\) by "
            "adapter_config.json.* another base, or its settings are another's",
        ),
        (dict.fromkeys(OWN, (0,)), "6 of its 6 .* another shape .* ZeRO-3"),
        ({**OWN, LORA_OF.format(9, "A"): (8, 4)}, "1 of .* fits nowhere .* another base"),
        ({**OWN, "base_model.model.lm_head.weight": (8, 4)}, "1 of .* fits nowhere"),
        ({name.replace("q_proj", "qkv"): shape for name, shape in OWN.items()}, "another base"),
    ],
)
def test_adapters_are_refused_with_their_own_causes(
    stored: dict[str, tuple[int, ...]], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        checked_loading("ft", of_adapter(stored))


@pytest.mark.parametrize("head", ["v_head.weight", "v_head.summary.weight", "score.weight"])
def test_a_head_beside_an_adapter_passes_with_a_word(head: str) -> None:
    name = f"base_model.model.{head}"
    assert checked_loading("ft", of_adapter(OWN)) == "all there"
    assert checked_loading("ft", of_adapter({**OWN, name: (1, 4)})) == f"all there; ignored: {name}"


def test_a_server_that_transformers_loaded_is_judged_by_its_log() -> None:
    table = (
        "\x1b[1mQwen3VLForConditionalGeneration LOAD REPORT\x1b[0m from: m\n"
        "Key                     | Status     |  | \n"
        "------------------------+------------+--+-\n"
        "model.layers.{0, 1}.x   | MISSING    | \n"
        "module.model.layers.0.x | UNEXPECTED |  | \n"
    )
    refusal = judge_loading(report_of_log(table)).refusal or ""
    assert refusal.startswith("weights are missing (model.layers.{0, 1}.x) and weights fit nowhere")
    assert "model.module.save_pretrained" in refusal
    old = "Some weights of M were not initialized from m and are newly initialized: ['a.b', 'c.d']"
    assert "(a.b, c.d)" in (judge_loading(report_of_log(old)).refusal or "")
    head = "v_head.weight | UNEXPECTED | | \n"
    assert judge_loading(report_of_log(f"INFO: Uvicorn running\n{head}")).refusal is None


# --- what files tell before anything is loaded ----------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def refused(folder: Path, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        refuse_missing(str(folder))


def test_shards_that_an_index_lists_must_be_there(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    names = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    write_index(folder, *names)
    write_weights(folder / names[0], "a")
    refused(folder, rf"2 of the 3 shards that it lists are missing \({names[1]}, {names[2]}\)\. Co")
    write_weights(folder / names[1], "b")
    refused(folder, rf"1 of the 3 shards that it lists is missing \({names[2]}\)")
    write_weights(folder / names[2], "c")
    refuse_missing(str(folder))
    (folder / names[2]).write_bytes((folder / names[2]).read_bytes()[:-1])
    refused(folder, f"{names[2]}: .*Copy or save it again")
    index.write_text("{")
    refused(folder, r"index.json: no index of shards \(")
    write_weights(folder / "model.safetensors", "a")
    refuse_missing(str(folder))  # What is loaded first is whole


def test_files_that_are_cut_off_are_refused(folder: Path) -> None:
    single = folder / "model.safetensors"
    write_weights(single, "a")
    single.write_bytes(single.read_bytes() + b"1")
    refused(folder, r"model.safetensors: it has \d+ bytes; its header says \d+\. Copy or save")
    single.write_bytes(b"")
    refused(folder, "model.safetensors: cut off, or no safetensors file")
    single.unlink()
    (folder / "pytorch_model.bin").touch()
    refused(folder, "pytorch_model.bin: it is empty")
    (folder / "pytorch_model.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    refused(folder, r"pytorch_model.bin: a pointer of Git LFS, .* \(git lfs pull\)")
    (folder / "pytorch_model.bin").write_bytes(b"<html>")
    refused(folder, "pytorch_model.bin: no file that torch.save writes")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02")
    refuse_missing(str(folder))  # As torch wrote before 1.6
    with ZipFile(folder / "pytorch_model.bin", "w") as parts:
        parts.writestr("archive/data.pkl", b"1" * 99)
    refuse_missing(str(folder))
    whole = (folder / "pytorch_model.bin").read_bytes()
    for length in range(2, len(whole) - 22, 7):
        (folder / "pytorch_model.bin").write_bytes(whole[:length])
        refused(folder, r"pytorch_model.bin: it is cut off\. Copy or save it again")
    (folder / "pytorch_model.bin").unlink()
    single.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    refused(folder, r"model.safetensors: a pointer of Git LFS, .* \(git lfs pull\)")


@pytest.mark.parametrize("dtype", ["I8", "U8", "I16", "I32", "I64", "U32"])
@pytest.mark.parametrize(
    "name",
    [
        f"{ONE}.weight",
        "model.layers.0.mlp.experts.gate_up_proj",
        "model.visual.pos_embed",
        "v.cls_token",
        "attn.in_proj_weight",
    ],
)
def test_integers_need_settings_of_their_quantization(name: str, dtype: str, folder: Path) -> None:
    config = folder / "config.json"
    write_weights(folder / "model.safetensors", name, dtype=dtype)
    for values in ({}, {"quantization_config": None}, {"text_config": {"dtype": "int8"}}):
        config.write_text(json.dumps(values))
        refused(
            folder, rf"model.safetensors: 1 weight of integers \({name}: {dtype}\), and no quan"
        )
    quantized = {"quantization_config": {"quant_method": "gptq"}}
    for values in (quantized, {"text_config": quantized}):
        config.write_text(json.dumps(values))
        refuse_missing(str(folder))
    config.write_text("{}")
    (folder / "quantize_config.json").write_text("{}")
    refuse_missing(str(folder))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "I64") for name in ("a.position_ids", "bn.num_batches_tracked", "token_type_ids")),
        ("a.relative_position_index", "I32"),
        *(("attn.bias", dtype) for dtype in ("U8", "BOOL")),
        *((f"{ONE}.weight", dtype) for dtype in ("F16", "BF16", "F8_E4M3", "F64")),
    ],
)
def test_buffers_of_integers_pass(name: str, dtype: str, folder: Path) -> None:
    write_weights(folder / "model.safetensors", name, dtype=dtype)
    refuse_missing(str(folder))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), "no weights: neither model.safetensors nor .*; it has only other files. Save"),
        (("model.pth",), "no weights: .*; model.pth is not loaded. Save the model"),
        (
            ("pytorch_model.ckpt", "b.gguf"),
            "no weights: .*; b.gguf, pytorch_model.ckpt is not loaded",
        ),
        (
            ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"),
            "2 shards .* without their index: copy model.safetensors.index.json into",
        ),
        (("pytorch_model-00002-of-00002.bin",), "1 shard .*: copy pytorch_model.bin.index.json"),
    ],
)
def test_folders_without_weights_are_refused(
    files: tuple[str, ...], said: str, folder: Path, tmp_path: Path
) -> None:
    for name in files:
        (folder / name).write_bytes(b"\x80")
    with pytest.raises(ValueError, match=f"^{folder}: {said}"):
        refuse_unloadable(str(folder))
    (folder / "config.json").write_text('{"transformers_weights": "mine.safetensors"}')
    refuse_unloadable(str(folder))
    (folder / "config.json").write_text("{}")
    adapter = write_adapter(tmp_path / "ft", folder)
    with pytest.raises(ValueError, match=f"^{folder}: {said}"):
        refuse_unloadable(str(adapter))
    write_weights(folder / "model.safetensors", "a")
    refuse_unloadable(str(folder))
    refuse_unloadable(str(adapter))


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "base_model.model.", "_fsdp_wrapped_module."]
)
def test_names_that_all_begin_with_a_wrapper_are_refused(prefix: str, folder: Path) -> None:
    names = [f"{prefix}{name}" for name in sorted(NAMES)]
    write_weights(folder / "model.safetensors", *names)
    refused(folder, f"the names of all 11 weights begin with {prefix}: .*save_pretrained")
    write_weights(folder / "model.safetensors", *names, "lm_head.weight")
    refuse_missing(str(folder))  # The loading is judged


def test_files_of_adapters_and_their_bases_are_looked_at(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}")
    adapter = write_adapter(tmp_path / "ft", base)
    refuse_missing(str(adapter))
    write_weights(base / "model.safetensors", "module.a")
    refused(adapter, "base: the names of all 1 weights begin with module.")
    (base / "model.safetensors").unlink()
    (adapter / "adapter_model.safetensors").write_bytes(b"1")
    refused(adapter, "adapter_model.safetensors: cut off")


def test_weights_that_are_there_twice_are_refused(folder: Path) -> None:
    shards = [f"model-0000{at}-of-00003.safetensors" for at in (1, 2, 3)]
    write_index(folder, *shards)
    for at, shard in enumerate(shards):
        write_weights(folder / shard, f"{at}.weight")
    refuse_missing(str(folder))
    write_weights(folder / shards[2], "2.weight", "0.weight")
    refused(folder, rf"{shards[2]}: 1 weight \(0.weight\) in {shards[0]}, too, .*Copy all shards")


@pytest.mark.parametrize("end", ["safetensors", "bin"])
def test_shards_beside_a_single_file_are_refused(end: str, folder: Path) -> None:
    name = "model" if end == "safetensors" else "pytorch_model"
    single = folder / f"{name}.{end}"
    shards = [f"{name}-0000{at}-of-00002.{end}" for at in (1, 2)]
    index = folder / f"{single.name}.index.json"

    def lists(*files: str) -> None:
        index.write_text(json.dumps({"weight_map": {str(i): at for i, at in enumerate(files)}}))

    for at, file in enumerate([single.name, *shards]):
        write = folder / file
        if end == "bin":
            write.write_bytes(b"\x80\x02")
        else:
            write_weights(write, f"{at}.weight")
    refuse_missing(str(folder))
    lists(single.name)  # Some publish an index of one file
    refuse_missing(str(folder))
    lists(*shards)
    refused(
        folder, rf"{single.name}: {index.name} lists 2 other files that are there, too: .*Delete"
    )
    (folder / shards[1]).unlink()
    refuse_missing(str(folder))  # Only one of both is whole


# --- heads that settings tie ----------------------------------------------------------------------

TIED = {"tie_word_embeddings": True}
BOTH = ("lm_head.weight", "model.embed_tokens.weight")


@pytest.mark.parametrize("length", [4, 1 << 21])
@pytest.mark.parametrize(
    "names", [BOTH, ("language_model.lm_head.weight", "transformer.wte.weight")]
)
@pytest.mark.parametrize(
    ("settings", "refuses"),
    [
        (TIED, True),
        ({"text_config": TIED}, True),
        ({**TIED, "text_config": TIED}, True),
        ({**TIED, "text_config": {"tie_word_embeddings": False}}, False),
        ({"tie_word_embeddings": False}, False),
        ({}, False),  # The class may; the loading is judged
    ],
)
def test_a_head_unlike_what_it_is_tied_to_is_refused(
    settings: object, refuses: bool, names: tuple[str, str], length: int, folder: Path
) -> None:
    (folder / "config.json").write_text(json.dumps(settings))
    head, embedding = names
    weights = folder / "model.safetensors"
    equal = bytes(length)
    write_numbers(weights, {head: equal, "other": b"1234", embedding: equal})
    refuse_missing(str(folder))
    for unlike in (equal[:-1] + b"1", b"1" + equal[1:]):
        write_numbers(weights, {head: unlike, "other": b"1234", embedding: equal})
        if refuses:
            refused(folder, f"{head} has other values than {embedding}, .*write .*: false wherever")
        else:
            refuse_missing(str(folder))
    write_numbers(weights, {head: unlike})
    refuse_missing(str(folder))


def test_tied_weights_in_several_shards_and_bases_are_compared(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text(json.dumps(TIED))
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    write_index(base, *shards)
    for shard, name, value in zip(shards, BOTH, (b"1234", b"1235"), strict=True):
        write_numbers(base / shard, {name: value})
    refused(base, f"{shards[0]}: lm_head.weight has other values")
    adapter = write_adapter(tmp_path / "ft", base)
    refused(adapter, f"{shards[0]}: lm_head.weight has other values")


def test_a_loader_that_finds_them_untied_is_believed() -> None:
    report = LoadingReport(NAMES, untied=(BOTH,))
    assert judge_loading(report) == (None, ())
    why = judge_loading(report, says_tied=True).refusal or ""
    assert why.startswith("lm_head.weight has other values than model.embed_tokens.weight")


# --- who asks -------------------------------------------------------------------------------------

LOADERS = {"from_pretrained", "load_state_dict", "load_adapter", "load_checkpoint_and_dispatch"}
WITHOUT_WEIGHTS = ("Processor", "Config", "Tokenizer")


def unjudged(path: Path) -> list[str]:
    """Return the places of a module that load weights in a function that asks for no verdict."""
    text = path.read_text(encoding="utf-8")
    if not any(loader in text for loader in LOADERS):
        return []
    tree = ast.parse(text)
    asking: set[ast.AST] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            nodes = [*ast.walk(function)]
            names = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
            asking |= set(nodes) if "checked_loading" in names else set()
    return [
        f"{path.name}:{node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in LOADERS
        and not ast.unparse(node.value).endswith(WITHOUT_WEIGHTS)
        and node not in asking
    ]


def test_every_loading_in_the_package_is_judged(tmp_path: Path) -> None:
    package = ROOT / "vlmeval_findit"
    places = [place for path in package.rglob("*.py") for place in unjudged(path)]
    assert places == []
    fault = tmp_path / "fault.py"
    fault.write_text("def f(hf):\n    return hf.AutoModel.from_pretrained('a')\n")
    assert unjudged(fault) == ["fault.py:2"]
