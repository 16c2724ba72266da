"""The librarian as a service of its own, over gRPC: its server, and who asks it."""
