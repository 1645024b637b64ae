//! The length at which one run costs what another does.
//!
//! Owns the search. Deliberately knows no schedule: it is told what a run of each length costs. Invariant: of all ends the one with the
//! smallest mismatch is found, the shorter of two that are equally far; cost must not fall with length.

/// A solved length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// Steps.
    pub end: u64,
    /// What a run of this length costs.
    pub quantity: f64,
    /// (quantity − target) / target: what rounding to steps leaves.
    pub mismatch: f64,
}

/// Longer runs are not looked for.
const LONGEST: u64 = 1 << 40;

/// Finds the end at which `quantity_at` comes closest to `target`, which is positive.
///
/// `quantity_at` is `None` where the run is too short for its events, which counts as less than the target. The answer is `None` where no
/// length reaches it. Counts are exact in an f64 up to 2⁵³.
pub fn solve(target: f64, mut quantity_at: impl FnMut(u64) -> Option<f64>) -> Option<Match> {
    let mut high = 1;
    while quantity_at(high).is_none_or(|quantity| quantity < target) {
        high = (high < LONGEST).then_some(high * 2)?;
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if quantity_at(middle).is_none_or(|quantity| quantity < target) { low = middle } else { high = middle }
    }
    let mut found = |end: u64| {
        let quantity = quantity_at(end)?;
        Some(Match { end, quantity, mismatch: (quantity - target) / target })
    };
    let above = found(high)?;
    let below = (high > 1).then(|| found(high - 1)).flatten();
    Some(below.filter(|below| below.mismatch.abs() <= above.mismatch.abs()).unwrap_or(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_end_is_found() {
        let end = |target, each: f64| solve(target, |end| Some(end as f64 * each)).map(|found| found.end);
        assert_eq!([end(10.0, 3.0), end(11.0, 3.0), end(10.5, 3.0), end(12.0, 3.0)], [Some(3), Some(4), Some(3), Some(4)]);
        assert_eq!(end(1.0, 3.0), Some(1));
        assert_eq!(end(1e9, 1.0), Some(1_000_000_000));
        let found = solve(10.0, |end| Some(end as f64 * 3.0)).expect("solvable");
        assert_eq!((found.quantity, found.mismatch), (9.0, -0.1));
    }

    #[test]
    fn too_short_runs_are_passed_over_and_unreachable_targets_refused() {
        assert_eq!(solve(5.0, |end| (end > 70).then_some(end as f64)).map(|found| found.end), Some(71));
        assert_eq!(solve(5.0, |_| Some(4.0)), None);
    }
}
