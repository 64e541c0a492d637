"""The leaderboard: models x datasets, only of runs that can be compared.

``columns`` says which runs of a dataset can be compared; ``formats`` which of a model's formats is
reported; ``board`` makes values, intervals, averages and ranks, ``notes`` what a reader must know
beside them.  ``tables``, ``errors`` and ``slices`` show them as a :class:`.table.Table`, which
``render`` (text, HTML, JSON) and ``sheet`` (xlsx) write; ``openvlm`` writes the JSON of the OpenVLM
leaderboard.
"""
