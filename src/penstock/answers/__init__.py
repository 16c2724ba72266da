"""Answers to questions, from documents, with citations."""
