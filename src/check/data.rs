//! `data` declarations.
//!
//! Owns their fields. Knows no file: whether a path leads anywhere is found when the plan is made.

use super::Checker;
use super::defaults;
use super::record::{Record, Scope, Statement};
use super::units::Unit;
use super::words::Words;
use crate::diagnostic::Diagnostic;
use crate::study::{Data, Documents, Holdout, Layout, Shard, Text, Tokenizer};
use crate::syntax::ast::{ExprKind, ItemContent};

/// Longer sequences are a slip of the hand.
pub(super) const LONGEST_CONTEXT: u64 = 1 << 24;
/// Larger vocabularies are a slip of the hand: those of common models have a quarter of it.
const LARGEST_BPE: u64 = 1 << 20;

impl<'a> Checker<'a> {
    /// Reads a `data` declaration.
    pub(super) fn data(&self, record: &Record<'a>) -> Option<Data> {
        let text = self.needed(record, "text", |statement, words| match statement.head {
            "files" => self.files(statement, words),
            _ => self.tales(record, words),
        });
        let documents = self.optional(record, "document", |_, words| documents(words));
        let tokenizer = self.optional(record, "tokenizer", |_, words| self.tokenizer(words));
        let context = self.needed(record, "context", |_, words| words.count_in(Some(Unit::Tokens), 1, LONGEST_CONTEXT));
        let layout = self.optional(record, "layout", |statement, words| match statement.head {
            "packed" => Some(Layout::Packed),
            "padded" => Some(Layout::Padded),
            _ => Some(if words.one_of("`packed` or `padded`", &["packed", "padded"])?.0 == "packed" {
                Layout::Packed
            } else {
                Layout::Padded
            }),
        });
        let tokens_per_step = self.optional(record, "tokens", |_, words| {
            words.expect("per")?;
            words.expect("step")?;
            words.count_in(Some(Unit::Tokens), 1, u64::MAX)
        });
        let shard = self
            .optional(record, "shard", |_, words| Some(Shard::Tokens(words.count_in(Some(Unit::Tokens), 1, u64::MAX)?.value)));
        let holdout = self.optional(record, "holdout", |_, words| holdout(words));
        self.complete(record, &[("text", "files` or `generate"), ("context", "context")])?;
        let (text, documents) = (text?, documents?);
        if let (Text::Tales { .. }, Some(given), Some(statement)) = (&text, &documents, record.field("document"))
            && *given != defaults::TALE
        {
            let said = Diagnostic::error("excluding-fields", "generated tales are paragraphs", statement.value_span());
            return self.fail(said.hint("write `document paragraph`, or leave it out"));
        }
        let documents = documents.unwrap_or_else(|| {
            let tale = matches!(text, Text::Tales { .. });
            self.fill(record, "document", if tale { "paragraph" } else { "file" });
            if tale { defaults::TALE } else { defaults::DOCUMENTS }
        });
        let tokenizer = self.or_default(record, "tokenizer", tokenizer?, "bytes", defaults::TOKENIZER);
        let layout = self.or_default(record, "layout", layout?, "packed", defaults::LAYOUT);
        let shard = self.or_default(record, "shard", shard?, "the whole corpus", defaults::SHARD);
        let holdout = self.or_default(record, "holdout", holdout?, "5%", defaults::HOLDOUT);
        Some(Data {
            name: record.name.to_owned(),
            doc: record.doc.map(str::to_owned),
            text,
            documents,
            tokenizer,
            context: context?.value as usize,
            layout,
            shard,
            holdout,
            tokens_per_step: tokens_per_step?.map(|tokens| tokens.value),
        })
    }

    fn files(&self, statement: &Statement<'a>, words: &mut Words<'_, 'a>) -> Option<Text> {
        let mut patterns = vec![words.text("a path in quotation marks")?.value];
        for item in &statement.more {
            let ItemContent::Phrase(phrase) = &item.content else { continue };
            let mut words = self.words(&phrase.parts, item.span, Scope { env: &statement.env, record: None });
            patterns.push(words.text("a path in quotation marks")?.value);
            words.finish()?;
        }
        Some(Text::Files(patterns))
    }

    fn tokenizer(&self, words: &mut Words<'_, 'a>) -> Option<Tokenizer> {
        if !matches!(words.peek().map(|part| &part.kind), Some(ExprKind::Name(_) | ExprKind::Call { .. })) {
            return Some(Tokenizer::File(words.text("a tokenizer")?.value));
        }
        let (word, part) = words.one_of("a tokenizer", &["bytes", "bpe", "teacher"])?;
        Some(match word {
            "bytes" => Tokenizer::Bytes,
            "bpe" => {
                let taken = self.arguments(part, &["vocabulary"], words.given);
                let range = (Tokenizer::SMALLEST_BPE as u64, LARGEST_BPE);
                let size = taken.need("vocabulary", words, |words| words.count_in(None, range.0, range.1))?;
                Tokenizer::Bpe(size.value as usize)
            }
            _ => Tokenizer::Teacher,
        })
    }

    fn tales(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Text> {
        let (_, part) = words.one_of("a generator", &["tales"])?;
        let taken = self.arguments(part, &["documents", "seed"], words.given);
        let documents = taken.need("documents", words, |words| words.count_in(Some(Unit::Documents), 1, u64::MAX));
        let seed = taken.read("seed", words, |words| words.count(None));
        let seed = match seed? {
            Some(seed) => seed.value,
            None => {
                self.fill(record, "generate.seed", defaults::TALES_SEED.to_string());
                defaults::TALES_SEED
            }
        };
        let documents = documents?.value;
        (!taken.poisoned).then_some(Text::Tales { documents, seed })
    }
}

fn documents(words: &mut Words<'_, '_>) -> Option<Documents> {
    let (word, _) = words.one_of("a kind of document", &["file", "line", "paragraph", "field"])?;
    Some(match word {
        "file" => Documents::File,
        "line" => Documents::Line,
        "paragraph" => Documents::Paragraph,
        _ => Documents::Field(words.text("the field's name in quotation marks")?.value),
    })
}

fn holdout(words: &mut Words<'_, '_>) -> Option<Holdout> {
    let amount = words.amount()?;
    if !amount.value.percent {
        return Some(Holdout::Documents(words.whole(amount, Some(Unit::Documents))?.value));
    }
    if (0.0..1.0).contains(&amount.value.value) {
        return Some(Holdout::Fraction(amount.value.value));
    }
    let said = Diagnostic::error("out-of-range", "the holdout leaves nothing to train on", amount.span);
    words.checker.fail(said)
}
