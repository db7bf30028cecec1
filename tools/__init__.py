"""Scripts for those who work on rarestream; not part of the package. `make` calls them."""
