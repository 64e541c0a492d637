"""Models behind an HTTP API: OpenRouter, and any OpenAI-compatible server."""
