"""The public Python API: ``import vlmeval_findit as findit`` (docs/how-to/python.md)."""
