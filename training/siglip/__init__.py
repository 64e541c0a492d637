"""FindIt-Nano-SigLIP: a dual encoder of the SigLIP architecture."""
