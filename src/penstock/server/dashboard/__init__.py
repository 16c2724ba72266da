"""The dashboard: the API as web pages; `templates/parts/` has what is updated live."""
