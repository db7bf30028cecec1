"""Live sources: rows that come as long as the program runs, from a growing file, a pipe, a folder or a broker."""
