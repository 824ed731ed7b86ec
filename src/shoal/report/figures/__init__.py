"""Pictures of a report: inline SVG, drawn from the numbers of its summary only."""
