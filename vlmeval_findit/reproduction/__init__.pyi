"""The door of the room: names, in the order in which a newcomer should meet them."""

from .figure_choice import (
    FigureChoiceError as FigureChoiceError,
    choose_figure as choose_figure,
    OWN_PAPER as OWN_PAPER,
)

from .setup import (
    SetupError as SetupError,
    Answerer as Answerer,
    Stated as Stated,
    AnsweringProgram as AnsweringProgram,
    plan_setup as plan_setup,
    find_variants as find_variants,
    dataset_notes as dataset_notes,
)

from .verdict import (
    MOST_LOST as MOST_LOST,
    tolerance_of as tolerance_of,
    judge_attempt as judge_attempt,
)

from .figure_metric import (
    FigureMetricError as FigureMetricError,
    FIGURE_METRICS as FIGURE_METRICS,
    figure_metric as figure_metric,
    measure_figure as measure_figure,
)

from .causes import (
    CAUSES as CAUSES,
    find_causes as find_causes,
)

from .cause_evidence import (
    Evidence as Evidence,
    capitalised as capitalised,
)

from .checkpoint_cause import (
    check_checkpoint as check_checkpoint,
    another_model as another_model,
)

from .engine_cause import (
    check_engine as check_engine,
    faults_of as faults_of,
    engine_faults as engine_faults,
    known_faults as known_faults,
    FEWEST_BOXES as FEWEST_BOXES,
    box_placement as box_placement,
)

from .picture_size_causes import (
    check_picture_sizes as check_picture_sizes,
    shown_tokens as shown_tokens,
    tiles_of as tiles_of,
)

from .asked_causes import (
    PICTURES_A_DATASET as PICTURES_A_DATASET,
    check_prompt as check_prompt,
    check_bounds as check_bounds,
    check_decoding as check_decoding,
    paired_change as paired_change,
)

from .experiments import (
    Experiments as Experiments,
)

from .reproduction_records import (
    ConditionAgreement as ConditionAgreement,
    ConditionSet as ConditionSet,
    Setup as Setup,
    Attempt as Attempt,
    FigureVerdict as FigureVerdict,
    FigureJudgement as FigureJudgement,
    Cause as Cause,
    CauseLook as CauseLook,
    Reproduction as Reproduction,
)

from .reproduction_file import (
    REPRODUCTION as REPRODUCTION,
    ReproductionFileError as ReproductionFileError,
    StoredFigure as StoredFigure,
    StoredTable as StoredTable,
    WhoAnswered as WhoAnswered,
    StoredRun as StoredRun,
    StoredReproduction as StoredReproduction,
    stored_reproduction as stored_reproduction,
    stored_table as stored_table,
    stored_values as stored_values,
    write_reproduction as write_reproduction,
    read_reproduction as read_reproduction,
    reproductions_of as reproductions_of,
    reproduction_line as reproduction_line,
)

from .two_reproductions import (
    NotComparableError as NotComparableError,
    SharedRows as SharedRows,
    TwoReproductions as TwoReproductions,
    compare_reproductions as compare_reproductions,
    refuse_other_things as refuse_other_things,
)
