"""Where a number becomes a finding.

Set on generated problems: ``benchmarks/tabular/diagnose.py`` repeats the calibration
and ``results/tabular/diagnose.json`` holds its record.
"""

THRESHOLDS: dict[str, float] = {
    # gain over that of shuffled domains, in standard deviations of the latter
    "signal": 3.0,
    # departures from the model count from this many standard deviations of the null on
    "sure": 4.0,
    # share of the domain signal that the classes leave unexplained
    "unexplained_caution": 0.03,
    "unexplained_fail": 0.25,
    # share of a free guesser's gain that is kept; the difference in standard errors
    "kept_caution": 0.9,
    "kept_fail": 0.75,
    "kept_sure": 3.0,
    # shift of a class between domains, in its standard deviations
    "shift_caution": 0.08,
    "shift_fail": 0.25,
    "class_shift_caution": 0.15,
    "condition": 50.0,
    # classes that the table of cells supports, as a share of those fitted: cells are
    # coarse, so a few classes too few are no sign
    "rank": 0.67,
    # share of a class's mass at q(y|x) > .95 (of the median class)
    "anchor": 0.02,
    # share of a class's rows in one domain
    "single_domain": 0.95,
    # share of all rows (domains weighted) in the rarest class
    "empty": 0.001,
    # another start is as good within this many nats, better from this many on; or, if
    # that is more, within (from) this gain in log-likelihood of all rows together
    "near": 0.003,
    "better": 0.005,
    "near_total": 5.0,
    "better_total": 20.0,
    # share of rows on which starts, and the estimator and its refit, should agree
    "agreement": 0.95,
    "own_agreement": 0.9,
    "thin": 30.0,
    "leak": 0.95,
    "repeats": 0.01,
}
