"""Chromium, driven by Playwright."""
