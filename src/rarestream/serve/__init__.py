"""The service: scores rows, learns from labels that come late, and loses nothing it has acknowledged."""
