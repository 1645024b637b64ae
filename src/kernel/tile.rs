//! The small products inside attention: eight rows of a result at a time, kept in registers.
//!
//! Each element of a result is one chain of multiply-adds in the order of the inner axis, whatever the instruction set.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::simd::{LANES, Level, level};

/// Rows of a result.
pub(super) const ROWS: usize = 8;

/// Left side: element (i, p) at i · `row` + p · `inner`.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub data: &'a [f32],
    pub row: usize,
    pub inner: usize,
}

/// out (8, n) = left (8, k) · right (k, n), or += with `accumulate`. Rows of `right` are `right_row` apart, those of `out` `out_row`; n is
/// a multiple of 16.
#[inline]
pub(super) fn product8(
    (n, k): (usize, usize),
    left: Left<'_>,
    (right, right_row): (&[f32], usize),
    (out, out_row): (&mut [f32], usize),
    accumulate: bool,
) {
    assert!(n.is_multiple_of(LANES) && out.len() >= (ROWS - 1) * out_row + n, "a tile's result fits");
    if k > 0 {
        assert!(left.data.len() > (ROWS - 1) * left.row + (k - 1) * left.inner, "a tile's left side fits");
        assert!(right.len() >= (k - 1) * right_row + n, "a tile's right side fits");
    }
    match level() {
        // SAFETY: `level` found the features that these versions are compiled for, and the assertions above are all that they ask
        // of lengths.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe {
            let mut at = 0;
            while at + 2 * LANES <= n {
                avx512_32(k, left, (&right[at..], right_row), (&mut out[at..], out_row), accumulate);
                at += 2 * LANES;
            }
            if at < n {
                avx512_16(k, left, (&right[at..], right_row), (&mut out[at..], out_row), accumulate);
            }
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe {
            for half in [0, ROWS / 2] {
                let left = Left { data: &left.data[(half * left.row).min(left.data.len())..], ..left };
                for at in (0..n).step_by(LANES) {
                    let out = &mut out[half * out_row + at..];
                    avx2_16(k, left, (&right[at..], right_row), (out, out_row), accumulate);
                }
            }
        },
        _ => portable((n, k), left, (right, right_row), (out, out_row), accumulate),
    }
}

fn portable(
    (n, k): (usize, usize),
    left: Left<'_>,
    (right, right_row): (&[f32], usize),
    (out, out_row): (&mut [f32], usize),
    accumulate: bool,
) {
    for row in 0..ROWS {
        for at in (0..n).step_by(LANES) {
            let out = &mut out[row * out_row + at..][..LANES];
            let mut sums = [0.0; LANES];
            if accumulate {
                sums.copy_from_slice(out);
            }
            for p in 0..k {
                let factor = left.data[row * left.row + p * left.inner];
                for (sum, right) in sums.iter_mut().zip(&right[p * right_row + at..][..LANES]) {
                    *sum += factor * *right;
                }
            }
            out.copy_from_slice(&sums);
        }
    }
}

/// One version: `rows` × (`vectors` · lanes of the vector type) of the result in registers.
///
/// # Safety
/// The processor has the features; with r rows and n columns of this version, `left` reaches (r−1) · row + (k−1) · inner,
/// `right` holds (k−1) · right_row + n elements and `out` (r−1) · out_row + n.
#[cfg(target_arch = "x86_64")]
macro_rules! tile {
    ($name:ident, $features:literal, $rows:expr, $vectors:expr, $lanes:expr, $load:ident, $store:ident, $all:ident, $fma:ident, $zero:ident) => {
        #[target_feature(enable = $features)]
        #[inline]
        unsafe fn $name(
            k: usize,
            left: Left<'_>,
            (right, right_row): (&[f32], usize),
            (out, out_row): (&mut [f32], usize),
            accumulate: bool,
        ) {
            let mut sums = [[$zero(); $vectors]; $rows];
            if accumulate {
                for (row, sums) in sums.iter_mut().enumerate() {
                    for (at, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: row < rows and at < vectors: within `out` by the caller's promise.
                        *sum = unsafe { $load(out.as_ptr().add(row * out_row + at * $lanes)) };
                    }
                }
            }
            for p in 0..k {
                let mut values = [$zero(); $vectors];
                for (at, value) in values.iter_mut().enumerate() {
                    // SAFETY: p < k: within `right` by the caller's promise.
                    *value = unsafe { $load(right.as_ptr().add(p * right_row + at * $lanes)) };
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: row < rows and p < k: within `left` by the caller's promise.
                    let factor = $all(unsafe { *left.data.as_ptr().add(row * left.row + p * left.inner) });
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum = $fma(factor, value, *sum);
                    }
                }
            }
            for (row, sums) in sums.iter().enumerate() {
                for (at, sum) in sums.iter().enumerate() {
                    // SAFETY: as where `out` is read.
                    unsafe { $store(out.as_mut_ptr().add(row * out_row + at * $lanes), *sum) };
                }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
tile!(avx512_32, "avx512f", 8, 2, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_setzero_ps);
#[cfg(target_arch = "x86_64")]
tile!(avx512_16, "avx512f", 8, 1, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_setzero_ps);
#[cfg(target_arch = "x86_64")]
tile!(avx2_16, "avx2,fma", 4, 2, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_setzero_ps);
