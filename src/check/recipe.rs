//! What must fit between the parts of an arm: teacher, vocabulary, and the schedule worked out for its model.
//!
//! Owns the placing of [`TimelineError`]s in the text. Knows no axis.

use std::sync::Arc;

use super::Checker;
use super::LIBRARY;
use super::record::{Record, Statement};
use super::schedule::Scheduled;
use super::taught::Learned;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::equation::{Branches, Equation, Stream};
use crate::study::placement::{Body, Wiring};
use crate::study::training::{Shape, Warmup};
use crate::study::{
    Action, Batch, Data, Embedding, Ffn, Init, Loss, LossTerm, Model, Moment, Norm, NormKind, Optimizer, Placement, Positions,
    Precision, RateShape, Schedule, Start, Teacher, TeacherSource, Tokenizer, Training, Vocabulary,
};
use crate::timeline::{self, Declared, Fault, StepTokens, Timeline, TimelineError};

/// A part of an arm with the record that it was read from.
pub(super) struct Made<'a, T> {
    pub(super) value: Arc<T>,
    pub(super) record: Record<'a>,
}

impl<T> Clone for Made<'_, T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), record: self.record.clone() }
    }
}

impl<'a> Checker<'a> {
    /// Whether the parts of an arm fit.
    pub(super) fn fits(
        &self,
        data: &Made<'a, Data>,
        model: &Made<'a, Model>,
        (losses, contexts): (&[Learned<'_>], &[Span]),
        teachers: &[Made<'a, Teacher>],
    ) -> Option<()> {
        let size = |key: &str| model.record.field(key).map_or(model.record.blame, Statement::value_span);
        let mut fine = Some(());
        if let (Some(needed), Vocabulary::Size(given)) = (data.value.tokenizer.size(), model.value.vocabulary)
            && given < needed
        {
            let word = if data.value.tokenizer == Tokenizer::Bytes { "bytes".to_owned() } else { format!("bpe({needed})") };
            let message = format!("`tokenizer {word}` has {needed} tokens, the vocabulary {given}");
            let said = Diagnostic::error("vocabulary-too-small", message, size("vocabulary"));
            fine = self.fail(match data.record.field("tokenizer") {
                Some(tokenizer) => said.note_at(tokenizer.value_span(), "the tokenizer is given here"),
                None => said.note_at(data.record.blame, "this data is read as bytes, the default"),
            });
        }
        let vocabulary = |model: &Model| match model.vocabulary {
            Vocabulary::Size(size) => Some(size),
            Vocabulary::OfTokenizer => data.value.tokenizer.size(),
        };
        for (place, teacher) in teachers.iter().enumerate() {
            if self.kept(losses, contexts, teacher).is_none() {
                fine = None;
            }
            let TeacherSource::Trained { model: theirs, .. } = &teacher.value.source else { continue };
            if place == 0 && data.value.tokenizer == Tokenizer::Teacher {
                let at = data.record.field("tokenizer").map_or(data.record.blame, Statement::value_span);
                let message = format!("`{}` is trained on this data and brings no tokenizer", teacher.value.name);
                fine = self.fail(Diagnostic::error("no-tokenizer", message, at).note_at(teacher.record.name_span, "the teacher"));
            }
            if let (Some(ours), Some(theirs)) = (vocabulary(&model.value), vocabulary(theirs))
                && ours != theirs
            {
                let message = format!("the student has {ours} tokens, its teacher `{}` has {theirs}", teacher.value.name);
                let said = Diagnostic::error("vocabularies-differ", message, size("vocabulary"));
                fine = self.fail(said.note_at(teacher.record.name_span, "the teacher"));
            }
            for (key, part) in [("embedding", model.value.embedding), ("head", model.value.head)] {
                if place == 0 && matches!(part, Embedding::Teacher { .. }) && model.value.width != theirs.width {
                    let message = format!(
                        "the student is {} wide, its teacher `{}` {}",
                        model.value.width, teacher.value.name, theirs.width
                    );
                    let said = Diagnostic::error("widths-differ", message, size(key));
                    fine = self.fail(said.note_at(teacher.record.name_span, "the teacher"));
                }
            }
        }
        fine
    }

    /// Works a schedule out for an arm; what is wrong with the schedule itself is said in it, what does not fit the model where the
    /// arm names it.
    pub(super) fn timeline(
        &self,
        scheduled: &Scheduled,
        blame: Span,
        model: &Model,
        training: &Training,
        data: &Data,
    ) -> Option<Timeline> {
        let tokens = Declared::of(data, training.batch);
        let (timeline, errors) = every_error(&scheduled.schedule, model, training, &tokens);
        let mut fine = Some(());
        for error in errors {
            // Where the documents will tell, the planner asks again.
            let Some(code) = code(&error.kind) else {
                fine = None;
                continue;
            };
            let place = scheduled.place(&error);
            fine = if is_of_the_model(&error.kind) || self.is_library(place) {
                let said = Diagnostic::error(code, error.kind.to_string(), blame);
                self.fail(said.note_at(place, "it happens here"))
            } else {
                self.fail(in_schedule(code, scheduled, &error).note_at(blame, "used here"))
            };
        }
        fine.and(timeline)
    }

    /// What is wrong with a schedule for any model.
    pub(super) fn schedule_alone(&self, scheduled: &Scheduled) {
        let (model, training) = any(&scheduled.schedule);
        let (_, errors) = every_error(&scheduled.schedule, &model, &training, &Declared::Unknown);
        for error in errors {
            if let Some(code) = code(&error.kind).filter(|_| !is_of_the_model(&error.kind)) {
                self.say(in_schedule(code, scheduled, &error));
            }
        }
    }

    fn is_library(&self, span: Span) -> bool {
        LIBRARY.iter().any(|(name, _)| self.sources.get(span.file).name == *name)
    }
}

/// A fault of a schedule, at its words.
fn in_schedule(code: &'static str, scheduled: &Scheduled, error: &TimelineError) -> Diagnostic {
    let said = Diagnostic::error(code, error.kind.to_string(), scheduled.place(error));
    match error.kind {
        Fault::NotBeforeEnd { .. } => said.note_at(scheduled.end, "the schedule ends here"),
        _ => said,
    }
}

impl Scheduled {
    fn place(&self, error: &TimelineError) -> Span {
        match error.event {
            Some(event) => self.events.get(event).copied().unwrap_or(self.end),
            None if error.kind.at_end() => self.end,
            None => self.start,
        }
    }
}

/// Events that are walked through in looking for every error of a schedule.
const MOST_WALKED: usize = 200_000;

/// The timeline, or every error: after one at an event, the schedule is looked at without that event.
fn every_error(
    schedule: &Schedule,
    model: &Model,
    training: &Training,
    tokens: &dyn StepTokens,
) -> (Option<Timeline>, Vec<TimelineError>) {
    let mut schedule = schedule.clone();
    let mut left: Vec<usize> = (0..schedule.events.len()).collect();
    let mut errors = Vec::new();
    loop {
        match timeline::build(&schedule, model, training, tokens, None) {
            Ok(timeline) => return (errors.is_empty().then_some(timeline), errors),
            Err(error) => match error.event.filter(|event| *event < left.len()) {
                Some(event) => {
                    let is_enough = matches!(error.kind, Fault::TooManyEvents(_));
                    schedule.events.remove(event);
                    errors.push(TimelineError { event: Some(left.remove(event)), ..error });
                    if is_enough || errors.len() * schedule.events.len() > MOST_WALKED {
                        return (None, errors);
                    }
                }
                // With events taken out, what is said of the end may not be true.
                None => {
                    if errors.is_empty() {
                        errors.push(error);
                    }
                    return (None, errors);
                }
            },
        }
    }
}

/// Faults that depend on the model's depth rather than on the schedule alone.
fn is_of_the_model(fault: &Fault) -> bool {
    match fault {
        Fault::StartTooDeep { .. }
        | Fault::GrowsPast { .. }
        | Fault::GrowsBelowPrefix
        | Fault::Interleaved { .. }
        | Fault::NoSuchLayer { .. }
        | Fault::DropsAll { .. }
        | Fault::NothingLearns => true,
        Fault::StartEmpty
        | Fault::NotAfter { .. }
        | Fault::TokenNotAfter { .. }
        | Fault::NotBeforeEnd { .. }
        | Fault::EndNotAfter { .. }
        | Fault::Endless
        | Fault::EndRepeats
        | Fault::PercentOfItself
        | Fault::TooManyEvents(_)
        | Fault::TooManySteps(_)
        | Fault::TokensUnknown
        | Fault::GrowsNothing
        | Fault::EmptyRange { .. } => false,
    }
}

/// The code of a fault; `None` where it is none once the documents are at hand.
fn code(fault: &Fault) -> Option<&'static str> {
    Some(match fault {
        Fault::StartTooDeep { .. } | Fault::GrowsPast { .. } => "grows-past-layers",
        Fault::StartEmpty | Fault::GrowsNothing => "out-of-range",
        Fault::NotAfter { .. } | Fault::TokenNotAfter { .. } => "out-of-order",
        Fault::NotBeforeEnd { .. } => "after-the-end",
        Fault::EndNotAfter { .. } => "end-not-after",
        Fault::Endless | Fault::EndRepeats => "no-end",
        Fault::PercentOfItself => "percent-of-itself",
        Fault::TooManyEvents(_) => "too-many-events",
        Fault::TooManySteps(_) => "too-many-steps",
        Fault::TokensUnknown => return None,
        Fault::GrowsBelowPrefix => "grows-below-prefix",
        Fault::Interleaved { .. } => "interleaved",
        Fault::NoSuchLayer { .. } | Fault::EmptyRange { .. } => "no-such-layer",
        Fault::DropsAll { .. } => "drops-all",
        Fault::NothingLearns => "nothing-learns",
    })
}

/// A model deep enough for a schedule, of blocks of one layer, and a training: what a schedule is looked at with on its own.
fn any(schedule: &Schedule) -> (Model, Training) {
    let grown = schedule.events.iter().map(|event| {
        let times = match event.moment {
            Moment::Every { times: Some(times), .. } => times.min(10_000) as usize,
            Moment::Every { times: None, .. } | Moment::Step(_) | Moment::Token(_) | Moment::Fraction(_) | Moment::After(_) => 1,
        };
        let layers: usize =
            event.actions.iter().map(|action| if let Action::Grow { layers, .. } = action { *layers } else { 0 }).sum();
        layers.saturating_mul(times)
    });
    let start = match schedule.start {
        Start::All => 1,
        Start::Blocks(count) | Start::Layers(count) => count,
    };
    let layers = grown.fold(start, usize::saturating_add).min(1 << 20);
    let x = Equation { bindings: Vec::new(), result: Stream::X };
    let placement = Placement {
        name: String::new(),
        doc: None,
        entry: None,
        body: Body::Layer(Branches::always(x)),
        boundary: None,
        exit: None,
        init: Vec::new(),
    };
    let model = Model {
        name: String::new(),
        doc: None,
        layers,
        block: 1,
        width: 2,
        heads: 1,
        kv_heads: 1,
        head_dim: 2,
        ffn: Ffn::Gelu { width: 1 },
        norm: Norm { kind: NormKind::Rms, eps: 1e-6 },
        qk_norm: false,
        wiring: Wiring::uniform(Arc::new(placement), 1),
        positions: Positions::None,
        embedding: Embedding::Own,
        head: Embedding::Own,
        init: Init::Normal { std: 1.0 },
        vocabulary: Vocabulary::OfTokenizer,
    };
    let training = Training {
        name: String::new(),
        doc: None,
        loss: Loss { terms: vec![(1.0, LossTerm::CrossEntropy)] },
        optimizer: Optimizer::AdamW { lr: 1.0, betas: (0.9, 0.95), eps: 1e-8, decay: 0.0, decay_all: false },
        rate: RateShape { warmup: Warmup::Steps(0), shape: Shape::Constant },
        batch: Batch { sequences: 1, micro: 1 },
        clip: None,
        precision: Precision::F32,
    };
    (model, training)
}
