//! What must not matter does not: how a batch is cut, what padding holds, who shares a row, how many threads there are.

use xrun::tensor::{Composed, Cpu, Divergence, Fused, NoneTape, Operations, Param, TeacherRows};
use xrun::train::{Term, truncate};

use crate::build::*;

fn mixed() -> Vec<Term> {
    vec![
        Term::CrossEntropy { factor: 0.3 },
        Term::Apart { factor: 0.7 * 4.0, divergence: Divergence::Kl, temperature: 2.0, teacher: 0 },
    ]
}

#[test]
fn the_split_of_a_batch_does_not_matter() {
    let mut bench: Bench<f64, Cpu> = Bench::new(model(post(), 2), segment(2, 0..1, 1e-2));
    let teacher = teacher(&bench.model, 4);
    bench.terms = mixed();
    // 4 uneven rows in micro-batches of 4, 2, 1 and a ragged 3.
    let batch = batch(4, 9, 5, 3);
    let whole = bench.gradients(Some(&teacher), &batch, 0);
    for micro in [1, 2, 3] {
        bench.micro = micro;
        let parts = bench.gradients(Some(&teacher), &batch, 0);
        assert!((whole.0 - parts.0).abs() < 1e-12, "micro-batches of {micro}");
        for (name, gradient) in &whole.1 {
            gradient.iter().zip(&parts.1[name]).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{name}, {micro}"));
        }
    }
}

/// Eight uneven rows, packed and padded, at once and in two, four and eight parts, with both operations in f32.
#[test]
fn the_split_of_a_batch_does_not_matter_to_f32_either() {
    fn check<O: Operations<f32, Cpu>>() {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..1, 1e-2));
        let teacher = teacher(&bench.model, 4);
        (bench.terms, bench.micro) = (mixed(), 8);
        let batch = uneven(8, 12);
        let whole = bench.gradients_by::<O>(Some(&teacher), &batch, 0);
        for micro in [1, 2, 4] {
            bench.micro = micro;
            let parts = bench.gradients_by::<O>(Some(&teacher), &batch, 0);
            assert!((whole.0 / parts.0 - 1.0).abs() < 1e-6, "micro-batches of {micro}");
            for (name, gradient) in &whole.1 {
                let apart = gradient.iter().zip(&parts.1[name]).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                let size = gradient.iter().map(|a| a.powi(2)).sum::<f64>();
                assert!(apart <= 1e-10 * size, "{name}, micro-batches of {micro}: {apart} of {size}");
            }
        }
    }
    check::<Composed>();
    check::<Fused>();
}

#[test]
fn packed_documents_do_not_see_each_other() {
    fn check<O: Operations<f32, Cpu>>(context: usize) {
        let bench: Bench<f32, Cpu> = Bench::new(model(sandwich(), 2), segment(2, 0..1, 1e-2));
        let before = batch(2, context, 0, 8);
        for other in [0, 1] {
            let mut after = before.clone();
            for (at, token) in after.inputs.iter_mut().enumerate() {
                if before.document[at] == other {
                    *token = (*token + 1) % VOCABULARY as u32;
                }
            }
            let (before_logits, after_logits) = (bench.logits_by::<O>(&before).as_vec(), bench.logits_by::<O>(&after).as_vec());
            let cells = before_logits.chunks_exact(VOCABULARY).zip(after_logits.chunks_exact(VOCABULARY));
            for (at, (a, b)) in cells.enumerate() {
                let same = a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert_eq!(same, before.document[at] != other, "position {at} of {context}");
            }
        }
    }
    for context in [10, 50, 150] {
        check::<Composed>(context);
        check::<Fused>(context);
    }
}

/// The second document's logits are those of a row of its own: its positions begin at 0 again.
#[test]
fn a_document_does_not_know_where_in_the_row_it_is() {
    let bench: Bench<f64, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..1, 1e-2));
    let packed = batch(1, 10, 0, 8);
    let cut = packed.document.iter().position(|document| *document == 1).expect("two documents");
    let rest = |cells: &[u32]| cells[cut..].to_vec();
    let alone = xrun::data::Batch {
        rows: 1,
        context: 10 - cut,
        inputs: rest(&packed.inputs),
        labels: rest(&packed.labels),
        document: vec![0; 10 - cut],
        position: (0..(10 - cut) as u32).collect(),
        counted: vec![true; 10 - cut],
        structural: vec![false; 10 - cut],
        sequences: vec![0],
    };
    let expected = bench.logits(&alone);
    let seen = &bench.logits(&packed)[cut * VOCABULARY..];
    seen.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
}

