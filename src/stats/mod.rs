//! What may be concluded from a few seeds and a sample of documents: estimates, intervals, tests, verdicts.
//!
//! Owns the statistical conventions, each stated where it is computed: differences are paired by seed, intervals are Student's t at
//! 95 %, equivalence is two one-sided tests at 5 % each, several claims of a study share one error rate by Holm's method.
//! Deliberately knows no arm, no metric and no record: everything here is a function of plain numbers. Invariant: a number that is
//! not finite never enters a mean; fewer than two values give no interval, and so no verdict.

mod crossing;
mod documents;
mod estimate;
mod evidence;
mod holm;
mod power;
mod response;
mod sign_flip;
mod student;

pub use crossing::{last_crossing, stays_below_from};
pub use documents::OverDocuments;
pub use estimate::{Estimate, LEVEL, median, sum};
pub use evidence::{Evidence, Lean, Verdict, directional, equivalence, overtaking};
pub use holm::holm;
pub use power::{POWER, minimum_detectable, seeds_needed};
pub use response::{Recovery, Response, Windows, response};
pub use sign_flip::{sign_flip, sign_flip_upper};
pub use student::{quantile, two_sided_p, upper_p};
