"""Text and formats: normalization, JSON, XML, untrusted text, error texts. Pure, no I/O."""
