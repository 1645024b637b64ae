//! Reads `metrics.jsonl` value by value, without a tree for each line: a report reads millions of them.
//!
//! Owns a fast reading of the lines that this program writes; whatever else a line is, serde reads it, or says that it is no
//! [`MetricLine`]. Invariant: both readings of a line that serde accepts give the same values.

use super::record::MetricLine;

/// Hands each value of one of these metrics to `each`: place in `wanted`, step, value; NaN and the infinities as they are. Ends at the first line
/// that is none, with its number, counted from 1; what stands before it has been handed on.
pub fn read(text: &str, wanted: &[&str], mut each: impl FnMut(usize, u64, f64)) -> Result<(), String> {
    let (mut rest, mut number) = (text, 0_u64);
    while !rest.is_empty() {
        number += 1;
        if let Some(length) = quick(rest, wanted, &mut each) {
            rest = &rest[length..];
            continue;
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line: MetricLine = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        for (name, value) in &line.values {
            if let Some(place) = wanted.iter().position(|own| own == name) {
                each(place, line.step, value.0);
            }
        }
    }
    Ok(())
}

/// Reads the first line of `text` and returns its length with its end; `None`, and nothing handed on, where it is laid out in another way.
fn quick(text: &str, wanted: &[&str], each: &mut impl FnMut(usize, u64, f64)) -> Option<usize> {
    /// Wanted metrics of a line.
    const MOST: usize = 8;
    const STEP: &[u8] = br#"{"step":"#;
    const VALUES: &[u8] = br#","values":{"#;
    let bytes = text.as_bytes();
    bytes.starts_with(STEP).then_some(())?;
    let mut at = STEP.len();
    let mut step = 0_u64;
    while let Some(digit) = bytes.get(at).filter(|c| c.is_ascii_digit()) {
        step = step.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        at += 1;
    }
    if at == STEP.len() || at > STEP.len() + 1 && bytes[STEP.len()] == b'0' || !bytes[at..].starts_with(VALUES) {
        return None;
    }
    at += VALUES.len();
    let mut found = [(0, 0.0); MOST];
    let mut count = 0;
    while bytes.get(at) != Some(&b'}') {
        let name = at + 1;
        (bytes.get(at) == Some(&b'"')).then_some(())?;
        let end = name + bytes[name..].iter().position(|c| matches!(c, b'"' | b'\\' | b'\n'))?;
        bytes[end..].starts_with(b"\":").then_some(())?;
        let start = end + 2;
        at = start + bytes[start..].iter().position(|c| !matches!(c, b'0'..=b'9' | b'.' | b'e' | b'-' | b'+'))?;
        if let Some(place) = wanted.iter().position(|own| own.as_bytes() == &bytes[name..end]) {
            // What is there twice, or no number, is for serde to judge.
            if count == MOST || found[..count].iter().any(|(other, _)| *other == place) || !is_number(&bytes[start..at]) {
                return None;
            }
            found[count] = (place, text.get(start..at)?.parse().ok()?);
            count += 1;
        }
        match bytes.get(at) {
            Some(b',') if bytes.get(at + 1) == Some(&b'"') => at += 1,
            Some(b'}') => {}
            _ => return None,
        }
    }
    bytes[at..].starts_with(b"}}\n").then_some(())?;
    found[..count].iter().for_each(|(place, value)| each(*place, step, *value));
    Some(at + 3)
}

/// Whether this is a number of JSON that is finite by its look: digits, a fraction, a power of two digits at most.
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|c| c.is_ascii_digit()).count();
    let whole = digits(text);
    if whole == 0 || whole > 1 && text[0] == b'0' || whole >= 200 {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    let power = match rest {
        [] => return true,
        [b'e', b'-' | b'+', power @ ..] | [b'e', power @ ..] => power,
        _ => return false,
    };
    (1..=2).contains(&power.len()) && digits(power) == power.len()
}

#[cfg(test)]
mod tests {
    use super::{quick, read};
    use crate::run::record::MetricLine;
    use proptest::prelude::*;

    const WANTED: [&str; 3] = ["train_loss", "kl", "a"];

    fn slowly(text: &str) -> Option<Vec<(usize, u64, u64)>> {
        let line: MetricLine = serde_json::from_str(text).ok()?;
        let place = |name: &String| WANTED.iter().position(|own| own == name);
        let mut found: Vec<_> =
            line.values.iter().filter_map(|(name, value)| Some((place(name)?, line.step, value.0.to_bits()))).collect();
        found.sort_unstable();
        Some(found)
    }

    fn quickly(text: &str) -> Option<Vec<(usize, u64, u64)>> {
        let mut found = Vec::new();
        let text = format!("{text}\n");
        let length = quick(&text, &WANTED, &mut |place, step, value| found.push((place, step, f64::to_bits(value))))?;
        assert_eq!(length, text.len());
        found.sort_unstable();
        Some(found)
    }

    #[test]
    fn lines_of_every_kind() {
        let lines = [
            r#"{"step":7,"values":{"grad_norm":0.25,"lr":1e-3,"train_loss":2.345678901234567}}"#,
            r#"{"step":0,"values":{}}"#,
            r#"{"step":18446744073709551615,"values":{"a":-0.0,"kl":123e-7,"train_loss":5e+20}}"#,
        ];
        for line in lines {
            assert!(quickly(line).is_some() && quickly(line) == slowly(line), "{line}");
        }
        let others = [
            r#"{"step":7,"values":{"train_loss":"NaN","kl":"-inf"}}"#,
            r#"{"values":{"kl":1},"step":7}"#,
            r#"{ "step": 7, "values": {"kl": 1} }"#,
            r#"{"step":7,"values":{"k\u006c":1}}"#,
            r#"{"step":7,"values":{"kl":1e999}}"#,
        ];
        for line in others {
            assert_eq!(quickly(line), None, "{line}");
        }
        let mut found = Vec::new();
        let text = format!("{}\n{}\n{}\n{{", lines[0], others[0], lines[2]);
        let error = read(&text, &WANTED, |place, step, value| found.push((place, step, value))).expect_err("half a line");
        assert!(error.starts_with("line 4: "), "{error}");
        assert_eq!(found.len(), 6);
        assert!(found[2].2.is_nan() || found[1].2.is_nan());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_read_quickly_is_what_is_there(
            step in "[0-9]{1,3}|1844674407370955161[0-9]",
            parts in proptest::collection::vec(("train_loss|kl|a|lr", "-?[0-9.e+-]{1,6}|[0-9]{1,3}\\.[0-9]{1,17}(e-?[0-9]{1,3})?|null|\"NaN\""), 0..4),
            tail in "\\}\\}|\\}|\\},|\\}\\} ",
        ) {
            let values: Vec<String> = parts.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let line = format!("{{\"step\":{step},\"values\":{{{}{tail}", values.join(","));
            // What nobody wants is not judged.
            if let (Some(found), Some(wanted)) = (quickly(&line), slowly(&line)) {
                prop_assert_eq!(found, wanted, "{}", line);
            }
        }
    }
}
