"""The engine: dispatcher, workers, settler."""
