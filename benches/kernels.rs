//! Kernels one by one, on one thread: `cargo bench --bench kernels -- [NAME]`. Sides are those of the shape L of `xrun bench`, one shard of it.

use divan::Bencher;
use divan::counter::ItemsCount;
use xrun::kernel::{self, Adam, AttentionShape, HeadNorms, Heard, NormSlopes, Sequence, Softening, View, ViewMut, Workspace};

// Tokens, width, hidden width, vocabulary, context.
const N: usize = 512;
const D: usize = 512;
const F: usize = 1536;
const V: usize = 16_384;
const T: usize = 256;
const HEADS: AttentionShape = AttentionShape { queries: 8, keys: 4, width: 64 };

fn main() {
    divan::main();
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|at| (at as f32 * 0.37).sin()).collect()
}

/// y (N, F) = x (N, D) Wᵀ: forward.
#[divan::bench]
fn product_forward(bencher: Bencher<'_, '_>) {
    let (x, w, mut y) = (numbers(N * D), numbers(F * D), numbers(N * F));
    let product = || kernel::product(ViewMut::new(&mut y, N, F), false, View::new(&x, N, D), View::new(&w, F, D).t());
    bencher.counter(ItemsCount::new(2 * N * D * F)).bench_local(product);
}

/// dx (N, D) = dy (N, F) W.
#[divan::bench]
fn product_of_inputs(bencher: Bencher<'_, '_>) {
    let (dy, w, mut dx) = (numbers(N * F), numbers(F * D), numbers(N * D));
    let product = || kernel::product(ViewMut::new(&mut dx, N, D), false, View::new(&dy, N, F), View::new(&w, F, D));
    bencher.counter(ItemsCount::new(2 * N * D * F)).bench_local(product);
}

/// dW (F, D) = dyᵀ x.
#[divan::bench]
fn product_of_weights(bencher: Bencher<'_, '_>) {
    let (dy, x, mut dw) = (numbers(N * F), numbers(N * D), numbers(F * D));
    let product = || kernel::product(ViewMut::new(&mut dw, F, D), false, View::new(&dy, N, F).t(), View::new(&x, N, D));
    bencher.counter(ItemsCount::new(2 * N * D * F)).bench_local(product);
}

#[divan::bench]
fn attention(bencher: Bencher<'_, '_>) {
    let (qkv, mut out, mut lse) = (numbers(T * HEADS.packed()), vec![0.0; T * HEADS.merged()], vec![0.0; HEADS.queries * T]);
    let (starts, mut work) = (vec![0; T], Workspace::default());
    let sequence = Sequence { starts: &starts, rotation: None };
    let (norms, counter) = (HeadNorms::default(), ItemsCount::new(2 * T * T * HEADS.merged()));
    bencher.counter(counter).bench_local(|| kernel::attention(HEADS, &norms, sequence, &qkv, &mut out, &mut lse, &mut work));
}

#[divan::bench]
fn attention_backward(bencher: Bencher<'_, '_>) {
    let (qkv, mut out, mut lse) = (numbers(T * HEADS.packed()), vec![0.0; T * HEADS.merged()], vec![0.0; HEADS.queries * T]);
    let (starts, mut work) = (vec![0; T], Workspace::default());
    let (sequence, norms) = (Sequence { starts: &starts, rotation: None }, HeadNorms::default());
    kernel::attention(HEADS, &norms, sequence, &qkv, &mut out, &mut lse, &mut work);
    let (d_out, mut dqkv, mut alpha) = (numbers(T * HEADS.merged()), vec![0.0; T * HEADS.packed()], [0.0; 3]);
    bencher.counter(ItemsCount::new(5 * T * T * HEADS.merged())).bench_local(|| {
        let mut slopes = alpha.each_mut().map(|alpha| NormSlopes { weight: &mut [], bias: None, alpha });
        let saved = (&out[..], &lse[..]);
        kernel::attention_backward(HEADS, &norms, sequence, &qkv, saved, &d_out, &mut dqkv, &mut slopes, &mut work);
    });
}

#[divan::bench]
fn swiglu(bencher: Bencher<'_, '_>) {
    let (wide, mut out) = (numbers(N * 2 * F), vec![0.0; N * F]);
    bencher.counter(ItemsCount::new(N * F)).bench_local(|| kernel::swiglu(&wide, &mut out, F));
}

#[divan::bench]
fn loss(bencher: Bencher<'_, '_>) {
    let (logits, mut exponentials, mut gradient) = (numbers(V), vec![0.0; V], vec![0.0; V]);
    let terms = Softening { temperature: 1.0, cross_entropy: 1.0, divergence: None };
    let row = || kernel::loss_of_row(terms, &logits, 7, Heard::Nothing, 1.0, &mut exponentials, &mut gradient);
    bencher.counter(ItemsCount::new(V)).bench_local(row);
}

#[divan::bench]
fn adamw(bencher: Bencher<'_, '_>) {
    let (mut w, mut m, mut v, gradient) = (numbers(F * D), vec![0.0; F * D], vec![0.0; F * D], numbers(F * D));
    let rule = Adam { scale: 1.0, first: [0.9, 0.1], second: [0.95, 0.05], rate: 1e-3, root: 1.0, eps: 1e-8, keep: 1.0 };
    bencher.counter(ItemsCount::new(F * D)).bench_local(|| kernel::adamw(&mut w, &mut m, &mut v, &gradient, rule));
}
