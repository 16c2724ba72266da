"""The screens, one per file: page, live part, actions."""
