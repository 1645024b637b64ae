//! Several claims, one error rate.
//!
//! Source: Holm (1979), Scand. J. Statist. 6, "A simple sequentially rejective multiple test procedure".

/// Adjusted p-values, in the order given: with p₍₁₎ ≤ … ≤ p₍ₘ₎, p̃₍ₖ₎ = max over j ≤ k of min(1, (m − j + 1) · p₍ⱼ₎).
///
/// A claim that cannot be tested yet belongs to the family all the same: give 1, so that the others' correction does not depend on
/// which runs have finished.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max(((p.len() - rank) as f64 * p[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}
