"""Data sets that ship with the package, are read from a file, or are generated."""