#[test]
fn what_padding_holds_changes_nothing() {
    fn check<O: Operations<f32, Cpu>>() {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(post(), 2), segment(2, 0..1, 1e-2));
        let teacher = teacher(&bench.model, 4);
        bench.terms = mixed();
        let zeros = batch(3, 8, 4, 2);
        let mut noise = zeros.clone();
        for at in (0..zeros.inputs.len()).filter(|at| !zeros.counted[*at]) {
            (noise.inputs[at], noise.labels[at]) = (17, 23);
        }
        let gradients = |batch| bench.gradients_by::<O>(Some(&teacher), batch, 0);
        let (zeros, noise) = (gradients(&zeros), gradients(&noise));
        assert_eq!(zeros.0, noise.0);
        for (name, gradient) in &zeros.1 {
            assert_eq!(gradient, &noise.1[name], "{name}");
        }
    }
    check::<Composed>();
    check::<Fused>();
}

#[test]
fn a_row_of_padding_only_is_finite() {
    fn check<O: Operations<f32, Cpu>>() {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(post(), 2), segment(2, 0..1, 1e-2));
        let teacher = teacher(&bench.model, 4);
        bench.terms = mixed();
        let (loss, gradients) = bench.gradients_by::<O>(Some(&teacher), &batch(2, 6, 6, 2), 0);
        assert!(loss.is_finite() && gradients.values().flatten().all(|value| value.is_finite()));
        let (loss, gradients) = bench.gradients_by::<O>(Some(&teacher), &batch(1, 6, 6, 2), 0);
        assert!(loss == 0.0 && gradients.values().flatten().all(|value| *value == 0.0));
    }
    check::<Composed>();
    check::<Fused>();
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut model = model(pre(), 2);
            (model.width, model.head_dim, model.ffn) = (64, 16, xrun::study::Ffn::SwiGlu { width: 192 });
            let mut bench: Bench<f32, Cpu> = Bench::new(model, segment(2, 0..3, 1e-2));
            let batch = batch(8, 64, 3, 2);
            for at in 0..3 {
                bench.step(None, &batch, at, 1e-2);
            }
            let values = bench.state.params.0.values().flat_map(Param::values);
            values.map(f32::to_bits).collect::<Vec<u32>>()
        })
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

/// With K = V nothing is missing, and the truncated KL is the full one; with less, it is the KL of the coarser outcomes.
#[test]
fn a_truncated_teacher_keeps_the_missing_mass() {
    let device = Cpu::default();
    let matrix = |values: &[f64], shape: [usize; 2]| match Param::<f64, Cpu>::new(&device, values.to_vec(), &shape) {
        Ok(Param::Matrix(matrix)) => matrix,
        _ => unreachable!("two sides"),
    };
    let student = [0.3, -1.0, 2.0, 0.5, 0.1, 900.0, -900.0, 3.0];
    let teacher = [1.0, 0.2, -0.7, 2.2, 5.0, 1.0, 1.0, 0.0];
    let (z, t) = (matrix(&student, [2, 4]), matrix(&teacher, [2, 4]));
    let tau = 2.0;
    let full = Composed.log_probabilities(&t, tau).expect("memory");
    let logs: Vec<f32> = full.as_vec().into_iter().map(|log| log as f32).collect();
    let kl =
        |rows: &TeacherRows<f64, Cpu>| Composed.apart(&mut NoneTape, &z, rows, Divergence::Kl, tau).expect("memory").as_vec();
    let log_q = Composed.log_probabilities(&z, tau).expect("memory").as_vec();
    for top in 1..=4 {
        let (mut tokens, mut kept) = (vec![], vec![]);
        for row in logs.chunks_exact(4) {
            let (own, log) = truncate(row, top);
            tokens.extend(own);
            kept.extend(log);
        }
        let rows = TeacherRows::top(&device, top, 4, &tokens, &kept).expect("memory");
        for (row, seen) in kl(&rows).into_iter().enumerate() {
            let own = &tokens[row * top..][..top];
            let pairs = own.iter().enumerate().map(|(k, token)| {
                let log = f64::from(kept[row * (top + 1) + k]);
                log.exp() * (log - log_q[row * 4 + *token as usize])
            });
            let others = || (0..4).filter(|token| !own.contains(token)).map(|token| log_q[row * 4 + token as usize]);
            let most = others().fold(f64::NEG_INFINITY, f64::max);
            let left = most + others().map(|log| (log - most).exp()).sum::<f64>().ln();
            let rest = f64::from(kept[row * (top + 1) + top]);
            let missing = if rest == f64::NEG_INFINITY { 0.0 } else { rest.exp() * (rest - left) };
            let expected = pairs.sum::<f64>() + missing;
            assert!((seen - expected).abs() < 1e-4 * expected.max(1.0), "top {top}, row {row}: {seen} against {expected}");
        }
    }
    let (full, all) = (
        kl(&TeacherRows::Full(full.clone())),
        kl(&{
            let (tokens, kept): (Vec<_>, Vec<_>) = logs.chunks_exact(4).map(|row| truncate(row, 4)).unzip();
            TeacherRows::top(&device, 4, 4, &tokens.concat(), &kept.concat()).expect("memory")
        }),
    );
    full.iter().zip(&all).for_each(|(a, b)| assert!((a - b).abs() < 1e-4 * a.max(1.0)));
}
