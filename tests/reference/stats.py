"""Reference values for src/stats, by SciPy: python3 tests/reference/stats.py > tests/reference/stats.json (SciPy 1.17)."""

import json
import math

from scipy import stats

SAMPLES = [
    [-0.0332, -0.0291, -0.0405],
    [0.0004, -0.0011, 0.0023, 0.0007],
    [0.1, -0.2, 0.05, 0.3, -0.15],
    [2.7603, 2.7658, 2.7607, 2.7330, 2.7518, 2.7428],
    [1e-6, 3e-6, -2e-6, 1.5e-6, 0.0, 4e-6, 2e-6, -1e-6],
    [5.81, 19.98, 7.1, 11.5, 2.45, 2.40, 119.0, 425.0, 8.13, 2.36],
]
MARGIN = 0.005


def case(sample):
    n = len(sample)
    mean = sum(sample) / n
    sd = stats.tstd(sample)
    se = sd / math.sqrt(n)
    interval = lambda level: list(stats.t.interval(level, n - 1, loc=mean, scale=se))
    return {
        "sample": sample,
        "mean": mean,
        "sd": sd,
        "interval_95": interval(0.95),
        "interval_90": interval(0.90),
        "p_two_sided": stats.ttest_1samp(sample, 0.0).pvalue,
        "p_tost": max(
            stats.ttest_1samp(sample, -MARGIN, alternative="greater").pvalue,
            stats.ttest_1samp(sample, MARGIN, alternative="less").pvalue,
        ),
    }


print(
    json.dumps(
        {
            "margin": MARGIN,
            "cases": [case(sample) for sample in SAMPLES],
            "quantiles": [[p, df, stats.t.ppf(p, df)] for p in (0.6, 0.8, 0.95, 0.975, 0.995) for df in (1, 2, 3, 4, 7, 9, 29, 200)],
            "tails": [[t, df, stats.t.sf(t, df)] for t in (0.0, 0.5, 2.0, 5.0, 30.0) for df in (1, 2, 4, 9, 49)],
        },
        indent=1,
    )
)
