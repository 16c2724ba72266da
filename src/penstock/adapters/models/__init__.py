"""Clients of models: chat, vision, embeddings."""
