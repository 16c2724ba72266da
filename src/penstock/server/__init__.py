"""The HTTP server: translates between HTTP and the library, and decides nothing itself."""
