"""Clients of models: chat, vision, embeddings.

`embed` of an embedder returns one vector for each text, in their order: `dimensions` times float32,
little-endian, finite and of unit length together. Else it raises: Unavailable or RateLimited if
trying again later can help, EmbedderError or another PermanentError if not.
"""
