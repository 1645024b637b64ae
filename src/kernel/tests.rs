//! Kernels against plain loops in f64, at every level that this processor has.

use proptest::prelude::*;

use super::simd::{FORCED, Level, exp, ln};
use super::*;

/// Numbers between −1 and 1 that look random.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| draw()).collect()
}

/// Runs at every level: all must be near each other, and those with FMA equal to the bit.
fn at_every_level(run: impl Fn() -> Vec<f32>) -> Vec<f32> {
    let at = |level: Level| {
        FORCED.set(Some(level));
        let found = run();
        FORCED.set(None);
        found
    };
    let (portable, avx2, avx512) = (at(Level::Portable), at(Level::Avx2), at(Level::Avx512));
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&avx2), bits(&avx512));
    near(&portable, &wide(&avx512), 2e-5);
    avx512
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

fn near(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(error <= tolerance * (1.0 + expected.abs()), "element {at}: {found} against {expected}");
    }
}

/// The slope of a sum of `weights` times what `run` gives for `x`, by central differences.
fn slopes(x: &[f64], weights: &[f32], run: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let total = |x: &[f64]| run(x).iter().zip(weights).map(|(y, weight)| y * f64::from(*weight)).sum::<f64>();
    let slope = |at: usize| {
        let moved = |by: f64| {
            let mut x = x.to_vec();
            x[at] += by;
            total(&x)
        };
        (moved(1e-5) - moved(-1e-5)) / 2e-5
    };
    (0..x.len()).map(slope).collect()
}

#[test]
fn exp_is_exact_to_a_few_last_bits() {
    for at in -8600..8800 {
        let x = at as f32 / 100.0;
        let expected = libm::exp(f64::from(x));
        assert!((f64::from(exp::<true>(x)) / expected - 1.0).abs() < 3e-7, "{x}");
    }
}

#[test]
fn ln_is_exact_to_a_few_last_bits() {
    for at in 1..20_000 {
        let x = (f64::from(at) / 10_000.0) as f32;
        let expected = libm::log(f64::from(x));
        let error = (f64::from(ln::<true>(x)) - expected).abs();
        assert!(error <= 3e-7 * expected.abs(), "{x}: {error}");
    }
    assert!((ln::<true>(1e-30) + 69.077_55).abs() < 1e-5 && (ln::<true>(1e30) - 69.077_55).abs() < 1e-5);
}

fn plain_norm(centered: bool, x: &[f64], weight: &[f32]) -> Vec<f64> {
    let row = |x: &[f64]| {
        let width = x.len() as f64;
        let mean = if centered { x.iter().sum::<f64>() / width } else { 0.0 };
        let root = 1.0 / (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width + 1e-6).sqrt();
        x.iter().zip(weight).map(|(x, weight)| (x - mean) * root * f64::from(*weight)).collect::<Vec<_>>()
    };
    x.chunks(weight.len()).flat_map(row).collect()
}

