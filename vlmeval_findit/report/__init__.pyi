"""The door of the room: names, in the order in which a newcomer should meet them."""

from .page import (
    PageSource as PageSource,
    SECTIONS as SECTIONS,
    make_page as make_page,
    read_shown as read_shown,
    shown_on_page as shown_on_page,
)

from .live_page import (
    make_live_page as make_live_page,
)

from .sweep_progress import (
    SweepState as SweepState,
    CellView as CellView,
    SweepFiles as SweepFiles,
    SweepSnapshot as SweepSnapshot,
    FollowedSweep as FollowedSweep,
    planned_rows as planned_rows,
)

from .review_page import (
    make_review_page as make_review_page,
    differing_boxes as differing_boxes,
)

from .review_rows import (
    MOST_REVIEW_ROWS as MOST_REVIEW_ROWS,
    Source as Source,
    ReviewRow as ReviewRow,
    rows_to_review as rows_to_review,
    mix_rows as mix_rows,
    decoy_answer as decoy_answer,
)

from .gallery_choice import (
    CARDS_ON_A_PAGE as CARDS_ON_A_PAGE,
    choose_cards as choose_cards,
)

from .charts import (
    FormatCell as FormatCell,
    COLOUR_RAMP as COLOUR_RAMP,
    READ_IN_WHITE as READ_IN_WHITE,
    heat_maps as heat_maps,
    svg as svg,
)

from .kept_script import chart_script as chart_script

from .standings import (
    BEST_STANDING as BEST_STANDING,
    LOWER_STANDING as LOWER_STANDING,
    UNTESTED_STANDING as UNTESTED_STANDING,
    panels_of as panels_of,
    headlines_of as headlines_of,
)

from .lost_points import (
    losses_of as losses_of,
)

from .cost_charts import (
    COST_AXES as COST_AXES,
    cost_text as cost_text,
    cost_note as cost_note,
    CostPoint as CostPoint,
    CostPanel as CostPanel,
    model_panels as model_panels,
    format_panels as format_panels,
    front_table as front_table,
    CostCharts as CostCharts,
)

from .curve_charts import (
    MOST_CURVES as MOST_CURVES,
    learning_chart as learning_chart,
    ablation_chart as ablation_chart,
    class_curves as class_curves,
)

from .pair_comparison import (
    pair_values as pair_values,
    mean_values as mean_values,
    opening_pair as opening_pair,
)

from .pair_choice import (
    COMPARE_FLAG as COMPARE_FLAG,
    ModelInFormat as ModelInFormat,
    sides_of as sides_of,
    choose_pairs as choose_pairs,
    first_pairs as first_pairs,
)

from .gallery import (
    gallery_data as gallery_data,
    thumbnails as thumbnails,
)

from .transcripts import (
    Transcript as Transcript,
    gather_transcripts as gather_transcripts,
    drawn_values as drawn_values,
)

from .board_charts import (
    forest_of as forest_of,
    format_costs_of as format_costs_of,
    DetailedCharts as DetailedCharts,
)

from .class_tables import (
    MOST_CLASSES as MOST_CLASSES,
    class_tables as class_tables,
)

from .setup_section import (
    SetupReport as SetupReport,
    setups_of as setups_of,
)

from .set_charts import (
    set_chart as set_chart,
)

from .doubtful_labels import (
    Bound as Bound,
    doubts_of as doubts_of,
)

from .value_text import (
    rounded_down as rounded_down,
)

from .page_section import (
    Section as Section,
    SectionFailure as SectionFailure,
)
