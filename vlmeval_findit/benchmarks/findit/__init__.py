"""FindIt: boxes in every format, by F1@0.5, mIoU and adherence."""
