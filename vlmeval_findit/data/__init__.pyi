"""The door of the room: names, in the order in which a newcomer should meet them."""

from .sources import (
    SHIPPED_LICENCE as SHIPPED_LICENCE,
    PublishedPart as PublishedPart,
    DataSource as DataSource,
    NO_FILES as NO_FILES,
    SOURCES as SOURCES,
    published_sets as published_sets,
    published_dataset as published_dataset,
    made_sources as made_sources,
)

from .loading import (
    parse_dataset as parse_dataset,
    refuse_unmade as refuse_unmade,
    load_dataset as load_dataset,
    MAKERS as MAKERS,
)

from .annotated_samples import (
    AnnotationError as AnnotationError,
    Units as Units,
    BoxForm as BoxForm,
    CROWD as CROWD,
    DIFFICULT as DIFFICULT,
    IGNORED as IGNORED,
    AnnotatedBox as AnnotatedBox,
    Sample as Sample,
    Counts as Counts,
    Samples as Samples,
)

from .import_facts import (
    asks_for_all_classes as asks_for_all_classes,
    unlike_file as unlike_file,
)
from .ledger import (
    Fate as Fate,
    Ledger as Ledger,
)

from .custom.build import (
    ImportedDataset as ImportedDataset,
    ImportChoices as ImportChoices,
    import_samples as import_samples,
)

from .set_statistics import (
    SMALL_BELOW as SMALL_BELOW,
    LARGE_ABOVE as LARGE_ABOVE,
    Spread as Spread,
    SetStatistics as SetStatistics,
    statistics_of as statistics_of,
)

from .removal import (
    WrittenByImport as WrittenByImport,
    imports_called as imports_called,
    written_by_import as written_by_import,
    remove_import as remove_import,
    runs_about as runs_about,
)

from .custom.annotation_formats import (
    ANNOTATION_FORMATS as ANNOTATION_FORMATS,
)

from .custom.layouts import (
    Layout as Layout,
    recognise as recognise,
)

from .custom.image_folders import (
    read_layout as read_layout,
)

from .custom.reader_options import (
    ReaderOptions as ReaderOptions,
)

from .custom.class_rules import (
    ClassRules as ClassRules,
    read_renames as read_renames,
)

from .custom.coco import (
    read_coco as read_coco,
    OBJECTS_AT_ONCE as OBJECTS_AT_ONCE,
)

from .custom.voc import (
    read_voc as read_voc,
)

from .custom.yolo import (
    read_yolo as read_yolo,
)

from .custom.csv_boxes import (
    read_csv as read_csv,
)

from .custom.jsonl import (
    QueryLine as QueryLine,
    QueryBox as QueryBox,
)

from .custom.json_sections import (
    sections as sections,
)

from .custom.annotation_values import (
    mask_of_coco as mask_of_coco,
    segmentation_of_coco as segmentation_of_coco,
)

from .custom.text_encodings import (
    known_encoding as known_encoding,
    text_of as text_of,
)

from .custom.uncounted_objects import (
    why_ignored as why_ignored,
)

from .custom.splits import (
    SplitKind as SplitKind,
    kind_of_split as kind_of_split,
    chosen_split as chosen_split,
)

from .custom.detection import (
    Detections as Detections,
    detection_samples as detection_samples,
)

from .custom.checks import (
    check_samples as check_samples,
    usable_boxes as usable_boxes,
)

from .custom.number_readings import (
    check_units as check_units,
)

from .custom.upright_boxes import (
    around_turned as around_turned,
)

from .custom.polygons import (
    Outlines as Outlines,
    fill_polygons as fill_polygons,
    fill_outlines as fill_outlines,
)

from .custom.image_names import (
    decode_name as decode_name,
    ImageNames as ImageNames,
)

from .custom.exif_pixels import (
    ExifPixels as ExifPixels,
    mask_to_stored as mask_to_stored,
    CheckedImage as CheckedImage,
    to_stored_pixels as to_stored_pixels,
)

