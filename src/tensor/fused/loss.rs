//! Head and loss in one: logits exist for a chunk of tokens at a time, and their gradient takes their place in the forward pass.

use std::sync::Arc;

use dfdx::prelude::{Cpu, HasShape, Tape, TensorFromVec};

use super::host::{values, view_of};
use super::{Pool, SHARDS};
use crate::kernel::{self, Heard, Softening, TeacherCells, View, ViewMut, product};
use crate::tensor::operations::Term;
use crate::tensor::{Fault, Matrix, Scalar, Targets, TeacherRows, Unspoken};

/// Tokens of a chunk. Each chunk's product lays the whole head out anew, whose cost must be spread over enough rows: measured at a
/// vocabulary of 16,384, chunks of 64 spend a seventh of a step on it.
const CHUNK: usize = 256;

/// Σ over terms of factor · Σₙ weightₙ · termₙ, shape ().
pub(super) fn loss<T: Tape<f32, Cpu>>(
    tape: &mut T,
    x: &Matrix<f32, Cpu>,
    table: &Matrix<f32, Cpu>,
    targets: &Targets<f32, Cpu>,
    terms: &[Term<'_, f32, Cpu>],
) -> Result<Scalar<f32, Cpu>, Fault<Cpu>> {
    let ((tokens, width), vocabulary) = (*x.shape(), table.shape().0);
    let Asked { groups, squares, teachers } = Asked::of(terms);
    let head = Head {
        x: view_of(x),
        table: view_of(table),
        labels: values(&targets.labels),
        weights: values(&targets.weights),
        groups,
        squares,
        teachers,
        width,
        vocabulary,
        learn: T::OWNS_TAPE,
        pool: Pool::of_thread(tokens),
    };
    // Any cut will do here: tokens do not see each other.
    let first = tokens.div_ceil(SHARDS);
    let side = if T::OWNS_TAPE { tokens * width } else { 0 };
    let mut dx = vec![0.0; side];
    let (dx0, dx1) = dx.split_at_mut(if T::OWNS_TAPE { first * width } else { 0 });
    let (one, two) = rayon::join(|| head.shard(0..first, dx0), || head.shard(first..tokens, dx1));
    let value = (one.0 + two.0) as f32;
    let y = Cpu::default().try_tensor_from_vec(vec![value], ())?;
    if T::OWNS_TAPE {
        let (ghost, x, table) = (y.ghost(), x.ghost(), table.clone());
        let (dtables, pool) = ([one.1, two.1], head.pool.clone());
        tape.add_backward_op(move |map| {
            let factor = map.get_or_alloc_mut(&ghost)?[0];
            kernel::axpy(map.get_or_alloc_mut(&x)?, factor, &dx);
            let sum = &mut **map.get_or_alloc_mut(&table)?;
            let half = sum.len() / 2;
            let (low, high) = sum.split_at_mut(half);
            let both = |sum: &mut [f32], at: usize| {
                dtables.iter().for_each(|dtable| kernel::axpy(sum, factor, &dtable[at..at + sum.len()]));
            };
            rayon::join(|| both(low, 0), || both(high, half));
            dtables.into_iter().for_each(|dtable| pool.give(dtable));
            Ok(())
        });
    }
    Ok(y)
}

/// What terms ask of whom.
#[derive(Default)]
struct Asked<'a> {
    /// Terms that share a softmax, and the place of their teacher's word.
    groups: Vec<(Softening, Option<usize>)>,
    /// Factors of squares, and the place of the teacher's word.
    squares: Vec<(f32, usize)>,
    /// Words of teachers, each once.
    teachers: Vec<Teacher<'a>>,
}

impl<'a> Asked<'a> {
    fn of(terms: &[Term<'a, f32, Cpu>]) -> Self {
        let (mut asked, mut known) = (Self::default(), Vec::new());
        for term in terms {
            match *term {
                Term::CrossEntropy { factor } => {
                    asked.join(Softening { temperature: 1.0, cross_entropy: factor as f32, divergence: None }, None)
                }
                Term::Apart { factor, divergence, temperature, teacher } => {
                    let divergence = Some((divergence, factor as f32));
                    let at = match teacher {
                        TeacherRows::Unspoken(unspoken) => asked.word(&mut known, unspoken, Teacher::unspoken),
                        rows => asked.word(&mut known, rows, Teacher::cached),
                    };
                    asked.join(Softening { temperature: temperature as f32, cross_entropy: 0.0, divergence }, Some(at));
                }
                Term::Squares { factor, teacher } => {
                    let at = asked.word(&mut known, teacher, Teacher::unspoken);
                    asked.squares.push((factor as f32, at));
                }
            }
        }
        asked
    }

    /// The place of a teacher's word; two terms that ask the same teacher hear it once.
    fn word<W>(&mut self, known: &mut Vec<*const ()>, word: &'a W, hear: impl FnOnce(&'a W) -> Teacher<'a>) -> usize {
        let address = std::ptr::from_ref(word).cast();
        known.iter().position(|known| *known == address).unwrap_or_else(|| {
            known.push(address);
            self.teachers.push(hear(word));
            known.len() - 1
        })
    }

    /// Cross entropy and one divergence at its temperature share a softmax.
    fn join(&mut self, terms: Softening, teacher: Option<usize>) {
        let joins = |(group, _): &&mut (Softening, Option<usize>)| {
            group.temperature == terms.temperature && (terms.divergence.is_none() || group.divergence.is_none())
        };
        match self.groups.iter_mut().find(joins) {
            Some((group, own)) => {
                group.cross_entropy += terms.cross_entropy;
                group.divergence = group.divergence.or(terms.divergence);
                *own = own.or(teacher);
            }
            None => self.groups.push((terms, teacher)),
        }
    }
}

