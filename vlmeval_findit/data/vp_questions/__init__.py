"""VP-Bench questions of one's own, stage 1: marks on the pictures of a detection dataset.

``sources`` → ``plan`` → ``asking`` → ``marking`` → ``building``; ``sets`` are those that need no
download.  The same dataset, number and seed give the same bytes.
"""
