"""The interval of a share of which a sample was seen: E. B. Wilson, "Probable inference, the law of
succession, and statistical inference", Journal of the American Statistical Association 22 (1927).

Unlike the usual share ± its standard error it is honest at 0 and 1 and for small samples. Pure."""

from math import sqrt

TWO_SIDED_95 = 1.960
ONE_SIDED_95 = 1.645
"""Normal quantiles: of an interval, and of one bound alone."""


def interval(hits: float, trials: float, quantile: float = TWO_SIDED_95) -> tuple[float, float]:
    """0 <= low <= hits/trials <= high <= 1; (0, 1) of no trials. ``hits`` in [0, ``trials``]. Pure, O(1)."""
    if trials <= 0:
        return 0.0, 1.0
    share, weight = hits / trials, quantile**2 / trials
    middle = (share + weight / 2) / (1 + weight)
    reach = quantile * sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))
