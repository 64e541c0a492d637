"""FindIt's datasets and models inside VLMEvalKit, in this process: the contract, without a run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from grids import grid

from vlmeval_findit.benchmarks.findit import DATASETS
from vlmeval_findit.boxes import SpaceError
from vlmeval_findit.protocol import DatasetNameError
from vlmeval_findit.storage import RunFiles

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"


def test_registering_twice_registers_once_and_shadows_nothing(host) -> None:
    from vlmeval_findit.host import register, register_models

    classes = list(host.dataset.DATASET_CLASSES)
    names = list(host.dataset.SUPPORTED_DATASETS)
    register()
    assert host.dataset.DATASET_CLASSES == classes
    assert host.dataset.SUPPORTED_DATASETS == names
    fake = SimpleNamespace(supported_VLM={"FullImage": "theirs"})
    register_models(fake)
    assert fake.supported_VLM["FullImage"] == "theirs"
    assert fake.supported_VLM.keys() <= host.config.supported_VLM.keys()


def test_every_variant_belongs_to_a_single_class(host) -> None:
    from vlmeval_findit.host import dataset_classes

    supported = [cls.supported_datasets() for cls in dataset_classes()]
    for variant in list(grid())[::37]:
        assert sum(variant.name in names for names in supported) == 1
    listed = [name for names in supported for name in names]
    assert len(listed) == len(set(listed)) >= len(DATASETS)
    assert set(listed) <= set(host.dataset.SUPPORTED_DATASETS)
    assert not any("MMBench_DEV_EN" in names or None in names for names in supported)


def test_a_name_is_looked_for_without_listing_others(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VLMEvalKit asks each class for a name several times in each run."""
    from vlmeval_findit.host import dataset_classes

    def listed(*_: object) -> None:
        raise AssertionError("names are listed")

    for cls in dataset_classes():
        monkeypatch.setattr(type(cls.benchmark), "variant_names", listed)
    for name, classes in ((DATA, 1), ("MMBench_DEV_EN", 0)):
        assert sum(name in cls.supported_datasets() for cls in dataset_classes()) == classes


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        (DATA, "FindItObjectDetection"),
        ("FindIt_Demo_refexp_xyxy_json_bbox_2d_nested", "FindItReferringExpression"),
        ("FindIt_Demo_insdet_cxcywh_json_cx-formula", "FindItInstanceDetection"),
        ("FindIt_Demo_video_f4_xyxy_text", "FindItVideoDetection"),
    ],
)
def test_the_host_builds_each_family(host, name: str, cls: str) -> None:
    dataset = host.dataset.build_dataset(name)
    assert type(dataset) is getattr(host.dataset, cls)
    assert dataset.dataset_name == name
    assert dataset.force_use_dataset_prompt
    assert host.dataset.DATASET_TYPE(name) == "FindIt"
    assert host.dataset.DATASET_MODALITY(name) == "IMAGE"
    assert "boxes" not in dataset.data, "ground truth has no place in prediction files"
    for row in range(len(dataset)):
        message = dataset.build_prompt(dataset.data.iloc[row])
        assert {part["type"] for part in message} == {"image", "text"}
        images = [part["value"] for part in message if part["type"] == "image"]
        assert all(Path(image).is_file() for image in images)
        assert message[-1]["type"] == "text"
        assert dataset.dump_image(dataset.data.iloc[row]) == images


def test_a_class_refuses_the_variants_of_another(host) -> None:
    with pytest.raises(DatasetNameError, match="FindItVideoDetection is not its class"):
        host.dataset.FindItVideoDetection(DATA)


def test_evaluate_joins_with_the_table_by_index(host, tmp_path: Path) -> None:
    """Rows in any order, a failed call, a reply that is no answer: each is what it is."""
    of_host = host.dataset.build_dataset(DATA)
    dataset = of_host.loaded
    rows = []
    for query in reversed(dataset.queries.values()):
        boxes = [
            [1000 * x / s for x, s in zip(box, (query.width, query.height) * 2, strict=True)]
            for box in query.truth.boxes
        ]
        rows.append({"index": query.index, "prediction": json.dumps([{"bbox": b} for b in boxes])})
    rows[0]["prediction"] = "Failed to obtain answer via API."
    rows[1]["prediction"] = "I see nothing."
    path = tmp_path / f"SomeModel_{DATA}.json"
    path.write_text(json.dumps(rows))
    result = of_host.evaluate(str(path), space="grid1000", nproc=4, verbose=False)
    assert result["Precision"] == 100
    assert result["failed calls"] == 1
    assert result["scored"] == 19
    assert result["Adherence"] == pytest.approx(100 * 17 / 18, abs=1e-3)
    files = RunFiles(path)
    whole = files.details.read_bytes()
    files.details.unlink()
    assert of_host.evaluate(str(path), space="grid1000", nproc=4, verbose=False) == result
    assert files.details.read_bytes() == whole, "provenance alone is no score"
    assert of_host.report_primary_metric(result) == {"F1@0.5": result["F1@0.5"]}
    assert of_host.report_judge_err(path, total_samples=19) == {"failed": 0, "total": 19}


def test_the_space_of_a_config_file_reaches_the_score(host, tmp_path: Path) -> None:
    path = tmp_path / f"SomeModel_{DATA}.json"
    path.write_text(json.dumps([{"index": 0, "prediction": '[{"bbox": [0, 0, 1, 1]}]'}]))
    with pytest.raises(SpaceError, match=r"run_findit\.py score --space SPACE"):
        host.dataset.build_dataset(DATA).evaluate(str(path))
    dataset = host.dataset.FindItObjectDetection(dataset=DATA, space="unit")
    dataset.evaluate(str(path))
    detail = json.loads(path.with_name(f"{path.stem}_details.jsonl").read_text())
    query = dataset.loaded.queries[0]
    assert detail["boxes"] == [[0, 0, query.width, query.height]]


def test_stock_entries_are_scored_within_their_bounds(host, tmp_path: Path) -> None:
    """VLMEvalKit's Qwen2.5-VL resizes within other bounds than the paper's: those are recorded."""
    from vlmeval_findit.host import prepare_run

    model = "Qwen2.5-VL-7B-Instruct"
    run = prepare_run(host.dataset.FindItObjectDetection(DATA), model, tmp_path / model)
    keywords = host.config.supported_VLM[model].keywords
    bounds = {name: keywords[name] for name in ("min_pixels", "max_pixels")}
    assert run.output.identity.space == {"kind": "smart_resize", **bounds}
    who = run.output.identity.answering
    assert (who.kind, who.checkpoint) == ("Qwen2VLChat", keywords["model_path"])
    assert who.in_vlmevalkit
    assert not list(tmp_path.iterdir()), "looking leaves nothing"


def test_eval_mode_needs_no_images(host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={tmp_path / 'nowhere'}")
    with pytest.raises(ValueError, match=r"Set images\.Demo in configs/datasets\.yaml"):
        host.dataset.FindItObjectDetection(DATA, mode="all")
    host.dataset.FindItObjectDetection(DATA, mode="eval")
