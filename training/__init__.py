"""Makes what ships with the package: its models and its tables; not part of the wheel.

``python -m training.train RECIPE --out FOLDER`` trains a model, a recipe of ``recipes/`` each.
``python -m training.shipped_tables`` writes the tables.
"""
