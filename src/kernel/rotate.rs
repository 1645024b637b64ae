//! Rotary embeddings (2104.09864) that rotate halves: (x₁, x₂) ← (x₁ cos − x₂ sin, x₂ cos + x₁ sin), angle position · base^(−2i/K).

/// Cosines and sines of every position below a bound: one table for all layers of a batch.
#[derive(Debug, Clone)]
pub struct Rotations {
    half: usize,
    /// (positions, K/2, 2): cosine and sine.
    table: Vec<[f32; 2]>,
}

impl Rotations {
    /// For heads of `width` at positions below `positions`.
    pub fn new(base: f64, width: usize, positions: usize) -> Self {
        let half = width / 2;
        let frequencies: Vec<f64> = (0..half).map(|at| libm::pow(base, -2.0 * at as f64 / width as f64)).collect();
        let angles = (0..positions).flat_map(|position| frequencies.iter().map(move |frequency| position as f64 * frequency));
        Self { half, table: angles.map(|angle| [libm::cos(angle) as f32, libm::sin(angle) as f32]).collect() }
    }
    /// Cosine and sine of each pair at a position.
    #[inline(always)]
    pub(super) fn at(&self, position: u32) -> &[[f32; 2]] {
        &self.table[position as usize * self.half..][..self.half]
    }
}
