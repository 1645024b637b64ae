//! What a student can learn from a teacher: against PyTorch (`tests/reference/losses.py` writes the numbers), by themselves, and in sums.

use serde::Deserialize;
use xrun::tensor::{
    self, Composed, Cpu, Device, Divergence, Fused, NoneTape, Operations, OwnedTape, Param, Real, Targets, TeacherRows, Unspoken,
    backward,
};
use xrun::train::{Teacher, Term, truncate};

use crate::build::*;

#[derive(Deserialize)]
struct Reference {
    x: Vec<f64>,
    head: Vec<f64>,
    teacher_x: Vec<f64>,
    teacher_head: Vec<f64>,
    weights: Vec<f64>,
    top: usize,
    cases: Vec<Case>,
}
#[derive(Deserialize)]
struct Case {
    kind: String,
    beta: Option<f64>,
    tau: f64,
    top: bool,
    loss: f64,
    dx: Vec<f64>,
    dhead: Vec<f64>,
}

fn matrix<E: Real>(values: &[f64], rows: usize) -> tensor::Matrix<E, Cpu>
where
    Cpu: Device<E>,
{
    let own = values.iter().map(|value| E::of(*value)).collect();
    match Param::new(&Cpu::default(), own, &[rows, values.len() / rows]).expect("memory") {
        Param::Matrix(matrix) => matrix,
        Param::Vector(_) => unreachable!("two sides"),
    }
}

fn wide<E: Real>(values: Vec<E>) -> Vec<f64> {
    values.into_iter().map(Into::into).collect()
}

/// Loss and gradients of every case, from a teacher that speaks and from what a cache would hold.
fn agrees<E: Real, O: Operations<E, Cpu>>(tolerance: f64)
where
    Cpu: Device<E>,
{
    let reference: Reference = serde_json::from_str(include_str!("../reference/losses.json")).expect("a reference");
    let (tokens, vocabulary) = (reference.weights.len(), 11);
    let (x, head) = (matrix::<E>(&reference.x, tokens), matrix::<E>(&reference.head, vocabulary));
    let speaks =
        Unspoken { x: matrix::<E>(&reference.teacher_x, tokens), table: matrix::<E>(&reference.teacher_head, vocabulary) };
    let targets = Targets {
        labels: Targets::<E, Cpu>::new(&Cpu::default(), &[0; 4], &[true; 4], 1).expect("memory").labels,
        weights: match Param::new(&Cpu::default(), reference.weights.iter().map(|w| E::of(*w)).collect(), &[tokens]) {
            Ok(Param::Vector(weights)) => weights,
            _ => unreachable!("one side"),
        },
    };
    let said = O::default().head(&mut NoneTape, &speaks.x, &speaks.table).expect("memory");
    for case in &reference.cases {
        let logs = O::default().log_probabilities(&said, case.tau).expect("memory");
        let narrow: Vec<f32> = wide(logs.as_vec()).into_iter().map(|log| log as f32).collect();
        let rows: Vec<TeacherRows<E, Cpu>> = if case.top {
            let (own, kept): (Vec<_>, Vec<_>) = narrow.chunks_exact(vocabulary).map(|row| truncate(row, reference.top)).unzip();
            vec![TeacherRows::top(&Cpu::default(), reference.top, vocabulary, &own.concat(), &kept.concat()).expect("memory")]
        } else {
            vec![TeacherRows::Unspoken(speaks.clone()), TeacherRows::Full(logs)]
        };
        // What a truncated cache holds is float32.
        let tolerance = if case.top { tolerance.max(1e-6) } else { tolerance };
        for teacher in &rows {
            let divergence = match case.kind.as_str() {
                "kl" => Some(Divergence::Kl),
                "reverse_kl" => Some(Divergence::ReverseKl),
                "jsd" => Some(Divergence::Jsd { beta: case.beta.expect("a number") }),
                _ => None,
            };
            let term = match divergence {
                Some(divergence) => tensor::Term::Apart { factor: 1.0, divergence, temperature: case.tau, teacher },
                None => tensor::Term::Squares { factor: 1.0, teacher: &speaks },
            };
            let mut tape = OwnedTape::default();
            let loss = O::default().loss(&mut tape, &x, &head, &targets, &[term]).expect("memory");
            let value: f64 = loss.as_vec()[0].into();
            let mut found = backward(loss, tape).expect("memory");
            let mut slopes = |of: &tensor::Matrix<E, Cpu>| {
                wide(O::default().gradient(&Param::Matrix(of.clone()), &mut found).expect("memory").values())
            };
            let at = format!("{} {:?} at {}, top {}", case.kind, case.beta, case.tau, case.top);
            let near = |seen: f64, wanted: f64| (seen - wanted).abs() <= tolerance * (1.0 + wanted.abs());
            assert!(near(value, case.loss), "{at}: {value} against {}", case.loss);
            for (seen, wanted) in [(slopes(&x), &case.dx), (slopes(&head), &case.dhead)] {
                assert_eq!(seen.len(), wanted.len());
                seen.iter().zip(wanted).for_each(|(seen, wanted)| assert!(near(*seen, *wanted), "{at}: {seen} against {wanted}"));
            }
        }
    }
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    agrees::<f64, Composed>(1e-12);
    agrees::<f32, Composed>(3e-6);
    agrees::<f32, Fused>(3e-6);
}