/// Attention of one row without blocks, from q|k|v that are neither normed nor rotated.
fn plain_attention(shape: AttentionShape, starts: &[u32], angles: &[Vec<[f64; 2]>], qkv: &[f64]) -> Vec<f64> {
    let (k, t) = (shape.width, starts.len());
    let head = |token: usize, at: usize, rotated: bool| -> Vec<f64> {
        let x = &qkv[token * shape.packed() + at * k..][..k];
        if !rotated {
            return x.to_vec();
        }
        let pair = |i: usize| {
            let [cos, sin] = angles[token][i % (k / 2)];
            if i < k / 2 { x[i] * cos - x[i + k / 2] * sin } else { x[i] * cos + x[i - k / 2] * sin }
        };
        (0..k).map(pair).collect()
    };
    let mut out = vec![0.0; t * shape.merged()];
    for query in 0..t {
        for h in 0..shape.queries {
            let (q, g) = (head(query, h, true), h / (shape.queries / shape.keys));
            let seen: Vec<usize> = (starts[query] as usize..=query).collect();
            let dot = |key: &usize| {
                let other = head(*key, shape.queries + g, true);
                (q.iter().zip(other).map(|(a, b)| a * b).sum::<f64>() / (k as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = seen.iter().map(dot).collect();
            let total: f64 = scores.iter().sum();
            for (key, score) in seen.into_iter().zip(scores) {
                let v = head(key, shape.queries + shape.keys + g, false);
                (0..k).for_each(|i| out[query * shape.merged() + h * k + i] += score / total * v[i]);
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn norms_and_their_slopes(width in 1..40_usize, rows in 1..4_usize, centered: bool, seed: u64) {
        let (x, weight, dy) = (numbers(width * rows, seed), numbers(width, seed + 1), numbers(width * rows, seed + 2));
        let form = Norm { rule: NormRule::Root { centered, eps: 1e-6 }, weight: &weight, bias: None };
        // The variance of one element is 0, and its norm's slope beyond any tolerance.
        prop_assume!(width > 2);
        let found = at_every_level(|| {
            let (mut y, mut stats) = (vec![0.0; x.len()], vec![[0.0; 2]; rows]);
            norm(form, &x, &mut y, &mut stats);
            y
        });
        near(&found, &plain_norm(centered, &wide(&x), &weight), 1e-5);
        let (mut y, mut stats) = (vec![0.0; x.len()], vec![[0.0; 2]; rows]);
        norm(form, &x, &mut y, &mut stats);
        let (mut dx, mut dweight) = (vec![0.0; x.len()], vec![0.0; width]);
        norm_backward(form, &dy, &x, &stats, &mut dx, &mut NormSlopes { weight: &mut dweight, bias: None, alpha: &mut 0.0 });
        near(&dx, &slopes(&wide(&x), &dy, |x| plain_norm(centered, x, &weight)), 2e-3);
    }

    #[test]
    fn dynamic_tanh_and_its_slopes(width in 1..40_usize, rows in 1..4_usize, alpha in 0.01..3.0_f32, shifted: bool, seed: u64) {
        let (x, dy) = (numbers(width * rows, seed), numbers(width * rows, seed + 2));
        let (weight, bias) = (numbers(width, seed + 1), if shifted { numbers(width, seed + 3) } else { vec![0.0; width] });
        let bent = |x: &[f64], alpha: f64, weight: &[f64], bias: &[f64]| -> Vec<f64> {
            let row = |x: &[f64]| (0..width).map(|at| (alpha * x[at]).tanh() * weight[at] + bias[at]).collect::<Vec<_>>();
            x.chunks(width).flat_map(row).collect()
        };
        let form = Norm { rule: NormRule::Tanh { alpha }, weight: &weight, bias: shifted.then_some(bias.as_slice()) };
        let found = at_every_level(|| {
            let mut y = vec![0.0; x.len()];
            norm(form, &x, &mut y, &mut vec![[0.0; 2]; rows]);
            y
        });
        let (wx, ww, wb, wa) = (wide(&x), wide(&weight), wide(&bias), f64::from(alpha));
        near(&found, &bent(&wx, wa, &ww, &wb), 1e-6);
        let run = || {
            let (mut dx, mut dweight, mut dbias, mut dalpha) = (vec![0.0; x.len()], vec![0.0; width], vec![0.0; width], 0.0);
            let mut own = NormSlopes { weight: &mut dweight, bias: shifted.then_some(&mut dbias[..]), alpha: &mut dalpha };
            norm_backward(form, &dy, &x, &vec![[0.0; 2]; rows], &mut dx, &mut own);
            [dx, dweight, dbias, vec![dalpha as f32]].concat()
        };
        let found = at_every_level(run);
        let mut expected = slopes(&wx, &dy, |x| bent(x, wa, &ww, &wb));
        expected.extend(slopes(&ww, &dy, |weight| bent(&wx, wa, weight, &wb)));
        expected.extend(slopes(&wb, &dy, |bias| bent(&wx, wa, &ww, bias)).into_iter().map(|slope| if shifted { slope } else { 0.0 }));
        expected.extend(slopes(&[wa], &dy, |alpha| bent(&wx, alpha[0], &ww, &wb)));
        near(&found, &expected, 1e-5);
    }

    #[test]
    fn attention_and_its_slopes(
        (keys, group, half) in (1..3_usize, 1..3_usize, 1..11_usize),
        (t, cut) in (1..80_usize, 0..80_usize),
        seed: u64,
    ) {
        let shape = AttentionShape { queries: keys * group, keys, width: 2 * half };
        let starts: Vec<u32> = (0..t).map(|at| if at >= cut { cut as u32 } else { 0 }).collect();
        let positions: Vec<u32> = starts.iter().enumerate().map(|(at, start)| at as u32 - start).collect();
        let rotations = Rotations::new(10_000.0, shape.width, t);
        let angle = |at: &u32| (0..half).map(|i| {
            let angle = f64::from(*at) * 10_000_f64.powf(-2.0 * i as f64 / shape.width as f64);
            [angle.cos(), angle.sin()]
        }).collect();
        let angles: Vec<Vec<[f64; 2]>> = positions.iter().map(angle).collect();
        let sequence = Sequence { starts: &starts, rotation: Some((&positions, &rotations)) };
        let (qkv, dy) = (numbers(t * shape.packed(), seed), numbers(t * shape.merged(), seed + 1));
        let run = || {
            let (mut out, mut lse) = (vec![0.0; t * shape.merged()], vec![0.0; t * shape.queries]);
            let (mut dqkv, work) = (vec![0.0; qkv.len()], &mut Workspace::default());
            attention(shape, &HeadNorms::default(), sequence, &qkv, &mut out, &mut lse, work);
            let saved = (&out[..], &lse[..]);
            let mut alphas = [0.0; 3];
            let mut none = alphas.each_mut().map(|alpha| NormSlopes { weight: &mut [], bias: None, alpha });
            attention_backward(shape, &HeadNorms::default(), sequence, &qkv, saved, &dy, &mut dqkv, &mut none, work);
            [out, dqkv].concat()
        };
        let found = at_every_level(run);
        let (out, dqkv) = found.split_at(t * shape.merged());
        near(out, &plain_attention(shape, &starts, &angles, &wide(&qkv)), 1e-5);
        if t <= 20 {
            near(dqkv, &slopes(&wide(&qkv), &dy, |qkv| plain_attention(shape, &starts, &angles, qkv)), 1e-5);
        }
    }

    #[test]
    fn products_of_any_sides(m in 1..20_usize, n in 1..20_usize, k in 1..20_usize, seed: u64) {
        let (a, b) = (numbers(m * k, seed), numbers(n * k, seed + 1));
        let mut out = vec![1.0; m * n];
        product(ViewMut::new(&mut out, m, n), true, View::new(&a, m, k), View::new(&b, n, k).t());
        let cell = |at: usize| 1.0 + (0..k).map(|p| f64::from(a[at / n * k + p]) * f64::from(b[at % n * k + p])).sum::<f64>();
        near(&out, &(0..m * n).map(cell).collect::<Vec<_>>(), 1e-5);
    }

    #[test]
    fn activations_and_their_slopes(rows in 1..4_usize, hidden in 1..40_usize, seed: u64) {
        let (x, d) = (numbers(2 * rows * hidden, seed), numbers(rows * hidden, seed + 1));
        let silu = |g: f64| g / (1.0 + (-g).exp());
        let row = |row: &[f64]| (0..hidden).map(|at| silu(row[at]) * row[hidden + at]).collect::<Vec<_>>();
        let plain = |x: &[f64]| x.chunks(2 * hidden).flat_map(row).collect::<Vec<_>>();
        let found = at_every_level(|| {
            let (mut x, mut out) = (x.clone(), d.clone());
            swiglu_backward(&mut x, &mut out, hidden);
            [out, x].concat()
        });
        near(&found[..d.len()], &plain(&wide(&x)), 1e-6);
        near(&found[d.len()..], &slopes(&wide(&x), &d, plain), 1e-5);
        let bend = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
        let found = at_every_level(|| {
            let (mut x, mut out) = (x[..d.len()].to_vec(), d.clone());
            gelu_backward(&mut x, &mut out);
            [out, x].concat()
        });
        let plain = |x: &[f64]| x.iter().map(|x| bend(*x)).collect::<Vec<_>>();
        near(&found[..d.len()], &plain(&wide(&x[..d.len()])), 1e-6);
        near(&found[d.len()..], &slopes(&wide(&x[..d.len()]), &d, plain), 1e-5);
    }

    #[test]
    fn losses_and_their_slopes(vocabulary in 3..60_usize, kept in 1..5_usize, tau in 0.5..3.0_f32, beta in 0.05..0.95_f64, seed: u64) {
        let scaled = |seed: u64| numbers(vocabulary, seed).into_iter().map(|z| 4.0 * z).collect::<Vec<_>>();
        let (z, other, kept) = (scaled(seed), scaled(seed + 1), kept.min(vocabulary));
        let soft = |z: &[f64]| {
            let exps: Vec<f64> = z.iter().map(|z| (z / f64::from(tau)).exp()).collect();
            let total: f64 = exps.iter().sum();
            exps.into_iter().map(|e| e / total).collect::<Vec<_>>()
        };
        let p = soft(&wide(&other));
        let all: Vec<f32> = p.iter().map(|p| p.ln() as f32).collect();
        let tokens: Vec<usize> = (0..kept).collect();
        let rest = p[kept..].iter().sum::<f64>().ln() as f32;
        let cells = TeacherCells { tokens: &tokens, logs: &all[..kept], rest };
        for divergence in [Divergence::Kl, Divergence::ReverseKl, Divergence::Jsd { beta }] {
            let terms = Softening { temperature: tau, cross_entropy: 0.3, divergence: Some((divergence, 0.7)) };
            for heard in [Heard::Logits(&other), Heard::Logs(&all), Heard::Top(cells)] {
                let merged = |of: &[f64]| match heard {
                    Heard::Top(_) if kept < vocabulary => [&of[..kept], &[of[kept..].iter().sum::<f64>()]].concat(),
                    _ => of.to_vec(),
                };
                let plain = |z: &[f64]| {
                    let q = soft(z);
                    // The kernel's cross entropy is at τ = 1; with its slope scaled by τ it may be tested at any.
                    vec![-0.3 * f64::from(tau) * q[1].ln() + 0.7 * plain_divergence(divergence, &merged(&p), &merged(&q))]
                };
                let found = at_every_level(|| {
                    let (mut gradient, mut work) = (vec![0.0; vocabulary], vec![0.0; vocabulary]);
                    let value = loss_of_row(terms, &z, 1, heard, 1.0, &mut work, &mut gradient);
                    gradient.push(value as f32);
                    gradient
                });
                let (value, gradient) = (f64::from(found[vocabulary]), &found[..vocabulary]);
                let expected = plain(&wide(&z))[0] + 0.3 * (f64::from(tau) - 1.0) * soft(&wide(&z))[1].ln();
                prop_assert!((value - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{value} against {expected}");
                near(gradient, &slopes(&wide(&z), &[1.0], plain), 1e-5);
            }
        }
        let plain = |z: &[f64]| vec![z.iter().zip(&other).map(|(z, t)| (z - f64::from(*t)).powi(2)).sum::<f64>() / vocabulary as f64];
        let found = at_every_level(|| {
            let mut gradient = vec![0.0; vocabulary];
            let value = squares_of_row(&z, &other, 1.0, &mut gradient);
            gradient.push(value as f32);
            gradient
        });
        near(&found[vocabulary..], &plain(&wide(&z)), 1e-5);
        near(&found[..vocabulary], &slopes(&wide(&z), &[1.0], plain), 1e-5);
    }
}

fn plain_divergence(divergence: Divergence, p: &[f64], q: &[f64]) -> f64 {
    let kl = |p: &[f64], q: &[f64]| p.iter().zip(q).map(|(p, q)| p * (p / q).ln()).sum::<f64>();
    match divergence {
        Divergence::Kl => kl(p, q),
        Divergence::ReverseKl => kl(q, p),
        Divergence::Jsd { beta } => {
            let m: Vec<f64> = p.iter().zip(q).map(|(p, q)| beta * p + (1.0 - beta) * q).collect();
            beta * kl(p, &m) + (1.0 - beta) * kl(q, &m)
        }
    }
}

/// A teacher that is the student has nothing to teach: value and slopes are 0, whatever the temperature.
#[test]
fn a_teacher_that_is_the_student_teaches_nothing() {
    let z: Vec<f32> = numbers(301, 5).into_iter().map(|z| 20.0 * z).collect();
    for divergence in [Divergence::Kl, Divergence::ReverseKl, Divergence::Jsd { beta: 0.9 }] {
        let (mut gradient, mut work) = (vec![0.0; 301], vec![0.0; 301]);
        let terms = Softening { temperature: 2.0, cross_entropy: 0.0, divergence: Some((divergence, 1.0)) };
        let value = loss_of_row(terms, &z, 7, Heard::Logits(&z), 1.0, &mut work, &mut gradient);
        assert!(value.abs() < 1e-6 && gradient.iter().all(|slope| slope.abs() < 1e-7), "{divergence:?}: {value}");
    }
}

/// Where student and teacher are certain of different tokens, no exponential overflows and no logarithm is of zero.
#[test]
fn certainties_that_contradict_each_other_stay_finite() {
    let (z, other) = ([200.0, 0.0, -200.0, 0.0], [-200.0, 0.0, 200.0, 1.0]);
    let logs: Vec<f32> = other.iter().map(|t| t - 200.0).collect();
    let cells = TeacherCells { tokens: &[2, 3], logs: &logs[2..], rest: -200.0 };
    for (divergence, expected) in
        [(Divergence::Kl, 400.0), (Divergence::ReverseKl, 400.0), (Divergence::Jsd { beta: 0.5 }, 2_f64.ln())]
    {
        for heard in [Heard::Logits(&other), Heard::Logs(&logs), Heard::Top(cells)] {
            let (mut gradient, mut work) = ([0.0; 4], [0.0; 4]);
            let terms = Softening { temperature: 1.0, cross_entropy: 0.0, divergence: Some((divergence, 1.0)) };
            let value = loss_of_row(terms, &z, 0, heard, 1.0, &mut work, &mut gradient);
            let expected = match (heard, divergence) {
                // What is left to the rest is as little as the largest of its tokens.
                (Heard::Top(_), Divergence::ReverseKl) => 200.0,
                _ => expected,
            };
            assert!((value / expected - 1.0).abs() < 1e-5, "{divergence:?}, {heard:?}: {value}");
            assert!(gradient.iter().all(|slope| slope.is_finite()));
        }
    }
}

#[test]
fn adamw_is_its_formula() {
    let (mut w, mut m, mut v, g) = (numbers(37, 1), numbers(37, 2), numbers(37, 3), numbers(37, 4));
    v.iter_mut().for_each(|v| *v = v.abs());
    let (w0, m0, v0) = (wide(&w), wide(&m), wide(&v));
    let rule = Adam { scale: 0.5, first: [0.9, 0.1], second: [0.95, 0.05], rate: 0.02, root: 1.5, eps: 1e-8, keep: 0.99 };
    adamw(&mut w, &mut m, &mut v, &g, rule);
    for at in 0..37 {
        let g = 0.5 * f64::from(g[at]);
        let (m1, v1) = (0.9 * m0[at] + 0.1 * g, 0.95 * v0[at] + 0.05 * g * g);
        let expected = 0.99 * w0[at] - 0.02 * m1 / (v1.sqrt() * 1.5 + 1e-8);
        assert!((f64::from(w[at]) - expected).abs() < 1e-6 && (f64::from(m[at]) - m1).abs() < 1e-6);
    }
    let squares: f64 = wide(&g).iter().map(|g| g * g).sum();
    assert!((sum_of_squares(&g) / squares - 1.0).abs() < 1e-6);
}
