"""Names of variants: the grammar, its inverse, and what a wrong name is told."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from grids import grid

from vlmeval_findit.benchmarks import benchmark_of, is_dataset_name
from vlmeval_findit.benchmarks.findit import (
    DATASETS,
    DECODINGS,
    MARKS,
    Family,
    FindItVariant,
    VariantError,
    parse,
)
from vlmeval_findit.boxes import PAPER_REPRESENTATIONS


def test_the_grid_has_unique_names_that_parse_back() -> None:
    """Each number of frames in one format; in all formats the least, the most and two between."""
    variants = [
        v
        for v in grid(marks=(None, *MARKS))
        if v.frames in (1, 2, 10, DATASETS[v.dataset].frames)
        or (v.representation, v.output) == ("xyxy", "text")
    ]
    assert len(variants) > 4_000
    assert len({v.name for v in variants}) == len(variants)
    assert [v for v in variants if parse(v.name) != v] == []


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
    held = list(grid(decodings=DECODINGS))
    assert [replace(v, decoding=None) for v in held] == free
    assert [v for v in held if parse(v.name) != v] == []
    assert {v.name.rpartition("_")[2] for v in held} == {"constrained"}
    assert all(v.format_cell[1].endswith(" constrained") for v in held)
    assert all(v.reply_schema is None for v in free[:100])


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("FindIt_Pascal_multilabel_xyxy_json_class_name",
         FindItVariant("Pascal", "xyxy", "json", key="class_name", multilabel=True)),
        ("FindIt_iGround_caption_f8_cxcywh_text_cx-formula",
         FindItVariant("iGround", "cxcywh", "text", caption=True, frames=8, centre="formula")),
        ("FindIt_OpenImages_xyxy_json_bbox_2d_nested",
         FindItVariant("OpenImages", "xyxy", "json", key="bbox_2d", structure="nested")),
        ("FindIt_RoboTools_f8_cxcywh_text_cx-formula_vp-oval",
         FindItVariant("RoboTools", "cxcywh", "text", frames=8, centre="formula", mark="oval")),
        ("FindIt_RefCOCOplus_testB_yxhw_json_decomposed",
         FindItVariant("RefCOCOplus_testB", "yxhw", "json", structure="decomposed")),
    ],
)  # fmt: skip
def test_canonical_names(name: str, variant: FindItVariant) -> None:
    assert parse(name) == variant
    assert variant.name == name
    assert is_dataset_name(name)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        # Defaults may be named.
        ("RefCOCO_xyxy_json_bbox_per_box", "RefCOCO_xyxy_json"),
        ("RefCOCO_xyxy_json_bbox_decomposed", "RefCOCO_xyxy_json_decomposed"),
        ("Pascal_f1_xyxy_text", "Pascal_xyxy_text"),
        ("iGround_xyxy_text", "iGround_f8_xyxy_text"),
        ("RoboTools_xyxy_json_bbox_vp-tag", "RoboTools_f64_xyxy_json_vp-tag"),
        # Names of the release are aliases.
        ("refcoco_testA_refexp_json_xyxy_bbox_2d_per_box", "RefCOCO_testA_xyxy_json_bbox_2d"),
        ("refcoco_plus_testB_refexp_text_xyxy", "RefCOCOplus_testB_xyxy_text"),
        ("pascal_multilabel_objdet_json_xyxy_class_name_nested",
         "Pascal_multilabel_xyxy_json_class_name_nested"),
        ("iground_objdet_video_text_xyxy_f4", "iGround_f4_xyxy_text"),
        ("iground_objdet_text_xyxy_f1", "iGround_f1_xyxy_text"),
        ("d3_refexp_all_json_cxcywh_bbox_per_box_cx-definitions",
         "D3_cxcywh_json_cx-definitions"),
        ("robotools_insdet_video_text_xyxy_f8_vp-point", "RoboTools_f8_xyxy_text_vp-point"),
    ],
)  # fmt: skip
def test_other_names_have_a_canonical_one(name: str, canonical: str) -> None:
    assert parse(f"FindIt_{name}").name == f"FindIt_{canonical}"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("RefCOCOO_xyxy_json", "unknown dataset 'RefCOCOO': did you mean RefCOCO?"),
        ("Scenes_minni_xyxy_json", "unknown dataset 'Scenes_minni': did you mean Scenes_mini?"),
        ("Scenes_xyxz_json", "unknown representation 'xyxz': did you mean xyxy?"),
        ("RefCOCO", "the representation is missing (xyxy, xywh,"),
        ("RefCOCO_xyxy", "the output format is missing (text or json)"),
        ("RefCOCO_xyxy_jsn", "unknown output format 'jsn': did you mean json?"),
        ("RefCOCO_xyxy_json_bbox2d", "'bbox2d': did you mean bbox_2d?"),
        ("RefCOCO_xyxy_json_nested_bbox", "unknown JSON key or structure 'bbox'"),
        ("RefCOCO_xyxy_text_bbox", "text replies have neither a JSON key nor a structure"),
        ("RefCOCO_multilabel_xyxy_json", "RefCOCO has no multi-label queries"),
        ("RefCOCO_caption_xyxy_json", "RefCOCO has no captions (there are in: iGround, Fl"),
        ("RefCOCO_f2_xyxy_json", "RefCOCO has images, not frames"),
        ("iGround_f9_xyxy_json", "iGround has 1 to 8 frames, not 9"),
        ("Pascal_xyxy_json_class_name", "class_name is for multi-label queries only"),
        ("Pascal_all_json_decomposed", "all has no decomposed structure"),
        ("Pascal_xyxy_json_bbox_2d_decomposed", "the decomposed structure has fixed keys"),
        ("Pascal_xyxy_json_cx-formula", "cx-formula is for cxcywh only"),
        ("Pascal_cxcywh_json_cx-formulas", "'formulas': did you mean formula?"),
        ("Pascal_xyxy_json_vp-box", "vp-box is for instance detection only: Pascal shows"),
        ("HRInsDet_hard_xyxy_json_vp-bxo", "unknown mark 'bxo': did you mean box?"),
        ("HRInsDet_hard_xyxy_json_vp-mask", "vp-mask follows the outline of an object, and"),
        ("Pascal_point_json_bbox_2d", "point has no key bbox_2d (there are: point, point_2d"),
        ("RefCOCO_xyxy_text_constrained", "text replies have no grammar"),
        ("RefCOCO_unconstrained_json_constrained", "names no format"),
        # Each part stands in one place only, and nothing is left over.
        ("Pascal_xyxy_json_", "'_'"),
        ("Pascal_json_xyxy", "unknown representation 'json'"),
        ("", "unknown dataset ''"),
        # An alias whose family is not the dataset's.
        ("refcoco_test_objdet_json_xyxy", "unknown dataset"),
    ],
)
def test_a_wrong_name_is_told_why_and_what_is_nearest(name: str, says: str) -> None:
    name = f"FindIt_{name}"
    assert not is_dataset_name(name)
    with pytest.raises(VariantError) as error:
        parse(name)
    assert str(error.value).startswith(f"{name}: ")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("name", "family", "table"),
    [
        ("iGround_f8_xyxy_text", Family.OBJDET_VIDEO, "iGround"),
        ("iGround_multilabel_f1_xyxy_text", Family.OBJDET, "iGround_multilabel"),
        ("RoboTools_f1_xyxy_text", Family.INSDET, "RoboTools"),
    ],
)
def test_a_video_with_one_frame_is_an_image_task(name: str, family: Family, table: str) -> None:
    variant = parse(f"FindIt_{name}")
    assert (variant.family, variant.table) == (family, table)


def test_every_row_of_the_format_map_is_explained() -> None:
    meaning = benchmark_of("FindIt_Demo_xyxy_json").format_axes_meaning
    words = re.findall(r"[\w-]+", meaning)
    assert [name for name in PAPER_REPRESENTATIONS if name not in words] == []
