//! How a plan says numbers, actions and lists.
//!
//! Owns the words. Invariant: a count below a million is exact; what is not known is `?`.

use crate::study::schedule::{GrowFrom, Insert};
use crate::study::{Action, Layers};

/// Columns of a page.
pub(super) const WIDTH: usize = 100;

/// `3.11B`; below a million exactly, in groups of three.
pub(super) fn short(count: u64) -> String {
    const MAGNITUDES: [(u64, char); 3] = [(1_000_000_000_000, 'T'), (1_000_000_000, 'B'), (1_000_000, 'M')];
    for (size, letter) in MAGNITUDES {
        // In integers, so that 999,999,999 is 1.00B.
        let hundredths = (u128::from(count) * 100 + u128::from(size) / 2) / u128::from(size);
        if count >= 1_000_000 && hundredths >= 100 {
            return format!("{}.{:02}{letter}", hundredths / 100, hundredths % 100);
        }
    }
    grouped(count)
}

/// `50,000`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count that may be unknown.
pub(super) fn known(count: Option<u64>) -> String {
    count.map_or_else(|| "?".to_owned(), short)
}

/// `1.23e18`.
pub(super) fn flops(value: Option<f64>) -> String {
    match value {
        None => "?".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) => format!("{value:.2e}"),
    }
}

/// `4.5 GiB`; `?` for what is not known.
pub fn bytes(count: Option<u64>) -> String {
    let Some(count) = count else { return "?".to_owned() };
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| count >= *size);
    unit.map_or_else(|| format!("{count} bytes"), |(size, name)| format!("{:.1} {name}", count as f64 / size as f64))
}

/// `3.2 h`.
pub(super) fn time(seconds: f64) -> String {
    let units = [(86_400.0, "days"), (3_600.0, "h"), (60.0, "min")];
    let unit = units.into_iter().find(|(size, _)| seconds >= 2.0 * size);
    unit.map_or_else(|| format!("{seconds:.0} s"), |(size, name)| format!("{:.1} {name}", seconds / size))
}

/// `1 layer`, `2 layers`.
pub(super) fn many(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// As the language would say it.
pub(in crate::plan) fn action(action: &Action) -> String {
    match action {
        Action::Grow { layers, at, from } => {
            let place = match at {
                Insert::Top => "at top".to_owned(),
                Insert::Bottom => "at bottom".to_owned(),
                Insert::After(place) => format!("after layer {place}"),
                Insert::Middle => "at middle".to_owned(),
                Insert::Interleaved => "interleaved".to_owned(),
            };
            let origin = match from {
                GrowFrom::Init => "from init".to_owned(),
                GrowFrom::CopyLast => "from copies of the last".to_owned(),
                GrowFrom::CopyLayers { first, last } => format!("from copies of layers {first}..{last}"),
                GrowFrom::CopyAll => "from copies of all".to_owned(),
                GrowFrom::Identity => "from identity".to_owned(),
            };
            format!("grow {} {place} {origin}", many(*layers as u64, "layer"))
        }
        Action::Drop { layers } => format!("drop {}", many(*layers as u64, "layer")),
        Action::Freeze(what) => format!("freeze {}", part(*what)),
        Action::Thaw(what) => format!("thaw {}", part(*what)),
        Action::ResetOptimizer => "reset optimizer".to_owned(),
        Action::RestartLr => "restart lr".to_owned(),
        Action::RewarmLr { steps } => format!("rewarm lr over {}", many(*steps, "step")),
        Action::RewindData => "rewind data".to_owned(),
        Action::FreshData => "fresh data".to_owned(),
        Action::SetLr(lr) => format!("set lr {lr:e}"),
        Action::SetBatch(sequences) => format!("set batch {}", many(*sequences, "sequence")),
        Action::SetContext(tokens) => format!("set context {}", many(*tokens as u64, "token")),
        Action::SetLoss(loss) => format!("set loss {loss}"),
        Action::Save(name) => format!("save {name:?}"),
    }
}

fn part(what: Layers) -> String {
    match what {
        Layers::Prefix => "prefix".to_owned(),
        Layers::Range { first, last } => format!("layers {first}..{last}"),
        Layers::Embedding => "embedding".to_owned(),
        Layers::Head => "head".to_owned(),
        Layers::Norms => "norms".to_owned(),
        Layers::All => "all".to_owned(),
    }
}
