"""A sweep's file: what it says, and how an invalid one is refused."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from host_runs import require_host
from paths import ROOT

from vlmeval_findit.benchmarks.findit import (
    HOST_CLASSES,
    formats,
    parse,
    release_tables,
    variants,
)
from vlmeval_findit.boxes import BOX_KEYS, JSON_KEYS
from vlmeval_findit.core import ConfigError
from vlmeval_findit.engine import Asking, AtServer
from vlmeval_findit.models import MODEL_KEYS, ModelEntry, find_model
from vlmeval_findit.sweeps import SweepFile, parse_sweep, read_sweep

CONFIGS = ROOT / "configs"
GOOD = "models: FullImage\ndatasets: Demo\n"
MODELS = "datasets: Demo\nmodels: "

# fmt: off
BAD = {
    "": "line 1: the file is empty",
    "models: [A": "line 1: not YAML: expected ',' or ']'",
    "- FullImage": "line 1: should be a mapping with the keys models, ",
    "models: FullImage": "line 1: datasets is missing",
    GOOD + "models: FullImage": "line 3: duplicate key models",
    "models:\n - FullImage\n - FulImage\ndatasets: Demo":
        "line 3: unknown model 'FulImage': did you mean FullImage?",
    MODELS + "[{name: Mine}]": "(other models need `like` or `space`)",
    MODELS + "[{name: Mine, space: gird1000}]":
        "line 2: unknown coordinate space 'gird1000': did you mean grid1000?",
    MODELS + "[{name: Mine, space: {kind: smart_resize}}]":
        "line 2: smart_resize needs the min_pixels",
    MODELS + "[Qwen/Qwen3-VL-8B-Instruct]": "should have no slash",
    "models: [FullImage, FullImage]\ndatasets: Demo": "line 1: two models are called FullImage",
    "models: FullImage\ndatasets:\n  - Demo\n  - Pascl\n":
        "line 4: unknown dataset 'Pascl': did you mean Pascal?",
    "models: FullImage\ndatasets: []": "line 2: the list is empty",
    GOOD + "representations:\n  - xyxy\n  - xyxx\n":
        "line 5: unknown representation 'xyxx': did you mean xyxy?",
    GOOD + "marks: [none, box]": "marks: no cell of this sweep has box",
    GOOD + "keys: [bbox, class_name]": "line 3: keys: no cell of this sweep has class_name",
    GOOD + "representations: all-labelled\nstructures: decomposed\noutputs: json":
        "line 2: no cell of Demo fits the axes",
    GOOD + "frames: 0": "line 3: frames: 0 should be a whole number, at least 1",
    GOOD + "stages: [{outputs: all}]\nkeys: all": "line 4: write keys in each stage",
    GOOD + "stages:\n- representations: winner": "line 4: winner is the best format of the",
    GOOD + "representations: winner": "there is none",
    MODELS + "{name: Mine, space: unit}\nmax_usd: 0":
        "line 3: max_usd: 0 should be US dollars, more than 0",
    MODELS + "{name: Mine, space: unit, headers: {api-key: 12345678}}":
        "line 2: api-key: should be a text",
    MODELS + "[{name: GPT-5.4, provider: opnai}]":
        "line 2: unknown provider 'opnai': did you mean openai?",
    MODELS + "[{name: GPT-5.4, provider: openai, checkpoint: a/b}]":
        "line 2: a checkpoint is of a local model",
    MODELS + "[{name: FullImage, thought_marks: <plan>}]":
        "line 2: thought_marks: '<plan>' is not a pair of marks, as '<plan> </plan>'",
    MODELS + "[{name: FullImage, thought_marks: 3}]": "line 2: thought_marks: 3 is not a pair of",
    MODELS + "[{name: GPT-5.4, prices: 3}]":
        "line 2: prices 3: should be IN,OUT in US dollars per million tokens",
    GOOD + "race: true\nrepresentations: xyxy\noutputs: json":
        "a race needs several formats",
    "models: FullImage\nrace: true\ndatasets: [FindIt_Demo_xyxy_text, VPBench_Stage1]":
        "line 2: FindIt and VP-Bench cannot race each other",
    MODELS + "[{name: FullImage, line: 3}]": "line 2: unknown key 'line'",
    "models:\n- name: FullImage\n\n  seting:\n    a: 1\ndatasets: Demo":
        "line 4: unknown key 'seting': did you mean settings?",
    MODELS + "[{name: FullImage, temprature: 1}]":
        "line 2: unknown key 'temprature': did you mean temperature?",
    MODELS + "!!python/object:os.system {}": "line 2: could not determine a constructor",
    "models: Qwen3-VL\ndatasets: [Pascal, RefL4Full_val]":
        "line 2: datasets of several benchmarks have no common best format",
    "models: FullImage\ndatasets: [Demo, FindIt_Demo_xyx_json]": "unknown representation 'xyx'",
    "models: FullImage\ndatasets: FindIt_Demo_xyxy_json\nstages: [{keys: all}, {outputs: winner}]":
        "line 2: winner: `datasets` names no table",
}
# fmt: on


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_a_bad_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_sweep(text, "sweep.yaml")
    assert message in str(refused.value)
    assert str(refused.value).startswith("sweep.yaml, line ")
    assert "12345678" not in str(refused.value), "a header may be a key"


KEYS_OF_THE_SWEEP = [key.name for key in fields(SweepFile)]


@pytest.mark.parametrize("key", MODEL_KEYS)
def test_a_key_of_a_model_is_sent_into_it(key: str) -> None:
    with pytest.raises(ConfigError, match=f"line 3: write `{key}` in each model"):
        parse_sweep(f"{GOOD}{key}: unit")


@pytest.mark.parametrize("key", KEYS_OF_THE_SWEEP)
def test_a_key_of_the_sweep_leaves_the_model(key: str) -> None:
    with pytest.raises(ConfigError, match=f"line 2: write `{key}` next to `models`"):
        parse_sweep(f"{MODELS}[{{name: FullImage, {key}: 3}}]")


def test_a_single_value_is_a_list_and_all_means_all() -> None:
    sweep = parse_sweep("models: FullImage\ndatasets: all\nkeys: all\nlimit: 5\nwork_dir: w")
    assert sweep.models == (ModelEntry("FullImage"),)
    assert sweep.tables == release_tables()
    assert len(release_tables()) == 20
    assert sweep.stages[0].keys == JSON_KEYS
    named = variants(sweep.tables, formats(sweep.stages[0]))
    assert {cell.key for cell in named} == {*BOX_KEYS}
    assert str(sweep.journal) == "w/calls.jsonl"
    assert sweep.limit == 5


def test_a_model_that_nobody_knows_may_be_asked_for_letters() -> None:
    """The coordinate space of an answer matters where the answer is boxes."""
    assert parse_sweep("models: my-own\ndatasets: VPBench_Stage1").models[0].name == "my-own"


HTTP = "datasets: Demo\nmodels: {name: Mine, space: unit"


def test_headers_and_limits_of_models_over_http() -> None:
    more = "max_usd: 2.5\ninference: {timeout: 90}"
    sweep = parse_sweep(f"{HTTP}, headers: {{api-key: of-my-own}}}}\n{more}")
    assert (sweep.max_usd, sweep.inference.timeout) == (2.5, 90.0)
    (entry,) = sweep.models
    assert entry.headers == {"api-key": "of-my-own"}
    assert "of-my-own" not in repr(sweep)
    asked = replace(entry, base_url="http://a/v1,http://b/v1")
    servers = AtServer(asked, Asking(headers=["x-a: 1"]))
    servers.check()
    assert "of-my-own" not in str(servers.key(parse("FindIt_Pascal_xyxy_json"))), (
        "it is part of no key and no journal"
    )
    for endpoint in servers.servers():
        assert endpoint.headers == {"x-a": "1", "api-key": "of-my-own"}


def test_limits_of_a_served_model_are_refused_early() -> None:
    (entry,) = parse_sweep(f"{HTTP}, settings: {{max_tokens: 0}}}}").models
    with pytest.raises(ValueError, match="line 2: Mine: max_tokens: 0 should be a whole number"):
        AtServer(replace(entry, base_url="http://a/v1")).check()
    with pytest.raises(ValueError, match="max_usd is of the whole sweep"):
        parse_sweep(f"{HTTP}, settings: {{max_usd: 3}}}}")


# --- what ships -----------------------------------------------------------------------------------


def test_shipped_files_are_valid() -> None:
    """The paper's grid has every model, once, and every table."""
    sweeps = {name: read_sweep(CONFIGS / f"{name}.yaml") for name in ("paper_grid", "smoke")}
    for sweep in sweeps.values():
        rows = [row for entry in sweep.models if (row := find_model(entry.name))]
        assert len({row.name for row in rows}) == len(sweep.models)
    assert len(sweeps["paper_grid"].models) == 12
    assert sweeps["paper_grid"].tables == release_tables()


@pytest.mark.slow
@pytest.mark.host
def test_the_classes_of_the_datasets_are_the_hosts() -> None:
    require_host()
    from vlmeval_findit.host import register

    register()
    from vlmeval_findit.host import dataset_classes

    assert {*HOST_CLASSES.values()} <= {cls.__name__ for cls in dataset_classes()}
