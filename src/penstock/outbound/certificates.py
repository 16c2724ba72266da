"""TLS certificates that requests trust."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def trusted() -> ssl.SSLContext:
    """Loaded once in a process: it takes longer than a request, and nothing else is done
    meanwhile."""
    import httpx2  # here, because many processes make no requests

    return httpx2.create_ssl_context()
