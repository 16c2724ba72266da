"""Made of `proto/penstock/librarian/v1` by `make proto`; change it there."""