/// A teacher's word on the host.
enum Teacher<'a> {
    Logs(&'a [f32]),
    Unspoken { x: &'a [f32], table: &'a [f32], width: usize },
    Top { tokens: Vec<usize>, logs: &'a [f32], rest: Vec<f32>, outcomes: usize },
}

impl<'a> Teacher<'a> {
    fn unspoken(Unspoken { x, table }: &'a Unspoken<f32, Cpu>) -> Self {
        Teacher::Unspoken { x: view_of(x), table: view_of(table), width: x.shape().1 }
    }

    fn cached(rows: &'a TeacherRows<f32, Cpu>) -> Self {
        match rows {
            TeacherRows::Full(logs) => Teacher::Logs(view_of(logs)),
            TeacherRows::Unspoken(unspoken) => Self::unspoken(unspoken),
            TeacherRows::Top { tokens, logs, rest, .. } => {
                Teacher::Top { tokens: values(tokens), logs: view_of(logs), rest: values(rest), outcomes: tokens.shape().1 }
            }
        }
    }
}

/// All that shards read.
struct Head<'a> {
    /// (N, D).
    x: &'a [f32],
    /// (V, D).
    table: &'a [f32],
    /// (N).
    labels: Vec<usize>,
    /// (N).
    weights: Vec<f32>,
    groups: Vec<(Softening, Option<usize>)>,
    squares: Vec<(f32, usize)>,
    teachers: Vec<Teacher<'a>>,
    width: usize,
    vocabulary: usize,
    /// Gradients are wanted.
    learn: bool,
    pool: Arc<Pool>,
}

impl Head<'_> {
    /// The value of some tokens, and the table's gradient (V, D); `dx` becomes theirs.
    fn shard(&self, tokens: std::ops::Range<usize>, dx: &mut [f32]) -> (f64, Vec<f32>) {
        let (d, v) = (self.width, self.vocabulary);
        let most = CHUNK.min(tokens.len().max(1));
        let mut logits = self.pool.take(most * v);
        let mut spoken: Vec<Vec<f32>> = self
            .teachers
            .iter()
            .map(|teacher| match teacher {
                Teacher::Unspoken { .. } => self.pool.take(most * v),
                _ => Vec::new(),
            })
            .collect();
        let (mut exponentials, mut gradient) = (vec![0.0; v], vec![0.0; v]);
        let mut dtable = if self.learn { self.pool.take(v * d) } else { Vec::new() };
        if tokens.is_empty() {
            dtable.fill(0.0);
        }
        let mut value = 0.0;
        for start in tokens.clone().step_by(most) {
            let chunk = start..(start + most).min(tokens.end);
            let count = chunk.len();
            let x = View::new(&self.x[start * d..chunk.end * d], count, d);
            product(ViewMut::new(&mut logits[..count * v], count, v), false, x, View::new(self.table, v, d).t());
            for (spoken, teacher) in spoken.iter_mut().zip(&self.teachers) {
                if let Teacher::Unspoken { x, table, width } = teacher {
                    let x = View::new(&x[start * width..chunk.end * width], count, *width);
                    product(ViewMut::new(&mut spoken[..count * v], count, v), false, x, View::new(table, v, *width).t());
                }
            }
            for (row, token) in chunk.clone().enumerate() {
                let (logits, weight) = (&mut logits[row * v..][..v], self.weights[token]);
                gradient.fill(0.0);
                if weight != 0.0 {
                    for (terms, teacher) in &self.groups {
                        let heard = teacher.map_or(Heard::Nothing, |at| self.heard(at, token, &spoken[at], row));
                        let own = kernel::loss_of_row(
                            *terms,
                            logits,
                            self.labels[token],
                            heard,
                            weight,
                            &mut exponentials,
                            &mut gradient,
                        );
                        value += f64::from(weight) * own;
                    }
                    for (factor, teacher) in &self.squares {
                        let said = &spoken[*teacher][row * v..][..v];
                        let own = kernel::squares_of_row(logits, said, weight * factor, &mut gradient);
                        value += f64::from(weight) * f64::from(*factor) * own;
                    }
                }
                logits.copy_from_slice(&gradient);
            }
            if self.learn {
                let slopes = View::new(&logits[..count * v], count, v);
                let dx = &mut dx[(start - tokens.start) * d..(chunk.end - tokens.start) * d];
                product(ViewMut::new(dx, count, d), false, slopes, View::new(self.table, v, d));
                product(ViewMut::new(&mut dtable, v, d), start > tokens.start, slopes.t(), x);
            }
        }
        spoken.into_iter().chain([logits]).for_each(|buffer| self.pool.give(buffer));
        (value, dtable)
    }

    /// What a teacher says about a token, the `row`-th of its chunk.
    fn heard<'a>(&'a self, teacher: usize, token: usize, spoken: &'a [f32], row: usize) -> Heard<'a> {
        let v = self.vocabulary;
        match &self.teachers[teacher] {
            Teacher::Logs(logs) => Heard::Logs(&logs[token * v..][..v]),
            Teacher::Unspoken { .. } => Heard::Logits(&spoken[row * v..][..v]),
            Teacher::Top { tokens, logs, rest, outcomes } => Heard::Top(TeacherCells {
                tokens: &tokens[token * outcomes..][..*outcomes],
                logs: &logs[token * outcomes..][..*outcomes],
                rest: rest[token],
            }),
        }
    }
}