/// Every loss by itself, and all of them at once with cross entropy.
fn all() -> Vec<Vec<Term>> {
    let each = every_divergence().map(|divergence| Term::Apart { factor: 4.0, divergence, temperature: 2.0, teacher: 0 });
    let mut all: Vec<Vec<Term>> =
        each.into_iter().chain([Term::Squares { factor: 0.5, teacher: 0 }]).map(|term| vec![term]).collect();
    let sum = all.concat();
    all.push([vec![Term::CrossEntropy { factor: 0.3 }, sum[1]], sum].concat());
    all
}

#[test]
fn gradients_of_every_loss_are_slopes() {
    for terms in all() {
        let model = model(post(), 2);
        let teacher = teacher(&model, 3);
        crate::gradients::check(model, terms, Some(&teacher), 3);
    }
}

#[test]
fn fused_losses_agree_with_composed_ones() {
    for terms in all() {
        let model = model(pre(), 2);
        crate::fused::check(&model, &terms, Some(&model), &batch(3, 11, 2, 5), 3);
    }
}

/// Whatever the loss, however the batch is cut, packed or padded.
#[test]
fn a_teacher_has_nothing_to_teach_itself() {
    fn check<O: Operations<f32, Cpu>>() {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..1, 1e-2));
        let params = bench.state.params.clone();
        let same = Teacher::Online(Box::new(xrun::train::OnlineTeacher::new(bench.model.clone(), params)));
        for terms in all().into_iter().filter(|terms| terms.iter().all(|term| term.teacher().is_some())) {
            bench.terms = terms;
            for (batch, micro) in [(batch(8, 9, 3, 3), 8), (batch(8, 9, 3, 3), 4), (uneven(8, 12), 8), (uneven(8, 12), 1)] {
                bench.micro = micro;
                let (loss, gradients) = bench.gradients_by::<O>(Some(&same), &batch, 0);
                assert!(loss.abs() < 1e-6, "{:?}: {loss}", bench.terms);
                assert!(gradients.values().flatten().all(|value| value.abs() < 1e-6), "{:?}", bench.terms);
            }
        }
    }
    check::<Composed>();
    check::<Fused>();
}

/// At each position by itself, padded ones too: over all tokens, and over the most likely ones with the rest as one outcome.
#[test]
fn a_teacher_has_nothing_to_teach_itself_at_any_position() {
    fn check<O: Operations<f32, Cpu>>() {
        let bench: Bench<f32, Cpu> = Bench::new(model(post(), 2), segment(2, 0..1, 1e-2));
        for (batch, tau) in [(batch(3, 9, 4, 3), 1.0), (uneven(8, 12), 2.0)] {
            let logits = bench.logits_by::<O>(&batch);
            let logs = O::default().log_probabilities(&logits, tau).expect("memory");
            let (tokens, kept): (Vec<_>, Vec<_>) = logs.as_vec().chunks_exact(VOCABULARY).map(|row| truncate(row, 5)).unzip();
            let top = TeacherRows::top(&bench.device, 5, VOCABULARY, &tokens.concat(), &kept.concat()).expect("memory");
            for (divergence, said) in
                every_divergence().iter().flat_map(|one| [(*one, TeacherRows::Full(logs.clone())), (*one, top.clone())])
            {
                let apart = O::default().apart(&mut NoneTape, &logits, &said, divergence, tau).expect("memory").as_vec();
                assert_eq!(apart.len(), batch.inputs.len());
                assert!(apart.iter().all(|apart| apart.abs() < 1e-6), "{divergence:?}: {apart:?}");
            }
        }
    }
    check::<Composed>();
    check::<Fused>();
}

