//! Times the training step of a phase, on batches that are made up.
//!
//! Owns what is timed: the whole step as [`step`] takes it, from a batch on the host to the parameters after it, the loss read back.
//! Knows no store and no corpus. First values, tokens and a teacher's logits may come from a file, so that other programs can be given
//! the same and their losses compared. The tensors of that file: parameters by their names, `tokens.I` (rows, context + 1) in f32, whose
//! rows shifted by one are labels, and `teacher.I` (rows · context, vocabulary), the logits; I from 0.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::imported;
use super::loss::{Term, terms};
use super::optimizer::Optimizer;
use super::sets::Learning;
use super::start::Sources;
use super::step::{Setting, State, groups, param, step};
use super::teacher::{OnlineTeacher, Teacher};
use crate::budget::params::{parameters, vocabulary, whole};
use crate::data::Batch;
use crate::data::hub::Tensors;
use crate::model::{Params, first_values};
use crate::plan::node::{Phase, TeacherAt, TeacherUse};
use crate::run::worker::{Failure, Stop};
use crate::study::Model;
use crate::tensor::{Cpu, Fused, Param, View, ViewMut, product};
use crate::timeline::Frozen;

/// What was seen of some steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// The loss before each step, those of the warm-up among them.
    pub losses: Vec<f64>,
    /// Seconds that each step after the warm-up took.
    pub seconds: Vec<f64>,
    /// Seconds of the first step of all.
    pub first: f64,
    /// Cores that worked on those after the warm-up, as the system tells it (of Linux): fewer than threads where others took them.
    pub cores: f64,
    /// Elements of all parameters.
    pub parameters: u64,
    /// Counted tokens of a step.
    pub tokens: u64,
}

/// How many steps, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    /// Steps that are not timed.
    pub warmup: usize,
    /// Steps that are.
    pub steps: usize,
    /// Threads.
    pub threads: usize,
    /// Layers at the bottom that are frozen, whatever the phase says; 0 leaves it as it is.
    pub frozen: usize,
}

/// Batches that are made up and taken in turn.
const BATCHES: u64 = 4;

/// Times steps of a phase. A teacher that runs online is drawn like the student. Logits that are cached are not there: such a loss is timed
/// as cross entropy, unless `file` has a teacher's logits.
pub fn time(phase: &Phase, course: Course, file: Option<&Path>) -> Result<Timed, Failure> {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(course.threads).build();
    let pool = threads.map_err(|error| Failure::Input(format!("cannot start {} threads: {error}", course.threads)))?;
    let file = file.map(|path| Tensors::of_file(path).map_err(|error| Failure::Input(error.to_string()))).transpose()?;
    pool.install(|| run(phase, course, file.as_ref()))
}

fn run(phase: &Phase, course: Course, file: Option<&Tensors>) -> Result<Timed, Failure> {
    let mut segment = phase.segment.clone();
    if course.frozen > 0 {
        let layers = segment.stack.iter().take(course.frozen).copied().collect();
        segment.frozen = Frozen { layers, prefix: course.frozen, ..Frozen::default() };
    }
    let (device, segment, model) = (Cpu::default(), &segment, &*phase.model);
    let specs = parameters(model, &segment.stack, &segment.block_ends);
    let sources = Sources::new(None, ".".into());
    let mut params = Params::default();
    for spec in &specs {
        let values = match file {
            Some(file) => imported::values(file, &spec.name)?,
            None => (spec.shape.clone(), first_values(phase.seed, spec, false, &sources).map_err(Failure::Input)?),
        };
        if values.0 != spec.shape {
            return Err(Failure::Input(format!("`{}` has shape {:?}, expected {:?}", spec.name, values.0, spec.shape)));
        }
        params.0.insert(spec.name.clone(), param(&device, values)?);
    }
    let (rows, context) = (segment.batch as usize, segment.context(&phase.data));
    let size = vocabulary(model);
    let batches = (0..BATCHES).map(|at| match file {
        Some(file) => told(file, at, rows, context),
        None => Ok(batch(rows, context, |cell| scattered(cell as u64 + (at << 32)) as usize % size)),
    });
    let batches: Vec<Batch> = batches.collect::<Result<_, _>>()?;
    let names = segment.loss.teachers();
    let mut terms = terms(&segment.loss, &names);
    // For each batch those that are heard.
    let mut teachers: Vec<Vec<Teacher<f32, Cpu>>> = Vec::new();
    if let Some(file) = file {
        for at in 0..BATCHES {
            let heard = |name: &&str| {
                let Param::Matrix(logits) = param(&device, imported::values(file, &format!("teacher.{at}"))?)? else {
                    return Err(Failure::Input(format!("`teacher.{at}` is no matrix")));
                };
                Ok(Teacher::Heard { logits, temperature: segment.loss.temperature_of(name) })
            };
            teachers.push(names.iter().map(heard).collect::<Result<_, _>>()?);
        }
    } else {
        let mut all = Vec::new();
        for name in &names {
            match phase.teachers.iter().find(|teacher| teacher.name == *name) {
                Some(TeacherUse { at: TeacherAt::Node { model, .. }, logits, .. }) if logits.is_empty() => {
                    all.push(drawn(&device, model, phase.seed + 1, &sources)?);
                }
                _ => {
                    terms = vec![Term::CrossEntropy { factor: 1.0 }];
                    all.clear();
                    break;
                }
            }
        }
        teachers.push(all);
    }
    let (never, groups) = (AtomicBool::new(false), groups(&specs));
    let learning = Learning::new(model, &specs, segment);
    let setting = Setting {
        device: &device,
        model,
        segment,
        learning: &learning,
        groups: &groups,
        terms: &terms,
        optimizer: Optimizer { rule: phase.training.optimizer, clip: phase.training.clip },
        micro: phase.training.batch.micro as usize,
        stop: Stop::of(&never),
    };
    let mut state = State { params, moments: Default::default() };
    let parameters = specs.iter().map(|spec| spec.elements()).sum();
    let mut timed = Timed { losses: vec![], seconds: vec![], first: 0.0, cores: 0.0, parameters, tokens: batches[0].tokens() };
    let (start, mut before) = (segment.steps.start, 0.0);
    for at in 0..course.warmup + course.steps {
        if at == course.warmup {
            before = used();
        }
        let began = Instant::now();
        let (batch, teachers) = (&batches[at % batches.len()], &teachers[at % teachers.len()]);
        let now = (start + at as u64, segment.rate.at(start + at as u64));
        let seen = step::<f32, Cpu, Fused>(&setting, &mut state, teachers, batch, now)?;
        let took = began.elapsed().as_secs_f64();
        timed.losses.extend(seen.map(|seen| seen.loss));
        if at == 0 {
            timed.first = took;
        }
        if at >= course.warmup {
            timed.seconds.push(took);
        }
    }
    timed.cores = (used() - before) / timed.seconds.iter().sum::<f64>();
    Ok(timed)
}

