"""The dashboard: the API as web pages."""