#[test]
fn neither_the_split_of_a_batch_nor_what_padding_holds_matters() {
    fn check<O: Operations<f32, Cpu>>() {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(post(), 2), segment(2, 0..1, 1e-2));
        let teacher = teacher(&bench.model, 4);
        for terms in all() {
            bench.terms = terms;
            bench.micro = 8;
            let batch = uneven(8, 12);
            let whole = bench.gradients_by::<O>(Some(&teacher), &batch, 0);
            let mut noise = batch.clone();
            for at in (0..batch.inputs.len()).filter(|at| !batch.counted[*at]) {
                (noise.inputs[at], noise.labels[at]) = (17, 23);
            }
            assert!(bench.gradients_by::<O>(Some(&teacher), &noise, 0) == whole, "{:?}", bench.terms);
            for micro in [4, 1] {
                bench.micro = micro;
                let parts = bench.gradients_by::<O>(Some(&teacher), &batch, 0);
                assert!((whole.0 / parts.0 - 1.0).abs() < 1e-6, "{:?}, micro-batches of {micro}", bench.terms);
                for (name, gradient) in &whole.1 {
                    let apart = gradient.iter().zip(&parts.1[name]).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                    let size = gradient.iter().map(|a| a.powi(2)).sum::<f64>();
                    assert!(apart <= 1e-10 * size, "{name}, micro-batches of {micro}: {apart} of {size}");
                }
            }
        }
    }
    check::<Composed>();
    check::<Fused>();
}

/// A loss to two teachers is the sum of the losses to each.
#[test]
fn two_teachers_add_up() {
    fn check<O: Operations<f32, Cpu>>() {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(post(), 2), segment(2, 0..1, 1e-2));
        let teachers = [teacher(&bench.model, 4), teacher(&bench.model, 5)];
        let batch = uneven(8, 12);
        let apart = |divergence, factor, teacher| Term::Apart { factor, divergence, temperature: 2.0, teacher };
        let of = |terms: Vec<Term>, teachers: &[Teacher<f32, Cpu>], bench: &mut Bench<f32, Cpu>| {
            (bench.terms, bench.micro) = (terms, 8);
            let seen = xrun::train::gradients::<f32, Cpu, O>(&bench.setting(), &bench.state, teachers, &batch, 0);
            let (loss, found) = seen.expect("finite").expect("whole");
            (loss, found.into_iter().map(|(name, gradient)| (name, wide(gradient.values()))).collect::<Slopes>())
        };
        let (kl, reverse) = (Divergence::Kl, Divergence::ReverseKl);
        let squares = |teacher| Term::Squares { factor: 0.1, teacher };
        let both = of(vec![apart(kl, 0.5, 0), apart(reverse, 0.25, 1), squares(1)], &teachers, &mut bench);
        let first = of(vec![apart(kl, 0.5, 0)], &teachers[..1], &mut bench);
        let second = of(vec![apart(reverse, 0.25, 0), squares(0)], &teachers[1..], &mut bench);
        assert!((both.0 / (first.0 + second.0) - 1.0).abs() < 1e-6);
        for (name, gradient) in &both.1 {
            let sum = first.1[name].iter().zip(&second.1[name]).map(|(a, b)| a + b);
            let apart = gradient.iter().zip(sum).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            assert!(apart <= 1e-10 * gradient.iter().map(|a| a.powi(2)).sum::<f64>(), "{name}");
        }
    }
    check::<Composed>();
    check::<Fused>();
}
