"""FindIt-Nano and FindIt-Nano-px: vision-language models of the Qwen3-VL architecture."""
