//! `training` declarations: loss, optimizer, learning rate, batch.
//!
//! Owns their fields.

use super::Checker;
use super::arguments::Taken;
use super::defaults;
use super::names::{Declared, Kind};
use super::record::Record;
use super::units::Unit;
use super::words::{Spanned, Words, unknown_word};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::training::{Shape, Warmup};
use crate::study::{Batch, Floor, Loss, LossTerm, Optimizer, Precision, RateShape, Training};
use crate::syntax::ast::{Argument, Expr, ExprKind, Operator};

/// Losses that exist.
pub const LOSSES: &[&str] = &["cross_entropy", "kl", "reverse_kl", "jsd", "mse"];

/// Optimizers by their words.
const OPTIMIZERS: &[&str] = &["adamw", "sgd", "lion", "muon"];

impl<'a> Checker<'a> {
    /// Reads a `training` declaration.
    pub(super) fn training(&self, record: &Record<'a>) -> Option<Training> {
        let loss = self.needed(record, "loss", |_, words| self.loss(record, words));
        let optimizer = self.needed(record, "optimizer", |_, words| self.optimizer(record, words));
        let rate = self.optional(record, "lr", |_, words| self.rate(record, words));
        let batch = self.needed(record, "batch", |_, words| self.batch(record, words));
        let clip = self.optional(record, "clip", |_, words| {
            if words.eat_or_number("none")? {
                Some(None)
            } else {
                Some(Some(words.real_that("a positive number", |clip| clip > 0.0)?.value))
            }
        });
        let precision = self.optional(record, "precision", |_, words| self.precision(words));
        self.complete(record, &[("loss", "loss"), ("optimizer", "optimizer"), ("batch", "batch")])?;
        let rate =
            self.or_default(record, "lr", rate?, "constant", RateShape { warmup: Warmup::Steps(0), shape: defaults::RATE });
        Some(Training {
            name: record.name.to_owned(),
            doc: record.doc.map(str::to_owned),
            loss: loss?,
            optimizer: optimizer?,
            rate,
            batch: batch?,
            clip: self.or_default(record, "clip", clip?, "none", None),
            precision: self.or_default(record, "precision", precision?, "f32", defaults::PRECISION),
        })
    }

