"""The librarian as a separate service over gRPC: server and client."""
