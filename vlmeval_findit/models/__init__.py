"""Who answers: a row a model, on this machine or over HTTP.

:mod:`.model_table` has one row per model. A model gets a message and gives a reply with its record;
who runs it is not known here.
"""
