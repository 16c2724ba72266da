"""Documents: parsed, masked, split into chunks, embedded, stored and searched.

parse/    bytes -> Parsed: text, pages, headings; in a child process that can be killed
mask.py   text -> Masked: personal data replaced by labels, with a map of offsets
chunk.py  masked text -> Chunks of bounded size and known overlap
"""
