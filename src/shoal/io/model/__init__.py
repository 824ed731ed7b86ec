"""Fitted models as folders: JSON, arrays and skops parts, nothing that runs."""
