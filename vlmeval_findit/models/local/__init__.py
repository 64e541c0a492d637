"""Models on this machine: transformers, and offline vLLM."""
