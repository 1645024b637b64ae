"""Reference values for src/stats, by SciPy and statsmodels: python3 tests/reference/stats.py > tests/reference/stats.json (SciPy 1.17.1, statsmodels 0.15.0)."""

import json
import math

import numpy
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

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
        "p_tost_statsmodels": ttost_paired(numpy.array(sample), numpy.zeros(n), -MARGIN, MARGIN)[0],
        "p_sign_flip": flips(sample, "two-sided"),
        "p_sign_flip_upper": flips([x + MARGIN for x in sample], "greater"),
        "median": float(numpy.median(sample)),
        "minimum_detectable": (stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) * se,
    }


def flips(sample, alternative):
    """All 2^n patterns of signs."""
    test = stats.permutation_test(
        (numpy.array(sample),), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=numpy.inf, alternative=alternative
    )
    return test.pvalue


def response(loss, event, until, smooth, short, long):
    """The transition response of 2608.13156 by cumulative sums: (baseline, jump, area, area, recovery or null)."""
    loss = numpy.array(loss)
    baseline = loss[event - smooth : event].mean()
    excess = loss[event:until] - baseline
    smoothed = numpy.convolve(excess, numpy.ones(smooth) / smooth, "valid")
    back = numpy.nonzero(smoothed <= 0)[0]
    recovery = int(back[0] + smooth // 2) if len(back) else None
    return [baseline, excess[0], excess[:short].mean(), excess[:long].mean(), recovery]


def interaction(cells):
    """Difference of differences, seed by seed: (post, grow) - (pre, grow) - ((post, joint) - (pre, joint))."""
    pre_joint, pre_grow, post_joint, post_grow = map(numpy.array, cells)
    seeds = (post_grow - pre_grow) - (post_joint - pre_joint)
    interval = stats.t.interval(0.95, len(seeds) - 1, loc=seeds.mean(), scale=stats.sem(seeds))
    return {"cells": cells, "mean": seeds.mean(), "interval": list(interval), "p": stats.ttest_rel(post_grow - pre_grow, post_joint - pre_joint).pvalue}


def documents(tokens, sums):
    """A mean over tokens with errors clustered by document; within a document all tokens have its mean, and one that deviates by turns."""
    values, groups = [], []
    for document, (count, total) in enumerate(zip(tokens, sums)):
        for token in range(count):
            turn = 0.0 if count % 2 and token == count - 1 else 0.01 * (-1) ** token
            values.append(total / count + turn)
            groups.append(document)
    fit = sm.OLS(values, numpy.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": numpy.array(groups)}, use_t=True)
    low, high = fit.conf_int()[0]
    return {"tokens": tokens, "sums": sums, "mean": fit.params[0], "se": fit.bse[0], "half_width": (high - low) / 2}


DOCUMENTS = [
    [[3, 1, 12, 7, 30, 2], [0.02, -0.5, 0.13, -0.2, 0.61, 0.0]],
    [[2, 2, 2], [0.1, -0.1, 0.3]],
    [[5, 90], [-0.2, -2.0]],
    [[1 + (7 * d) % 23 for d in range(60)], [0.03 * math.sin(d) * (1 + (7 * d) % 23) - 0.01 * d % 0.2 for d in range(60)]],
]
P_VALUES = [[0.04, 0.01, 0.03, 0.02], [0.0004, 0.2, 0.031, 0.031, 1.0, 0.0499], [0.5], [0.012, 0.013, 0.014, 0.9, 0.051]]
CELLS = [[2.7603, 2.7611, 2.7598, 2.7641], [2.7658, 2.7649, 2.7661, 2.7688], [2.7607, 2.7614, 2.7590, 2.7652], [2.7330, 2.7361, 2.7342, 2.7377]]
LOSS = [2.0 + 0.05 * math.sin(0.7 * s) + (0.0 if s < 400 else 0.6 * math.exp(-(s - 400) / 60) - 0.03) for s in range(1000)]
SUMS = [[0.1, -0.3, -0.1, 0.3], [1e100, 1.0, -1e100], [0.1] * 10, [1e-3, 1e3, -1e-9, 7.7, -1e3]]


print(
    json.dumps(
        {
            "margin": MARGIN,
            "cases": [case(sample) for sample in SAMPLES],
            "quantiles": [[p, df, stats.t.ppf(p, df)] for p in (0.6, 0.8, 0.95, 0.975, 0.995) for df in (1, 2, 3, 4, 7, 9, 29, 200)],
            "holm": [[p, list(multipletests(p, method="holm")[1])] for p in P_VALUES],
            "interaction": interaction(CELLS),
            "response": {"loss": LOSS, "seen": response(LOSS, 400, 1000, 20, 50, 250)},
            "sums": [[values, math.fsum(values)] for values in SUMS],
            "documents": [documents(*document) for document in DOCUMENTS],
            "tails": [[t, df, stats.t.sf(t, df)] for t in (0.0, 0.5, 2.0, 5.0, 30.0) for df in (1, 2, 4, 9, 49)],
        },
        indent=1,
    )
)
