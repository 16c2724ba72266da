"""Parses documents in child processes that can be killed.

pool.py     the parent's side: children, limits, cancellation
turns.py    who is next at the children
questions.py what can be asked of them
child.py    the child's side: one document at a time
read.py     which reader a document gets
sniff.py    what a document is, by its content
draft.py    where readers put what they read
*_file.py   a reader per format
web_page.py the main text of pages of the web
picture.py  pages as pictures, where their text is in one
ocr.py      text in pictures

PDF is read by PDFium; all else by the standard library (why: docs/decisions/0016-ingest-parts.md),
and pictures by Pillow and tesseract (docs/decisions/0024-scans.md). What the main text of a page is
is told by trafilatura (docs/decisions/0031-pages.md).
"""
