"""The paper's benchmark: semi-synthetic shift, its configurations and its numbers."""
