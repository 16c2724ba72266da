"""Questions answered from documents, each sentence with where it is from."""
