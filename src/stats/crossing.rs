//! Where a difference that is followed over time changes its sign for good.

/// The first step after `after` from which every value is below 0 until the last one; `None` where the last one is not.
pub fn stays_below_from(series: &[(u64, f64)], after: u64) -> Option<u64> {
    let later = series.iter().filter(|(step, _)| *step > after);
    later.rev().take_while(|(_, value)| *value < 0.0).last().map(|(step, _)| *step)
}

/// The first step from which the sign is that of the last value until the end; `None` where it was so from the first.
pub fn last_crossing(series: &[(u64, f64)]) -> Option<u64> {
    let sign = |value: f64| if value == 0.0 { 0.0 } else { value.signum() };
    let last = sign(series.last()?.1);
    let kept = series.iter().rev().take_while(|(_, value)| sign(*value) == last).count();
    (kept < series.len()).then(|| series[series.len() - kept].0)
}
