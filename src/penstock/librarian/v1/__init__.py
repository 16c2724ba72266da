"""Generated from `proto/penstock/librarian/v1` by `make proto`; do not edit."""
