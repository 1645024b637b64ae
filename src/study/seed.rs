//! Random streams by name: the only place that makes a generator.
//!
//! Invariant: what a stream yields depends on the seed and its name alone, never on what was drawn before, so that a parameter's
//! first value is the same whenever it is created, and all arms of one seed are paired.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The stream `name` of `seed`, for example `parameter/layers.3.attention.q` or `order/epoch/2`.
pub fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut hasher = blake3::Hasher::new_derive_key("xrun 2026 named random stream v1");
    hasher.update(&seed.to_le_bytes());
    hasher.update(name.as_bytes());
    ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
}
