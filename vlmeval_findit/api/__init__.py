"""What other people's code imports: ``import vlmeval_findit as findit`` names it (docs/api.md)."""