/// A teacher with first values.
fn drawn(device: &Cpu, model: &Model, seed: u64, sources: &Sources) -> Result<Teacher<f32, Cpu>, Failure> {
    let (stack, ends) = whole(model);
    let mut params = Params::default();
    for spec in parameters(model, &stack, &ends) {
        let values = first_values(seed, &spec, false, sources).map_err(Failure::Input)?;
        params.0.insert(spec.name.clone(), param(device, (spec.shape, values))?);
    }
    Ok(Teacher::Online(Box::new(OnlineTeacher::new(model.clone(), params))))
}

/// Seconds of all cores that this process has had.
fn used() -> f64 {
    // Fields 14 and 15 after the name in brackets, in hundredths (USER_HZ of Linux).
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split(' ');
    fields.skip(12).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// One document a row.
fn batch(rows: usize, context: usize, token: impl Fn(usize) -> usize) -> Batch {
    let cells = rows * context;
    let place = |at: usize| at / context * (context + 1) + at % context;
    Batch {
        rows,
        context,
        sequences: (0..rows as u64).collect(),
        inputs: (0..cells).map(|at| token(place(at)) as u32).collect(),
        labels: (0..cells).map(|at| token(place(at) + 1) as u32).collect(),
        counted: vec![true; cells],
        document: vec![0; cells],
        position: (0..cells).map(|at| (at % context) as u32).collect(),
        structural: vec![false; cells],
    }
}

fn told(file: &Tensors, at: u64, rows: usize, context: usize) -> Result<Batch, Failure> {
    let (shape, tokens) = imported::values(file, &format!("tokens.{at}"))?;
    match shape == [rows, context + 1] {
        true => Ok(batch(rows, context, |cell| tokens[cell] as usize)),
        false => Err(Failure::Input(format!("`tokens.{at}` has shape {shape:?}, expected {:?}", [rows, context + 1]))),
    }
}

/// Looks random (the finalizer of splitmix64, Steele et al. 2014).
fn scattered(at: u64) -> u64 {
    let mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) >> 1
}

/// FLOP/s of large matrix products in f32, one on each of `threads` at a time: what a step could reach at most.
pub fn ceiling(threads: usize) -> f64 {
    const SIDE: usize = 1024;
    const ROUNDS: usize = 12;
    let one = || {
        let (a, b, mut out) = (vec![1.0; SIDE * SIDE], vec![0.5; SIDE * SIDE], vec![0.0; SIDE * SIDE]);
        let times = (0..ROUNDS).map(|_| {
            let began = Instant::now();
            product(ViewMut::new(&mut out, SIDE, SIDE), false, View::new(&a, SIDE, SIDE), View::new(&b, SIDE, SIDE));
            began.elapsed().as_secs_f64()
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let each: Vec<f64> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    each.into_iter().map(|seconds| 2.0 * (SIDE as f64).powi(3) / seconds).sum()
}
