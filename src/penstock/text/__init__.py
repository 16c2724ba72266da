"""Text and formats: normalization, JSON, XML, fencing, redaction. Pure, no I/O."""
