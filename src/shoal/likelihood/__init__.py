"""The likelihood of the domains through k softmax classes: rows, features, optimizers.

What :class:`shoal.DomainMixture` maximizes, and what ``diagnose`` holds every
estimator's classes against.
"""
