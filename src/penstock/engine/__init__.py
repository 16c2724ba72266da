"""Dispatcher, workers, settler: what makes jobs run."""
