"""Names of variants: the grammar, its inverse, and what a wrong name is told."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from custom_data import data_folder
from grids import grid
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks import is_question
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.findit_datasets import DATASETS, Family
from vlmeval_findit.benchmarks.findit.variant import (
    DECODINGS,
    MARKS,
    Variant,
    VariantError,
    format_problem,
)
from vlmeval_findit.boxes.representation import KEYS, OUTPUTS, REPRESENTATIONS, STRUCTURES
from vlmeval_findit.core.folders import CustomDataset, custom_datasets_file

GRID = list(grid(marks=(None, *MARKS)))
HELD = list(grid(decodings=DECODINGS))


def test_the_grid_has_unique_names_that_parse_back() -> None:
    assert len(GRID) > 10_000
    assert len({v.name for v in GRID}) == len(GRID)
    assert [v for v in GRID if parse(v.name) != v] == []


def test_the_grid_of_one_dataset() -> None:
    marks = (None, *MARKS)
    names = [v.name for v in grid([DATASETS["SVG"]], marks)]
    # 8 representations as text; as JSON 4 keys, each per box or nested; 5 can be decomposed; and
    # the two centre experiments of cxcywh double and triple its 1 + 8 + 1 cells.
    cells = 8 + 8 * 4 * 2 + 5 + 2 * (1 + 8 + 1)
    assert len(names) == cells
    assert len(list(grid([DATASETS["HRInsDet_easy"]], marks))) == cells * (1 + 5)
    assert len(list(grid([DATASETS["RoboTools"]], marks))) == 64 * cells * (1 + 5)


def test_every_json_format_with_names_has_a_constrained_twin() -> None:
    free = [v for v in grid() if v.output == "json" and v.representation != "unconstrained"]
    assert [replace(v, decoding=None) for v in HELD] == free
    assert [v for v in HELD if parse(v.name) != v] == []
    assert {v.name.rpartition("_")[2] for v in HELD} == {"constrained"}
    assert all(v.format_cell[1].endswith(" constrained") for v in HELD)
    assert all(v.reply_schema is None for v in free[:100])


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("FindIt_RefCOCO_xyxy_json", Variant("RefCOCO", "xyxy", "json")),
        ("FindIt_Pascal_multilabel_xyxy_json_class_name",
         Variant("Pascal", "xyxy", "json", key="class_name", multilabel=True)),
        ("FindIt_iGround_caption_f8_cxcywh_text_cx-formula",
         Variant("iGround", "cxcywh", "text", caption=True, frames=8, centre="formula")),
        ("FindIt_OpenImages_xyxy_json_bbox_2d_nested",
         Variant("OpenImages", "xyxy", "json", key="bbox_2d", structure="nested")),
        ("FindIt_RoboTools_f64_all-labelled_text",
         Variant("RoboTools", "all-labelled", "text", frames=64)),
        ("FindIt_Scenes_insdet_xyxy_json_bbox_2d_vp-box",
         Variant("Scenes_insdet", "xyxy", "json", key="bbox_2d", mark="box")),
        ("FindIt_RoboTools_f8_cxcywh_text_cx-formula_vp-oval",
         Variant("RoboTools", "cxcywh", "text", frames=8, centre="formula", mark="oval")),
        ("FindIt_RefCOCO_testA_all_text", Variant("RefCOCO_testA", "all", "text")),
        ("FindIt_RefCOCOplus_testB_yxhw_json_decomposed",
         Variant("RefCOCOplus_testB", "yxhw", "json", structure="decomposed")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_canonical_names(name: str, variant: Variant) -> None:
    assert parse(name) == variant
    assert variant.name == name
    assert is_question(name)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("FindIt_RefCOCO_xyxy_json_bbox_per_box", "FindIt_RefCOCO_xyxy_json"),
        ("FindIt_RefCOCO_xyxy_json_bbox_nested", "FindIt_RefCOCO_xyxy_json_nested"),
        ("FindIt_RefCOCO_xyxy_json_bbox_decomposed", "FindIt_RefCOCO_xyxy_json_decomposed"),
        ("FindIt_Pascal_f1_xyxy_text", "FindIt_Pascal_xyxy_text"),
        ("FindIt_iGround_xyxy_text", "FindIt_iGround_f8_xyxy_text"),
        ("FindIt_RoboTools_xyxy_json_bbox_vp-tag", "FindIt_RoboTools_f64_xyxy_json_vp-tag"),
    ],
)
def test_defaults_may_be_named(name: str, canonical: str) -> None:
    assert parse(name).name == canonical


@pytest.mark.parametrize(
    ("release_name", "canonical"),
    [
        ("FindIt_refcoco_testA_refexp_json_xyxy_bbox_2d_per_box",
         "FindIt_RefCOCO_testA_xyxy_json_bbox_2d"),
        ("FindIt_refcoco_test_refexp_text_xywh", "FindIt_RefCOCO_xywh_text"),
        ("FindIt_refcoco_plus_testB_refexp_text_xyxy", "FindIt_RefCOCOplus_testB_xyxy_text"),
        ("FindIt_pascal_multilabel_objdet_json_xyxy_class_name_nested",
         "FindIt_Pascal_multilabel_xyxy_json_class_name_nested"),
        ("FindIt_iground_objdet_video_text_xyxy", "FindIt_iGround_f8_xyxy_text"),
        ("FindIt_iground_objdet_video_text_xyxy_f4", "FindIt_iGround_f4_xyxy_text"),
        ("FindIt_iground_objdet_text_xyxy_f1", "FindIt_iGround_f1_xyxy_text"),
        ("FindIt_d3_refexp_all_json_cxcywh_bbox_per_box_cx-definitions",
         "FindIt_D3_cxcywh_json_cx-definitions"),
        ("FindIt_hr_insdet_hard_insdet_text_all-labelled",
         "FindIt_HRInsDet_hard_all-labelled_text"),
        ("FindIt_robotools_insdet_video_text_xyxy_f8_vp-point",
         "FindIt_RoboTools_f8_xyxy_text_vp-point"),
    ],
)  # fmt: skip
def test_names_of_the_release_are_aliases(release_name: str, canonical: str) -> None:
    assert parse(release_name).name == canonical


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("RefCOCO_xyxy_json", "a FindIt name begins with FindIt_"),
        ("FindIt_RefCOCOO_xyxy_json", "no dataset 'RefCOCOO': did you mean RefCOCO?"),
        ("FindIt_Scenes_minni_xyxy_json", "no dataset 'Scenes_minni': did you mean Scenes_mini?"),
        ("FindIt_Scenes_xyxz_json", "no representation 'xyxz': did you mean xyxy?"),
        ("FindIt_RefCOCO_xyxx_json", "no representation 'xyxx': did you mean xyxy?"),
        ("FindIt_RefCOCO", "the representation is missing (xyxy, xywh,"),
        ("FindIt_RefCOCO_xyxy", "the output format is missing (text or json)"),
        ("FindIt_RefCOCO_xyxy_jsn", "no output format 'jsn': did you mean json?"),
        ("FindIt_RefCOCO_xyxy_json_bbox2d", "'bbox2d': did you mean bbox_2d?"),
        ("FindIt_RefCOCO_xyxy_json_nested_bbox", "no JSON key or structure 'bbox'"),
        ("FindIt_RefCOCO_xyxy_text_bbox", "text replies have neither a JSON key nor a structure"),
        ("FindIt_RefCOCO_multilabel_xyxy_json", "RefCOCO has no multi-label queries"),
        ("FindIt_RefCOCO_caption_xyxy_json", "RefCOCO has no captions (there are in: iGround, Fl"),
        ("FindIt_RefCOCO_f2_xyxy_json", "RefCOCO has images, not frames"),
        ("FindIt_iGround_f9_xyxy_json", "iGround has 1 to 8 frames, not 9"),
        ("FindIt_iGround_f08_xyxy_json", "no representation 'f08'"),
        ("FindIt_iGround_f1\u0662_xyxy_json", "no representation"),
        ("FindIt_Pascal_xyxy_json_class_name", "class_name is for multi-label queries only"),
        ("FindIt_Pascal_all_json_decomposed", "all has no decomposed structure"),
        ("FindIt_Pascal_xyxy_json_bbox_2d_decomposed", "the decomposed structure has fixed keys"),
        ("FindIt_Pascal_xyxy_json_cx-formula", "cx-formula is for cxcywh only"),
        ("FindIt_Pascal_cxcywh_json_cx-formulas", "'formulas': did you mean formula?"),
        ("FindIt_Pascal_xyxy_json_vp-box", "vp-box is for instance detection only: Pascal shows"),
        ("FindIt_HRInsDet_hard_xyxy_json_vp-bxo", "no mark 'bxo': did you mean box?"),
        ("FindIt_HRInsDet_hard_xyxy_json_vp-box_vp-oval", "no JSON key or structure 'vp-oval'"),
        *(
            (
                f"FindIt_HRInsDet_hard_xyxy_json_vp-{shape}",
                f"vp-{shape} follows the outline of an object, and tables have its box alone (",
            )
            for shape in ("mask", "contour", "scribble")
        ),
        # Each part stands in one place only, and nothing is left over.
        ("FindIt_Pascal_xyxy_json_", "'_'"),
        ("FindIt_Pascal_json_xyxy", "no representation 'json'"),
        ("FindIt_", "no dataset ''"),
        ("", "a FindIt name begins with FindIt_"),
        ("FindIt_Pascal_point_json_bbox_2d", "bbox_2d is no key of point (there are: point, poin"),
        ("FindIt_Pascal_point_json_point_2d_decomposed", "has fixed keys"),
        ("FindIt_RefCOCO_xyxy_text_constrained", "text replies have no grammar"),
        ("FindIt_RefCOCO_unconstrained_json_constrained", "names no format"),
        # An alias whose family is not the dataset's, and an alias whose dataset has no references.
        ("FindIt_refcoco_test_objdet_json_xyxy", "no dataset"),
    ],
)
def test_a_wrong_name_is_told_why_and_what_is_nearest(name: str, says: str) -> None:
    assert not is_question(name)
    with pytest.raises(VariantError) as error:
        parse(name)
    assert str(error.value).startswith(f"{name}: ")
    assert says in str(error.value)


def test_an_unknown_name_is_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may have imported the dataset since."""
    data_folder(tmp_path, monkeypatch)
    name = "FindIt_Latecomer_xyxy_json"
    with pytest.raises(VariantError, match="no dataset 'Latecomer'"):
        parse(name)
    row = CustomDataset(str(tmp_path))
    custom_datasets_file().write_text(json.dumps({"Latecomer": asdict(row)}))
    assert parse(name).dataset == "Latecomer"


