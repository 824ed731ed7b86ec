"""Questions to ask of a fit: how many classes, how sure, and whether to trust it."""
