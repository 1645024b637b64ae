//! Updates of parameters: each in two halves, side by side.

use dfdx::prelude::Cpu;

use super::host::{view, view_mut};
use crate::kernel::{self, Adam, Signed, View, ViewMut};
use crate::tensor::update::{LEAST_NORM, NEWTON_SCHULZ};
use crate::tensor::{Moved, Rule, Update};

/// Moves a parameter and what is kept of its past, where they lie.
pub(super) fn update(moved: &mut Moved<'_, f32, Cpu>) {
    let shape = moved.weight.shape();
    let Update { rule, lr, decay, scale, number } = moved.by;
    let gradient = view(moved.gradient);
    let w = view_mut(moved.weight);
    let half = w.len() / 2;
    let (g0, g1) = gradient.split_at(half);
    let keep = (1.0 - lr * decay) as f32;
    let pair = |beta: f64| [beta as f32, (1.0 - beta) as f32];
    let mut kept: Vec<&mut [f32]> = moved.kept.iter_mut().map(view_mut).collect();
    match (rule, kept.as_mut_slice()) {
        (Rule::AdamW { betas: (b1, b2), eps }, [m, v]) => {
            let rule = Adam {
                scale: scale as f32,
                first: pair(b1),
                second: pair(b2),
                rate: (lr / (1.0 - libm::pow(b1, number as f64))) as f32,
                root: (1.0 / libm::sqrt(1.0 - libm::pow(b2, number as f64))) as f32,
                eps: eps as f32,
                keep,
            };
            let ((w0, w1), (m0, m1), (v0, v1)) = (w.split_at_mut(half), m.split_at_mut(half), v.split_at_mut(half));
            rayon::join(|| kernel::adamw(w0, m0, v0, g0, rule), || kernel::adamw(w1, m1, v1, g1, rule));
        }
        (Rule::Sgd { .. }, []) => blend(w, keep, -lr * scale, gradient),
        (Rule::Sgd { momentum, nesterov }, [m]) => {
            blend(m, momentum as f32, scale, gradient);
            blend(w, keep, if nesterov { -lr * momentum } else { -lr }, m);
            if nesterov {
                blend(w, 1.0, -lr * scale, gradient);
            }
        }
        (Rule::Lion { betas: (b1, b2) }, [m]) => {
            let rule = Signed { scale: scale as f32, along: pair(b1), kept: pair(b2), rate: lr as f32, keep };
            let ((w0, w1), (m0, m1)) = (w.split_at_mut(half), m.split_at_mut(half));
            rayon::join(|| kernel::lion(w0, m0, g0, rule), || kernel::lion(w1, m1, g1, rule));
        }
        (Rule::Muon { momentum, nesterov }, [m]) => {
            let new = (1.0 - momentum) * scale;
            blend(m, momentum as f32, new, gradient);
            let mut along = m.to_vec();
            if nesterov {
                blend(&mut along, momentum as f32, new, gradient);
            }
            let (rows, columns) = (shape[0], w.len() / shape[0].max(1));
            blend(w, keep, -lr * Rule::size(rows, columns), &orthogonal(along, rows, columns));
        }
        // Who calls keeps as many tensors as the rule asks for.
        _ => unreachable!("a rule keeps as many tensors as it says"),
    }
}

/// y ← a y + b x.
fn blend(y: &mut [f32], a: f32, b: f64, x: &[f32]) {
    let half = y.len() / 2;
    let ((y0, y1), (x0, x1)) = (y.split_at_mut(half), x.split_at(half));
    rayon::join(|| kernel::blend(y0, a, b as f32, x0), || kernel::blend(y1, a, b as f32, x1));
}

/// O(u) of [`Rule::Muon`], (rows, columns) like u.
fn orthogonal(mut u: Vec<f32>, rows: usize, columns: usize) -> Vec<f32> {
    let norm = libm::sqrt(kernel::sum_of_squares(&u)).max(LEAST_NORM);
    kernel::scaled(&mut u, (1.0 / norm) as f32);
    let (short, long) = (rows.min(columns), rows.max(columns));
    let mut x = if rows > columns { transposed(&u, rows, columns) } else { u };
    let (mut square, mut factor, mut next) = (vec![0.0; short * short], vec![0.0; short * short], vec![0.0; short * long]);
    let (steps, [a, b, c]) = NEWTON_SCHULZ;
    for _ in 0..steps {
        product(&mut square, &x, View::new(&x, short, long).t());
        product(&mut factor, &square, View::new(&square, short, short));
        kernel::blend(&mut factor, c as f32, b as f32, &square);
        product(&mut next, &factor, View::new(&x, short, long));
        blend(&mut x, a as f32, 1.0, &next);
    }
    if rows > columns { transposed(&x, columns, rows) } else { x }
}

/// out (m, n) = a (m, k) · b (k, n), in two parts by rows.
fn product(out: &mut [f32], a: &[f32], b: View<'_>) {
    let (inner, outward) = b.sides();
    let rows = a.len() / inner.max(1);
    let half = rows / 2;
    let (out0, out1) = out.split_at_mut(half * outward);
    let (a0, a1) = a.split_at(half * inner);
    let part = |out: &mut [f32], a: &[f32], rows: usize| {
        kernel::product(ViewMut::new(out, rows, outward), false, View::new(a, rows, inner), b);
    };
    rayon::join(|| part(out0, a0, half), || part(out1, a1, rows - half));
}

/// (columns, rows) from (rows, columns).
fn transposed(x: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| x[row * columns + column])).collect()
}
