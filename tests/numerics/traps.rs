//! What dfdx 0.13 gets wrong or panics at, met on our own ground.

use std::path::Path;

use xrun::study::equation::Stream;
use xrun::tensor::Cpu;

use crate::build::*;

/// dfdx panics in backward when one tensor stands on both sides of an operation; here `x + x` is 2x, and `x + x0` in the first layer,
/// where both are one tensor, gets the gradient of both.
#[test]
fn one_tensor_on_both_sides() {
    let twice = |f: fn(Stream) -> Stream| add(add(x(), x()), f(norm(0, x())));
    let scaled = |f: fn(Stream) -> Stream| add(scale(xrun::study::equation::Scalar::Number(2.0), x()), f(norm(0, x())));
    let with_x0 = |f: fn(Stream) -> Stream| add(add(x(), Stream::Embedded), f(norm(0, x())));
    let gradients = |body| {
        let bench: Bench<f64, Cpu> = Bench::new(model(placement(false, body, true), 1), segment(1, 0..1, 1e-2));
        bench.gradients(None, &batch(2, 6, 1, 3), 0)
    };
    let (twice, scaled) = (gradients(sublayers(twice)), gradients(sublayers(scaled)));
    assert!((twice.0 - scaled.0).abs() < 1e-12);
    for (name, gradient) in &twice.1 {
        gradient.iter().zip(&scaled.1[name]).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{name}"));
    }
    assert!(gradients(sublayers(with_x0)).1["embedding"].iter().any(|value| *value != 0.0));
}

/// Words that stand for a trap: a slice's backward overwrites; `retaped` and `leaky_trace` begin a tape that may be lost; what is
/// broadcast must not be reshaped after (wrong gradients on Cuda); the allocation cache never shrinks.
#[test]
fn the_source_keeps_clear_of_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(root.join("src/tensor")).expect("a folder").flatten();
    let sources = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let sources: Vec<String> = sources.map(|path| std::fs::read_to_string(path).expect("reads")).collect();
    assert!(sources.iter().any(|source| source.contains("broadcast_like")), "they are where they were");
    for source in sources {
        for word in ["slice(", "retaped", "leaky_trace", "contiguous", "enable_cache", "optim::", "Adam::"] {
            assert!(!source.contains(word), "{word}");
        }
        for statement in source.split(';') {
            let after = statement.find("broadcast_like").map_or("", |at| &statement[at..]);
            assert!(!after.contains("reshape"), "{statement}");
        }
    }
    // Traps are known by version, and `half` newer than this breaks dfdx's bounds.
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("reads");
    assert!(manifest.contains("dfdx = { version = \"=0.13.0\"") && manifest.contains("half = \"=2.4.1\""));
}

/// dfdx panics at a token beyond the embedding; here it is an error that says so.
#[test]
fn a_token_beyond_the_vocabulary_is_an_error() {
    let bench: Bench<f32, Cpu> = Bench::new(model(pre(), 1), segment(1, 0..1, 1e-2));
    let mut batch = batch(2, 6, 1, 3);
    batch.labels[4] = 31;
    let seen = xrun::train::gradients::<f32, Cpu, xrun::tensor::Composed>(&bench.setting(), &bench.state, &[], &batch, 0);
    let text = seen.expect_err("31 is not a token").to_string();
    assert_eq!(text, "token 31 is beyond the model's vocabulary of 31");
}
