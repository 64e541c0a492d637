"""FindIt: boxes in every format, by F1@0.5, mIoU and adherence (arXiv 2606.04282)."""

PREFIX = "FindIt_"
