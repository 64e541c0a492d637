"""The door of the room: names, in the order in which a newcomer should meet them."""

from .folders import (
    lmu_data_root as lmu_data_root,
    make_lmu_data_root as make_lmu_data_root,
    make_folders_of_host as make_folders_of_host,
    folder_from as folder_from,
    folder_advice as folder_advice,
    is_writable as is_writable,
    custom_datasets_file as custom_datasets_file,
    DatasetFileError as DatasetFileError,
    CustomDataset as CustomDataset,
    custom_datasets as custom_datasets,
    known_custom_datasets as known_custom_datasets,
    register_dataset as register_dataset,
    replace_dataset as replace_dataset,
    FolderError as FolderError,
    table_folders as table_folders,
    find_table as find_table,
    shipped_table as shipped_table,
    made_table as made_table,
    Folder as Folder,
    config_file as config_file,
    image_folder as image_folder,
    named_image_keys as named_image_keys,
    DatasetsConfig as DatasetsConfig,
    read_config as read_config,
)

from .table_files import (
    TableError as TableError,
    CellError as CellError,
    NESTED_CONFIG as NESTED_CONFIG,
    ImagePath as ImagePath,
    ImagePaths as ImagePaths,
    ImageSide as ImageSide,
    PlainQuery as PlainQuery,
    WrittenTable as WrittenTable,
    write_table as write_table,
    describe_sources as describe_sources,
    read_table as read_table,
    meta_path as meta_path,
    is_users_table as is_users_table,
    source_checksum as source_checksum,
    table_facts as table_facts,
    UNLIKE_PUBLISHED as UNLIKE_PUBLISHED,
    unlike_published as unlike_published,
)

from .packed_images import (
    tsv_rows as tsv_rows,
    parquet_rows as parquet_rows,
    named_image as named_image,
    store_image as store_image,
)

from .predictions import (
    PredictionError as PredictionError,
    read_predictions as read_predictions,
    check_model_name as check_model_name,
    SHOWN_COLUMN as SHOWN_COLUMN,
    prediction_row as prediction_row,
    shown_column as shown_column,
    call_time_column as call_time_column,
    write_rows as write_rows,
    holds_rows as holds_rows,
    PREDICTION_FORMATS as PREDICTION_FORMATS,
)

from .reply_records import (
    record_text as record_text,
    stored_record as stored_record,
    failed_column as failed_column,
    parse_record as parse_record,
    parse_call_time as parse_call_time,
)

from .run_files import (
    SWEEP_JOURNAL as SWEEP_JOURNAL,
    PROVENANCE as PROVENANCE,
    RunFiles as RunFiles,
    OTHER_SPACE as OTHER_SPACE,
    REVIEWED as REVIEWED,
    run_of as run_of,
    space_mark as space_mark,
    scores_in_other_spaces as scores_in_other_spaces,
    scores_with_reviews as scores_with_reviews,
    MORE_SAMPLES as MORE_SAMPLES,
    sample_path as sample_path,
    CHECKSUMS as CHECKSUMS,
    WRITTEN_BY as WRITTEN_BY,
    PROBE_FILE as PROBE_FILE,
    DEMO_FILE as DEMO_FILE,
    demonstrations_below as demonstrations_below,
    files_below as files_below,
    model_with_mark as model_with_mark,
)

from .identity_file import (
    write_identity as write_identity,
    identity_values as identity_values,
    StoredIdentity as StoredIdentity,
    identity_from as identity_from,
    read_identity as read_identity,
    read_record as read_record,
)

from .image_files import (
    Size as Size,
    ImageFileError as ImageFileError,
    ImageBytes as ImageBytes,
    ImageHeader as ImageHeader,
    image_bytes as image_bytes,
    read_image_header as read_image_header,
    known_header as known_header,
    check_image as check_image,
    stored_pixels as stored_pixels,
    decode_image as decode_image,
    decode_values as decode_values,
    shows_transparency as shows_transparency,
    Orientation as Orientation,
    orientation as orientation,
    header_problem as header_problem,
    image_problem as image_problem,
    draw_missing as draw_missing,
    ImageError as ImageError,
    unusable_rows as unusable_rows,
    rows_to_leave_out as rows_to_leave_out,
    unusable_images_error as unusable_images_error,
)

from .image_content import (
    TRANSPARENT as TRANSPARENT,
    HASH_DIGITS as HASH_DIGITS,
    Shown as Shown,
    ImageChangedError as ImageChangedError,
    content_of as content_of,
    is_other_file as is_other_file,
    changed_images as changed_images,
    is_transparent as is_transparent,
    contents_path as contents_path,
    imported_contents as imported_contents,
    replaced_images as replaced_images,
    replaced_note as replaced_note,
    shown_contents as shown_contents,
    short_content as short_content,
    shown_in as shown_in,
)

from .stored_png import (
    Pixels as Pixels,
    png as png,
)

from .transparency import (
    as_rgb as as_rgb,
)

from .jpeg_structure import (
    without_pixels as without_pixels,
)

from .review_files import (
    table_hash as table_hash,
    read_reviews as read_reviews,
    read_review_file as read_review_file,
    write_reviews as write_reviews,
    review_lines as review_lines,
)

from .sheet_cells import (
    XLSX_CELL_LIMIT as XLSX_CELL_LIMIT,
)

from . import (
    folders as folders,
    stored_png as stored_png,
    table_files as table_files,
)