PARTS = [
    *("FindIt", "multilabel", "caption", "f1", "f8", "cx-formula", "cx-", "vp-box", "", "_"),
    "bbox_2d", "vp-mask",
    *DATASETS, *REPRESENTATIONS, *OUTPUTS, *KEYS, *STRUCTURES,
    *(f"vp-{mark}" for mark in MARKS),
    *DECODINGS,
    *(family.value for family in Family), "refcoco_test", "iground", "d3",
]  # fmt: skip


@given(
    st.one_of(
        st.text(),
        st.text().map("FindIt_{}".format),
        st.lists(st.sampled_from(PARTS), max_size=8).map("_".join),
        st.lists(st.sampled_from(PARTS), max_size=8).map(lambda parts: "FindIt_" + "_".join(parts)),
    )
)
def test_any_text_is_a_variant_or_an_error_that_names_it(name: str) -> None:
    if not is_question(name):
        with pytest.raises(VariantError) as error:
            parse(name)
        assert str(error.value).startswith(f"{name}: ")
        return
    variant = parse(name)
    assert format_problem(variant) is None
    assert parse(variant.name) == variant
    assert name == name.rstrip("_\n")


@pytest.mark.parametrize(
    ("name", "family", "table"),
    [
        ("FindIt_iGround_f8_xyxy_text", Family.OBJDET_VIDEO, "iGround"),
        ("FindIt_iGround_multilabel_f1_xyxy_text", Family.OBJDET, "iGround_multilabel"),
        ("FindIt_RoboTools_f2_xyxy_text", Family.INSDET_VIDEO, "RoboTools"),
        ("FindIt_RoboTools_f1_xyxy_text", Family.INSDET, "RoboTools"),
        ("FindIt_D3_xyxy_text", Family.REFEXP_ALL, "D3"),
    ],
)
def test_a_video_with_one_frame_is_an_image_task(name: str, family: Family, table: str) -> None:
    variant = parse(name)
    assert variant.family is family
    assert variant.table == table
