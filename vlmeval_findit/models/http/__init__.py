"""Models behind an HTTP API: providers, and any OpenAI-compatible server."""
