//! Numbers as they are written: `12_000`, `.5`, `2.0E-5`, `2.5M`, `5%`.

use super::ast::Number;

/// Reads a number; the error is a fragment that says what is wrong.
pub fn read(text: &str) -> Result<Number, &'static str> {
    let (body, scale, percent) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 3, false),
        Some(b'M') => (&text[..text.len() - 1], 6, false),
        Some(b'B') => (&text[..text.len() - 1], 9, false),
        Some(b'%') => (&text[..text.len() - 1], -2, true),
        _ => (text, 0, false),
    };
    let digits: String = body.chars().filter(|c| *c != '_').collect();
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((_, "" | "+" | "-")) => return Err("digits are missing after the `e`"),
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| "its exponent is not a whole number")?),
        None => (digits.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err("a letter or a sign stands inside it");
    }
    // One decimal conversion, so that every spelling of a number gives the same double.
    let shift = exponent.checked_add(scale).ok_or("it is too large")?;
    let value: f64 = format!("{mantissa}e{shift}").parse().map_err(|_| "it cannot be read")?;
    if !value.is_finite() {
        return Err("it is too large");
    }
    Ok(Number { value, whole: exact(whole, fraction, shift), percent })
}

/// The value of `whole.fraction × 10^shift` where it is a whole number below 2^64.
fn exact(whole: &str, fraction: &str, shift: i32) -> Option<u64> {
    let fraction = fraction.trim_end_matches('0');
    let zeros = i64::from(shift) - fraction.len() as i64;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if zeros < 0 {
        let cut = digits.len().checked_sub(zeros.unsigned_abs() as usize)?;
        return digits[cut..].bytes().all(|byte| byte == b'0').then(|| digits[..cut].parse().ok()).flatten();
    }
    let scale = 10u64.checked_pow(u32::try_from(zeros).ok()?)?;
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_number_gives_the_same_number() {
        for group in [["2e-5", "2.0e-5", "2E-5", ".2e-4", "0.000_02"], ["2500000", "2.5M", "2_500k", "2.5e6", "0.0025B"]] {
            let values: Vec<f64> = group.iter().map(|text| read(text).expect("a number").value).collect();
            assert!(values.iter().all(|value| value.to_bits() == values[0].to_bits()), "{group:?}");
        }
        assert_eq!(read("2.5M").expect("a number").whole, Some(2_500_000));
        assert_eq!(read("150e-1").expect("a number").whole, Some(15));
        assert_eq!(read("2.5").expect("a number").whole, None);
        assert_eq!(read("9_007_199_254_740_993").expect("a number").whole, Some(9_007_199_254_740_993));
        assert_eq!(read("5%").expect("a number").value, 0.05);
    }

    #[test]
    fn what_is_no_number_says_why() {
        for text in ["2e", "2e+", "1e400", "12abc", "1.2.3", "0x10", "1e99999999999", "5%%"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
