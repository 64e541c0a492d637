"""What is known of each model, and how models are asked: locally, over HTTP, in batches.

:mod:`.model_table` has one row per model. A model gets a message and gives a reply with its record;
who runs it is not known here.
"""