    /// Reads a loss, for a training or a schedule.
    pub(super) fn loss(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Loss> {
        let Some(part) = words.peek() else { return words.missing("a loss") };
        words.next();
        let mut terms: Vec<(f64, LossTerm)> = Vec::new();
        for (factor, term) in self.loss_terms(record, part, 1.0, words)? {
            match terms.iter_mut().find(|(_, known)| *known == term) {
                Some((known, _)) => *known += factor,
                None => terms.push((factor, term)),
            }
        }
        Some(Loss { terms })
    }

    fn loss_terms(
        &self,
        record: &Record<'a>,
        expr: &'a Expr,
        factor: f64,
        words: &Words<'_, 'a>,
    ) -> Option<Vec<(f64, LossTerm)>> {
        match &expr.kind {
            ExprKind::Group(inner) => self.loss_terms(record, inner, factor, words),
            ExprKind::Negate(inner) => self.loss_terms(record, inner, -factor, words),
            ExprKind::Binary { operator: operator @ (Operator::Plus | Operator::Minus), left, right, .. } => {
                let left = self.loss_terms(record, left, factor, words);
                let sign = if *operator == Operator::Plus { factor } else { -factor };
                let right = self.loss_terms(record, right, sign, words);
                let (mut all, right) = (left?, right?);
                all.extend(right);
                Some(all)
            }
            ExprKind::Binary { operator: Operator::Times, left, right, .. } => {
                let (number, term) = if self.names_a_loss(left) { (right, left) } else { (left, right) };
                let number = self.amount(number, words.scope);
                let terms = self.loss_terms(record, term, factor, words)?;
                let number = number?.value;
                Some(terms.into_iter().map(|(factor, term)| (number * factor, term)).collect())
            }
            ExprKind::Binary { operator: Operator::Over, left, right, .. } => {
                let terms = self.loss_terms(record, left, factor, words);
                let number = self.amount(right, words.scope)?.value;
                self.finite(1.0 / number, expr.span)?;
                Some(terms?.into_iter().map(|(factor, term)| (factor / number, term)).collect())
            }
            ExprKind::Name(name) => self.loss_term(record, name, expr.span, expr, words).map(|term| vec![(factor, term)]),
            ExprKind::Call { callee, .. } => {
                self.loss_term(record, &callee.text, callee.span, expr, words).map(|term| vec![(factor, term)])
            }
            ExprKind::Bad => None,
            _ => {
                let message = format!("expected a loss, found `{}`", self.text(expr.span));
                self.fail(
                    Diagnostic::error("wrong-type", message, expr.span).hint(
                        "losses are `cross_entropy`, `kl(teacher)`, `reverse_kl(teacher)`, `jsd(teacher)` and `mse(teacher)`",
                    ),
                )
            }
        }
    }

    /// Whether an expression has a loss in it rather than a number.
    fn names_a_loss(&self, expr: &Expr) -> bool {
        let is_loss = |name: &str| LOSSES.contains(&name);
        match &expr.kind {
            ExprKind::Name(name) => is_loss(name),
            ExprKind::Call { callee, .. } => is_loss(&callee.text),
            ExprKind::Group(inner) | ExprKind::Negate(inner) => self.names_a_loss(inner),
            ExprKind::Binary { left, right, .. } => self.names_a_loss(left) || self.names_a_loss(right),
            _ => false,
        }
    }

    fn loss_term(&self, record: &Record<'a>, name: &str, span: Span, part: &'a Expr, words: &Words<'_, 'a>) -> Option<LossTerm> {
        match name {
            "cross_entropy" => {
                let taken = self.arguments(part, &[], words.given);
                (!taken.poisoned).then_some(LossTerm::CrossEntropy)
            }
            "mse" => {
                let taken = self.arguments(part, &["teacher"], words.given);
                let teacher = self.teacher_said(&taken, words, name, span)?;
                (!taken.poisoned).then_some(LossTerm::Mse { teacher })
            }
            "kl" | "reverse_kl" => {
                let taken = self.arguments(part, &["teacher", "temperature"], words.given);
                let temperature = self.temperature(record, &taken, words);
                let (teacher, temperature) = (self.teacher_said(&taken, words, name, span)?, temperature?);
                (!taken.poisoned).then_some(match name {
                    "kl" => LossTerm::Kl { teacher, temperature },
                    _ => LossTerm::ReverseKl { teacher, temperature },
                })
            }
            "jsd" => {
                let taken = self.arguments(part, &["teacher", "temperature", "beta"], words.given);
                let temperature = self.temperature(record, &taken, words);
                let beta = taken.read("beta", words, |words| {
                    words.real_that("a number between 0 (`kl`) and 1 (`reverse_kl`)", |beta| 0.0 < beta && beta < 1.0)
                });
                let teacher = self.teacher_said(&taken, words, name, span)?;
                let (temperature, beta) = (temperature?, beta?);
                if taken.poisoned {
                    return None;
                }
                let beta = self.or_default(record, "loss.beta", beta.map(|beta| beta.value), "0.5", defaults::JSD_BETA);
                Some(LossTerm::Jsd { teacher, temperature, beta })
            }
            _ => self.fail(unknown_word(name, span, "a loss", LOSSES)),
        }
    }

    /// The teacher of a loss: that of the argument, else the only one.
    fn teacher_said(&self, taken: &Taken<'a>, words: &Words<'_, 'a>, loss: &str, span: Span) -> Option<String> {
        match taken.get("teacher", words) {
            Some(mut words) => self.teacher_name(&mut words),
            None => self.only_teacher(words.scope.env.unit(), loss, span),
        }
    }

    fn temperature(&self, record: &Record<'a>, taken: &Taken<'a>, words: &Words<'_, 'a>) -> Option<f64> {
        let given = taken.read("temperature", words, |words| words.real_that("a positive number", |t| t > 0.0))?;
        Some(given.map_or_else(
            || {
                self.fill(record, "loss.temperature", "1");
                defaults::TEMPERATURE
            },
            |given| given.value,
        ))
    }

    fn teacher_name(&self, words: &mut Words<'_, 'a>) -> Option<String> {
        let Some(name) = words.peek_word() else { return words.missing("the name of a teacher") };
        words.next();
        self.declared(words.scope.env.unit(), Kind::Teacher, name, words.before())?;
        words.finish()?;
        Some(name.to_owned())
    }

    /// The one teacher that can be named in a unit.
    fn only_teacher(&self, unit: usize, loss: &str, span: Span) -> Option<String> {
        let all: Vec<Declared<'a>> = self.names[unit].of(Kind::Teacher).collect();
        match all.as_slice() {
            [one] => Some(one.declaration.name.text.clone()),
            _ => {
                let message = format!("`{loss}` has to name its teacher");
                self.fail(Diagnostic::error("missing-argument", message, span).hint(format!("write `{loss}(TEACHER)`")))
            }
        }
    }

    fn optimizer(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Optimizer> {
        let (name, part) = words.one_of("an optimizer", OPTIMIZERS)?;
        let parameters: &[&str] = match name {
            "sgd" => &["lr", "momentum", "nesterov", "decay", "decay_on"],
            "lion" => &["lr", "betas", "decay", "decay_on"],
            "muon" => &["lr", "momentum", "nesterov", "betas", "eps", "decay", "decay_on"],
            _ => &["lr", "betas", "eps", "decay", "decay_on"],
        };
        let taken = self.arguments(part, parameters, words.given);
        let positive = |value: f64| value > 0.0;
        let below_one = |value: f64| (0.0..1.0).contains(&value);
        let lr = taken.need("lr", words, |words| words.real_that("a positive number", positive));
        let momentum = taken.read("momentum", words, |words| words.real_that("a number from 0 to below 1", below_one));
        let nesterov = taken.read("nesterov", words, |words| Some(words.one_of("`yes` or `no`", &["yes", "no"])?.0 == "yes"));
        let betas = taken.read("betas", words, |words| self.betas(words));
        let eps = taken.read("eps", words, |words| words.real_that("a positive number", positive));
        let decay = taken.read("decay", words, |words| words.real_that("a number that is not negative", |decay| decay >= 0.0));
        let decay_on =
            taken.read("decay_on", words, |words| Some(words.one_of("`matrices` or `all`", &["matrices", "all"])?.0 == "all"));
        let (lr, decay, decay_on) = (lr?.value, decay?, decay_on?);
        let (momentum, nesterov, betas, eps) = (momentum?, nesterov?, betas?, eps?);
        if taken.poisoned {
            return None;
        }
        let decay = self.or_default(record, "optimizer.decay", decay.map(|decay| decay.value), "0", defaults::DECAY);
        let decay_all = match decay_on {
            None if decay == 0.0 => false,
            given => self.or_default(record, "optimizer.decay_on", given, "matrices", false),
        };
        let momentum = |shown: &str, default: f64| {
            self.or_default(record, "optimizer.momentum", momentum.map(|momentum| momentum.value), shown, default)
        };
        let nesterov = |shown: &str, default: bool| self.or_default(record, "optimizer.nesterov", nesterov, shown, default);
        let betas = |shown: &str, default: (f64, f64)| self.or_default(record, "optimizer.betas", betas, shown, default);
        let eps = || self.or_default(record, "optimizer.eps", eps.map(|eps| eps.value), "1e-8", defaults::ADAM_EPS);
        Some(match name {
            "sgd" => {
                let momentum = momentum("0", defaults::SGD_MOMENTUM);
                let nesterov = nesterov("no", defaults::SGD_NESTEROV);
                if nesterov && momentum == 0.0 {
                    let message = "`momentum` is missing here: `nesterov` looks ahead along it";
                    return self.fail(Diagnostic::error("missing-argument", message, part.span));
                }
                Optimizer::Sgd { lr, momentum, nesterov, decay, decay_all }
            }
            "lion" => Optimizer::Lion { lr, betas: betas("(0.9, 0.99)", defaults::LION_BETAS), decay, decay_all },
            "muon" => Optimizer::Muon {
                lr,
                momentum: momentum("0.95", defaults::MUON_MOMENTUM),
                nesterov: nesterov("yes", defaults::MUON_NESTEROV),
                betas: betas("(0.9, 0.95)", defaults::BETAS),
                eps: eps(),
                decay,
                decay_all,
            },
            _ => Optimizer::AdamW { lr, betas: betas("(0.9, 0.95)", defaults::BETAS), eps: eps(), decay, decay_all },
        })
    }

    fn betas(&self, words: &mut Words<'_, 'a>) -> Option<(f64, f64)> {
        let Some(part) = words.peek() else { return words.missing("a pair such as `(0.9, 0.95)`") };
        let ExprKind::Tuple(pair) = &part.kind else { return words.missing("a pair such as `(0.9, 0.95)`") };
        let [first @ Argument { key: None, .. }, second @ Argument { key: None, .. }] = pair.as_slice() else {
            return words.missing("a pair such as `(0.9, 0.95)`");
        };
        words.next();
        let beta = |argument: &'a Argument| {
            let mut words = self.words(&argument.value.parts, argument.value.span, words.scope);
            let beta = words.real_that("a number from 0 to below 1", |beta| (0.0..1.0).contains(&beta))?;
            words.finish().map(|()| beta.value)
        };
        let (first, second) = (beta(first), beta(second));
        Some((first?, second?))
    }

    fn rate(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<RateShape> {
        let mut warmup = Warmup::Steps(0);
        if words.eat("warmup") {
            let amount = words.amount()?;
            warmup = if amount.value.percent {
                Warmup::Fraction(self.fraction(amount)?)
            } else {
                Warmup::Steps(words.whole(amount, Some(Unit::Steps))?.value)
            };
            if words.is_end() && record.lost.contains(&"then") {
                return None;
            }
            words.expect("then")?;
        }
        if let Some(Expr { kind: ExprKind::Number(_), span }) = words.peek() {
            let message = format!("expected a shape of the learning rate, found `{}`", self.text(*span));
            let said = Diagnostic::error("unexpected-words", message, *span);
            return self.fail(said.hint("the peak is an argument of the optimizer, `optimizer.lr`"));
        }
        // A misspelt `warmup` stands where a shape could.
        let known = ["constant", "linear", "cosine", "wsd", "warmup"];
        let (kind, part) = words.one_of("a shape of the learning rate", &known)?;
        let shape = match kind {
            "linear" => Shape::Linear { to: self.floor(record, words)? },
            "cosine" => Shape::Cosine { to: self.floor(record, words)? },
            "wsd" => {
                let taken = self.arguments(part, &["decay"], words.given);
                let decay = taken.read("decay", words, |words| {
                    let amount = words.amount()?;
                    self.fraction(amount)
                });
                let decay = match decay? {
                    Some(decay) => decay,
                    None => {
                        self.fill(record, "lr.decay", "20%");
                        defaults::WSD_DECAY
                    }
                };
                if taken.poisoned {
                    return None;
                }
                Shape::Wsd { decay }
            }
            "warmup" => {
                return self.fail(Diagnostic::error("unexpected-words", "the warm-up comes once, and first", part.span));
            }
            _ => Shape::Constant,
        };
        Some(RateShape { warmup, shape })
    }

    /// A fraction from 0 to 1.
    fn fraction(&self, amount: Spanned<super::expr::Amount>) -> Option<f64> {
        if let Some(unit) = amount.value.unit {
            return self.fail(super::words::wrong_unit("a percentage", unit.name(), amount.span));
        }
        if (0.0..=1.0).contains(&amount.value.value) {
            return Some(amount.value.value);
        }
        self.fail(Diagnostic::error("out-of-range", "a fraction from 0% to 100% is wanted", amount.span))
    }

    /// `to 1%`, `to 1e-6`; nothing is `to 0`.
    fn floor(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Floor> {
        if words.is_end() {
            self.fill(record, "lr.to", "0");
            return Some(defaults::FLOOR);
        }
        words.expect("to")?;
        let amount = words.amount()?;
        if let Some(unit) = amount.value.unit {
            return self.fail(super::words::wrong_unit("a learning rate or a percentage", unit.name(), amount.span));
        }
        if amount.value.value < 0.0 {
            return self.fail(Diagnostic::error("out-of-range", "a number that is not negative is wanted", amount.span));
        }
        Some(if amount.value.percent { Floor::OfPeak(amount.value.value) } else { Floor::Rate(amount.value.value) })
    }

    fn batch(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Batch> {
        let sequences = words.count_in(Some(Unit::Sequences), 1, 1 << 32)?;
        if !words.eat("in") {
            self.fill(record, "batch.in", sequences.value.to_string());
            return Some(Batch { sequences: sequences.value, micro: sequences.value });
        }
        let micro = words.count_in(Some(Unit::Sequences), 1, 1 << 32)?;
        if micro.value > sequences.value {
            let message = format!("more at a time than the {} of a step", sequences.value);
            return self
                .fail(Diagnostic::error("out-of-range", message, micro.span).note_at(sequences.span, "a step's sequences"));
        }
        Some(Batch { sequences: sequences.value, micro: micro.value })
    }

    fn precision(&self, words: &mut Words<'_, 'a>) -> Option<Precision> {
        let known = ["f32", "bf16", "f16", "f64", "tf32"];
        let (name, part) = words.one_of("a precision", &known)?;
        if name != "f32" {
            let message = format!("`{name}` cannot be trained in yet");
            return self.fail(Diagnostic::error("not-yet-supported", message, part.span).hint("write `f32`"));
        }
        Some(Precision::F32)
    }
}
