"""TLS certificates that requests trust."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def trusted() -> ssl.SSLContext:
    """Load the certificates, once per process: it takes longer than a request and blocks."""
    import httpx2  # here, because many processes make no requests

    return httpx2.create_ssl_context()
