"""From a path or an object in memory to its content: one reader per format."""
