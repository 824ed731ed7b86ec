"""ImageMixture: DomainMixture on a network's features, then end to end."""
