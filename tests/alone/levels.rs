//! The instruction sets that kernels are compiled for, forced: whole steps of training come out alike.

use xrun::kernel::{Level, at_most};
use xrun::train::bench::{Course, time};

use crate::memory::{phase, study};

/// AVX2 rounds as AVX-512 does, bit for bit; without fused multiply-add each operation rounds twice, and losses differ by that.
///
/// On a processor that lacks one of them the next lower level takes its place.
#[test]
fn steps_are_the_same_at_every_level() {
    let _alone = crate::alone();
    let model = "layers 2, block 1 layer, width 48, heads 3, kv 1, ffn swiglu(40), vocabulary 300";
    let phase = phase(&study(model, "adamw(lr: 1e-2)", "sandwich", "joint(steps: 9 steps)", 40, 4));
    let losses = |level| {
        at_most(level);
        let course = Course { warmup: 0, steps: 8, threads: 2, frozen: 0 };
        let seen = time(&phase, course, None).expect("it trains").losses;
        at_most(Level::Avx512);
        seen
    };
    let (best, wide, plain) = (losses(Level::Avx512), losses(Level::Avx2), losses(Level::Portable));
    assert!(best[7] < best[0] - 0.1, "it learns: {best:?}");
    assert_eq!(best, wide);
    for (best, plain) in best.iter().zip(&plain) {
        assert!((best / plain - 1.0).abs() < 1e-5, "{best} and {plain}");
    }
}
