//! One source, several instruction sets: functions compiled for AVX-512, for AVX2 with FMA, and for any processor.
//!
//! The choice is made at run time, once. With FMA a·b + c rounds once, without it twice: the portable version may differ in the last
//! bits, the other two do not differ.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Lanes of every sum along an axis.
pub(super) const LANES: usize = 16;

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the build targets.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, VL, BW and DQ.
    Avx512,
}

#[cfg(test)]
thread_local! {
    /// The level that a test asks for on its thread.
    pub(super) static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// The best level of this processor.
pub(super) fn detected() -> Level {
    static DETECTED: OnceLock<Level> = OnceLock::new();
    *DETECTED.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        {
            let has512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            let has256 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            match (has512, has256) {
                (true, true) => Level::Avx512,
                (false, true) => Level::Avx2,
                (_, false) => Level::Portable,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Level::Portable
    })
}

/// What [`at_most`] allows.
static MOST: AtomicU8 = AtomicU8::new(Level::Avx512 as u8);

/// Lets the kernels of this process use no more than `level`, for comparing levels. The products of the `gemm` crate choose for themselves.
pub fn at_most(level: Level) {
    MOST.store(level as u8, Ordering::Relaxed);
}

/// The level in use: never above that of the processor.
pub(super) fn level() -> Level {
    #[cfg(test)]
    if let Some(forced) = FORCED.get() {
        return forced.min(detected());
    }
    match MOST.load(Ordering::Relaxed) {
        0 => Level::Portable,
        1 => Level::Avx2.min(detected()),
        _ => detected(),
    }
}

/// Defines functions that exist once for each [`Level`]. In a body, `FMA` says whether a fused multiply-add is one instruction.
macro_rules! multiversion {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body<const FMA: bool>($($arg: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
            fn avx512($($arg: $type),*) $(-> $result)? { body::<true>($($arg),*) }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $type),*) $(-> $result)? { body::<true>($($arg),*) }
            match $crate::kernel::simd::level() {
                // SAFETY: `level` found all of these features on this processor.
                #[cfg(target_arch = "x86_64")]
                $crate::kernel::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::kernel::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                _ => body::<false>($($arg),*),
            }
        }
    )*};
}
pub(super) use multiversion;

/// a·b + c.
#[inline(always)]
pub(super) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// e to the x by range reduction and a polynomial of degree 6 (Cephes' `expf`): relative error below 2e-7 between −87 and 88,
/// clamped to that range; −∞ gives a value below 2e-38.
#[inline(always)]
pub(super) fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding 1.5 · 2²³ leaves the nearest whole number in the low bits of the mantissa.
    const SHIFT: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, SHIFT);
    let whole = shifted - SHIFT;
    // ln 2 in two parts, the first exact in few bits.
    let rest = fma::<FMA>(whole, -0.693_359_4, x);
    let rest = fma::<FMA>(whole, 2.121_944_4e-4, rest);
    let mut sum = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        sum = fma::<FMA>(sum, rest, coefficient);
    }
    let fraction = fma::<FMA>(sum, rest * rest, rest + 1.0);
    fraction * f32::from_bits(shifted.to_bits().wrapping_sub(SHIFT.to_bits()).wrapping_add(127) << 23)
}

/// Natural logarithm of a positive normal number (Cephes' `logf`): relative error of a few last bits, also near 1.
#[inline(always)]
pub(super) fn ln<const FMA: bool>(x: f32) -> f32 {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    // x = m · 2^power with m from √½ to √2.
    let power = x.to_bits().wrapping_sub(ROOT_HALF) as i32 >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((power << 23) as u32));
    let (f, power) = (m - 1.0, power as f32);
    let mut sum = 7.037_684e-2;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        sum = fma::<FMA>(sum, f, coefficient);
    }
    let square = f * f;
    // ln 2 in two parts, the first exact in few bits.
    let low = fma::<FMA>(power, -2.121_944_4e-4, sum * f * square);
    fma::<FMA>(power, 0.693_359_4, f + fma::<FMA>(-0.5, square, low))
}

/// Sum of the lanes, always by the same tree.
#[inline(always)]
pub(super) fn across(lanes: [f32; LANES]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|at| lanes[at] + lanes[at + 8]);
    let four: [f32; 4] = std::array::from_fn(|at| eight[at] + eight[at + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Σ term(i) for i below `length`, over lanes; `term` is asked in no particular order within sixteen.
#[inline(always)]
pub(super) fn sum(length: usize, mut term: impl FnMut(usize, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let whole = length - length % LANES;
    let mut start = 0;
    while start < whole {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = term(start + lane, *sum);
        }
        start += LANES;
    }
    let mut total = across(lanes);
    for at in whole..length {
        total = term(at, total);
    }
    total
}

/// Two sums at once, as [`sum`].
#[inline(always)]
pub(super) fn two_sums(length: usize, mut term: impl FnMut(usize, f32, f32) -> (f32, f32)) -> (f32, f32) {
    let (mut one, mut two) = ([0.0; LANES], [0.0; LANES]);
    let whole = length - length % LANES;
    let mut start = 0;
    while start < whole {
        for (lane, (one, two)) in one.iter_mut().zip(&mut two).enumerate() {
            (*one, *two) = term(start + lane, *one, *two);
        }
        start += LANES;
    }
    let mut totals = (across(one), across(two));
    for at in whole..length {
        totals = term(at, totals.0, totals.1);
    }
    totals
}

/// The largest value; −∞ of none. NaN is passed over.
#[inline(always)]
pub(super) fn largest(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    let mut most = f32::NEG_INFINITY;
    for value in lanes {
        most = most.max(value);
    }
    for value in chunks.remainder() {
        most = most.max(*value);
    }
    most
}
