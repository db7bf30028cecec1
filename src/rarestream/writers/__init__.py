"""Writers: Blocks to files that can be read again. Each format is a module, listed in registry.py."""
