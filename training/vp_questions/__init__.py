"""Makes the questions of VPBench_Scenes, whose tables the package ships.

``sources`` → ``plan`` → ``asking`` → ``marking`` → ``building``; ``ship`` writes the tables.  The
same source, number and seed give the same bytes.
"""
