"""Parses documents in child processes that can be killed.

pool.py          the parent's side: children, limits, cancellation
tenant_turns.py  which request is next
requests.py      the requests
child.py         the child's side: one document at a time
read.py          chooses the reader
sniff.py         detects the format, by content
draft.py         collects the text
*_file.py        a reader per format
web_page.py      the main text of web pages
picture.py       renders scanned pages
ocr.py           reads text in images

PDF is read by PDFium; all else by the standard library (why: docs/decisions/0016-ingest-parts.md),
and images by Pillow and tesseract (docs/decisions/0024-scans.md). trafilatura finds the main text
of a page (docs/decisions/0031-pages.md).
"""
