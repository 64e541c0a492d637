"""Names of variants: the grammar, its inverse, and what a wrong name is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from grids import grid

from vlmeval_findit.benchmarks import is_question
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.findit_datasets import DATASETS, Family
from vlmeval_findit.benchmarks.findit.variant import DECODINGS, MARKS, Variant, VariantError

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
        ("FindIt_Pascal_multilabel_xyxy_json_class_name",
         Variant("Pascal", "xyxy", "json", key="class_name", multilabel=True)),
        ("FindIt_iGround_caption_f8_cxcywh_text_cx-formula",
         Variant("iGround", "cxcywh", "text", caption=True, frames=8, centre="formula")),
        ("FindIt_OpenImages_xyxy_json_bbox_2d_nested",
         Variant("OpenImages", "xyxy", "json", key="bbox_2d", structure="nested")),
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
        ("FindIt_refcoco_plus_testB_refexp_text_xyxy", "FindIt_RefCOCOplus_testB_xyxy_text"),
        ("FindIt_pascal_multilabel_objdet_json_xyxy_class_name_nested",
         "FindIt_Pascal_multilabel_xyxy_json_class_name_nested"),
        ("FindIt_iground_objdet_video_text_xyxy_f4", "FindIt_iGround_f4_xyxy_text"),
        ("FindIt_iground_objdet_text_xyxy_f1", "FindIt_iGround_f1_xyxy_text"),
        ("FindIt_d3_refexp_all_json_cxcywh_bbox_per_box_cx-definitions",
         "FindIt_D3_cxcywh_json_cx-definitions"),
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
        ("FindIt_Pascal_xyxy_json_class_name", "class_name is for multi-label queries only"),
        ("FindIt_Pascal_all_json_decomposed", "all has no decomposed structure"),
        ("FindIt_Pascal_xyxy_json_bbox_2d_decomposed", "the decomposed structure has fixed keys"),
        ("FindIt_Pascal_xyxy_json_cx-formula", "cx-formula is for cxcywh only"),
        ("FindIt_Pascal_cxcywh_json_cx-formulas", "'formulas': did you mean formula?"),
        ("FindIt_Pascal_xyxy_json_vp-box", "vp-box is for instance detection only: Pascal shows"),
        ("FindIt_HRInsDet_hard_xyxy_json_vp-bxo", "no mark 'bxo': did you mean box?"),
        (
            "FindIt_HRInsDet_hard_xyxy_json_vp-mask",
            "vp-mask follows the outline of an object, and tables have its box alone (",
        ),
        # Each part stands in one place only, and nothing is left over.
        ("FindIt_Pascal_xyxy_json_", "'_'"),
        ("FindIt_Pascal_json_xyxy", "no representation 'json'"),
        ("FindIt_", "no dataset ''"),
        ("FindIt_Pascal_point_json_bbox_2d", "bbox_2d is no key of point (there are: point, poin"),
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