from .known_names import (
    AS_LABELS as AS_LABELS,
    AS_SCORED as AS_SCORED,
    AS_STATED as AS_STATED,
    KnownNames as KnownNames,
    KnownImages as KnownImages,
    id_text as id_text,
)

from .custom.coco_ids import (
    CocoIds as CocoIds,
    number_and_text as number_and_text,
    object_key as object_key,
    read_ids as read_ids,
)

from .published_set_readers.importing import (
    ImportOptions as ImportOptions,
    run_import as run_import,
)

from .published_set_readers.refcoco_copies import (
    read_plain_pickle as read_plain_pickle,
)

from .published_figures import (
    NOT_STATED as NOT_STATED,
    ImageBounds as ImageBounds,
    PublishedDecoding as PublishedDecoding,
    told_values as told_values,
    values_in_words as values_in_words,
    Conditions as Conditions,
    FigureSet as FigureSet,
    Sure as Sure,
    PublishedFigure as PublishedFigure,
    figures_of as figures_of,
    published_figures as published_figures,
    FiguresFileError as FiguresFileError,
    read_figures as read_figures,
    figures_template as figures_template,
    sources_of as sources_of,
)

from .fetch.annotations import (
    AnnotationFile as AnnotationFile,
    FetchableTable as FetchableTable,
    fetched_tables as fetched_tables,
    parquet_folder as parquet_folder,
    is_fetched as is_fetched,
    fetch_annotations as fetch_annotations,
    images_of as images_of,
)

from .fetch.fetch_images import (
    FETCHED_BY_HAND as FETCHED_BY_HAND,
    Progress as Progress,
    FetchJob as FetchJob,
    fetch_images as fetch_images,
    read_members as read_members,
    ArchiveError as ArchiveError,
    VideoError as VideoError,
    cut_frames as cut_frames,
)

from .fetch.download import (
    DOWNLOAD_CHUNK as DOWNLOAD_CHUNK,
    DownloadError as DownloadError,
    Policy as Policy,
    Client as Client,
    address_below as address_below,
    fetch_file as fetch_file,
)

from .fetch.store import (
    DOWNLOAD_PARTS as DOWNLOAD_PARTS,
    StoreError as StoreError,
    ImageStore as ImageStore,
)

from .fetch.base_addresses import (
    BASE_ADDRESSES as BASE_ADDRESSES,
    SourceError as SourceError,
    base_addresses as base_addresses,
)

from .demo.photos import (
    PHOTO_PARTS as PHOTO_PARTS,
    Photo as Photo,
    photos as photos,
    read_photo as read_photo,
    demo_image as demo_image,
    demo_tables as demo_tables,
    prepare_demo as prepare_demo,
)

from .probe_scenes import (
    PROBE_SIZES as PROBE_SIZES,
    PROBE_SCENE_COUNT as PROBE_SCENE_COUNT,
    probe_scene as probe_scene,
)

from .rendered.tables import (
    DrawnMark as DrawnMark,
    MarkedRow as MarkedRow,
    Placed as Placed,
    PairRow as PairRow,
    pair_stream as pair_stream,
)

from .rendered.scene import (
    SCENE_SIZES as SCENE_SIZES,
    SHOT_SIZE as SHOT_SIZE,
    HALF_SIZES as HALF_SIZES,
    Owners as Owners,
    Stream as Stream,
    rng_of as rng_of,
    draw_look as draw_look,
    draw_name as draw_name,
    PaintedScene as PaintedScene,
    compose_scene as compose_scene,
    looks_and_places as looks_and_places,
    paint_all as paint_all,
    paint_owners as paint_owners,
)

from .rendered.scene_drawing import (
    Floats as Floats,
    Pixels as Pixels,
    Rng as Rng,
    SHAPES as SHAPES,
    COLOURS as COLOURS,
    TEXTURES as TEXTURES,
    Look as Look,
    ObjectPlacement as ObjectPlacement,
    as_pixels as as_pixels,
)
