//! Text that stays text in LaTeX.
//!
//! Owns the one rule by which a name, a caption or a number becomes LaTeX: what comes out is plain ASCII that prints the text, wherever it
//! stands (a paragraph, a heading, a cell, the first cell of a row). Deliberately knows no table. Invariant: nothing of the text is a command,
//! a comment, a parameter, a column's end, an optional argument or a ligature, and no character stops pdfLaTeX: one that it has no glyph
//! for prints as its code point (`\xrunchar`, which the shipped template defines).

use std::fmt::Write;

/// As LaTeX that prints it.
pub fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        match c {
            // A sign, not a hyphen.
            '-' if after.is_ascii_digit() && (before.is_whitespace() || matches!(before, '[' | '(' | '<')) => {
                out.push_str(r"\ensuremath{-}");
            }
            _ => match special(c) {
                Some(command) => out.push_str(command),
                None if c.is_control() || c.is_whitespace() => out.push(' '),
                None if c.is_ascii() => out.push(c),
                None => other(c, &mut out),
            },
        }
        before = c;
    }
    out
}

/// Characters of ASCII that mean something in LaTeX, and common ones beyond that have a command. `{}` ends a command's name, and keeps
/// `--`, `,,` and their like from running together.
fn special(c: char) -> Option<&'static str> {
    Some(match c {
        '\\' => r"\textbackslash{}",
        '{' => r"\{",
        '}' => r"\}",
        '$' => r"\$",
        '&' => r"\&",
        '#' => r"\#",
        '%' => r"\%",
        '_' => r"\_",
        '~' => r"\textasciitilde{}",
        '^' => r"\textasciicircum{}",
        '<' => r"\textless{}",
        '>' => r"\textgreater{}",
        '|' => r"\textbar{}",
        '"' => r"\char34{}",
        '\'' => r"\textquotesingle{}",
        '`' => r"\textasciigrave{}",
        '-' => "-{}",
        ',' => ",{}",
        '!' => "!{}",
        '?' => "?{}",
        // After the end of a row these two would be its arguments.
        '[' => "{[}",
        ']' => "{]}",
        '*' => "{*}",
        '\u{a0}' => "~",
        '\u{2009}' | '\u{202f}' => r"\,",
        '–' => "--{}",
        '—' => "---{}",
        '‘' => r"\textquoteleft{}",
        '’' => r"\textquoteright{}",
        '“' => r"\textquotedblleft{}",
        '”' => r"\textquotedblright{}",
        '…' => r"\ldots{}",
        '•' => r"\textbullet{}",
        '§' => r"\S{}",
        '©' => r"\copyright{}",
        '°' => r"\ensuremath{^\circ}",
        '±' => r"\ensuremath{\pm}",
        '−' => r"\ensuremath{-}",
        '×' => r"\ensuremath{\times}",
        '÷' => r"\ensuremath{\div}",
        '·' | '⋅' => r"\ensuremath{\cdot}",
        '→' => r"\ensuremath{\rightarrow}",
        '←' => r"\ensuremath{\leftarrow}",
        '↑' => r"\ensuremath{\uparrow}",
        '↓' => r"\ensuremath{\downarrow}",
        '↔' => r"\ensuremath{\leftrightarrow}",
        '⇒' => r"\ensuremath{\Rightarrow}",
        '≤' => r"\ensuremath{\leq}",
        '≥' => r"\ensuremath{\geq}",
        '≠' => r"\ensuremath{\neq}",
        '≈' => r"\ensuremath{\approx}",
        '∼' => r"\ensuremath{\sim}",
        '∝' => r"\ensuremath{\propto}",
        '∞' => r"\ensuremath{\infty}",
        '∂' => r"\ensuremath{\partial}",
        '∇' => r"\ensuremath{\nabla}",
        '∈' => r"\ensuremath{\in}",
        '∑' => r"\ensuremath{\sum}",
        '∏' => r"\ensuremath{\prod}",
        '√' => r"\ensuremath{\surd}",
        '‖' => r"\ensuremath{\Vert}",
        '⊙' => r"\ensuremath{\odot}",
        '⊕' => r"\ensuremath{\oplus}",
        '⊗' => r"\ensuremath{\otimes}",
        '¹' => r"\ensuremath{^1}",
        '²' => r"\ensuremath{^2}",
        '³' => r"\ensuremath{^3}",
        '⁰' => r"\ensuremath{^0}",
        '⁴' => r"\ensuremath{^4}",
        '⁵' => r"\ensuremath{^5}",
        '⁶' => r"\ensuremath{^6}",
        '⁷' => r"\ensuremath{^7}",
        '⁸' => r"\ensuremath{^8}",
        '⁹' => r"\ensuremath{^9}",
        '⁻' => r"\ensuremath{^-}",
        '₀' => r"\ensuremath{_0}",
        '₁' => r"\ensuremath{_1}",
        '₂' => r"\ensuremath{_2}",
        '₃' => r"\ensuremath{_3}",
        '₄' => r"\ensuremath{_4}",
        '₅' => r"\ensuremath{_5}",
        '₆' => r"\ensuremath{_6}",
        '₇' => r"\ensuremath{_7}",
        '₈' => r"\ensuremath{_8}",
        '₉' => r"\ensuremath{_9}",
        'α' => r"\ensuremath{\alpha}",
        'β' => r"\ensuremath{\beta}",
        'γ' => r"\ensuremath{\gamma}",
        'δ' => r"\ensuremath{\delta}",
        'ε' => r"\ensuremath{\varepsilon}",
        'ζ' => r"\ensuremath{\zeta}",
        'η' => r"\ensuremath{\eta}",
        'θ' => r"\ensuremath{\theta}",
        'ι' => r"\ensuremath{\iota}",
        'κ' => r"\ensuremath{\kappa}",
        'λ' => r"\ensuremath{\lambda}",
        'μ' | 'µ' => r"\ensuremath{\mu}",
        'ν' => r"\ensuremath{\nu}",
        'ξ' => r"\ensuremath{\xi}",
        'π' => r"\ensuremath{\pi}",
        'ρ' => r"\ensuremath{\rho}",
        'σ' => r"\ensuremath{\sigma}",
        'τ' => r"\ensuremath{\tau}",
        'υ' => r"\ensuremath{\upsilon}",
        'φ' => r"\ensuremath{\varphi}",
        'χ' => r"\ensuremath{\chi}",
        'ψ' => r"\ensuremath{\psi}",
        'ω' => r"\ensuremath{\omega}",
        'Γ' => r"\ensuremath{\Gamma}",
        'Δ' => r"\ensuremath{\Delta}",
        'Θ' => r"\ensuremath{\Theta}",
        'Λ' => r"\ensuremath{\Lambda}",
        'Ξ' => r"\ensuremath{\Xi}",
        'Π' => r"\ensuremath{\Pi}",
        'Σ' => r"\ensuremath{\Sigma}",
        'Φ' => r"\ensuremath{\Phi}",
        'Ψ' => r"\ensuremath{\Psi}",
        'Ω' => r"\ensuremath{\Omega}",
        'ß' => r"\ss{}",
        'æ' => r"\ae{}",
        'Æ' => r"\AE{}",
        'ø' => r"\o{}",
        'Ø' => r"\O{}",
        'å' => r"\r{a}",
        'Å' => r"\r{A}",
        'œ' => r"\oe{}",
        'Œ' => r"\OE{}",
        'ł' => r"\l{}",
        'Ł' => r"\L{}",
        'ı' => r"\i{}",
        _ => return None,
    })
}

/// Letters with an accent by base and accent; whatever else by its code point.
fn other(c: char, out: &mut String) {
    const ACCENTS: [(&str, &str, &str); 9] = [
        ("`", "àèìòùÀÈÌÒÙ", "aeiouAEIOU"),
        ("'", "áéíóúýćńśźÁÉÍÓÚÝĆŃŚŹ", "aeiouycnszAEIOUYCNSZ"),
        ("^", "âêîôûÂÊÎÔÛ", "aeiouAEIOU"),
        ("\"", "äëïöüÿÄËÏÖÜŸ", "aeiouyAEIOUY"),
        ("~", "ãñõÃÑÕ", "anoANO"),
        ("c", "çşÇŞ", "csCS"),
        ("v", "čďěňřšťžČĎĚŇŘŠŤŽ", "cdenrstzCDENRSTZ"),
        ("u", "ăğĂĞ", "agAG"),
        ("H", "őűŐŰ", "ouOU"),
    ];
    for (accent, letters, bases) in ACCENTS {
        if let Some(base) = letters.chars().position(|letter| letter == c).and_then(|place| bases.chars().nth(place)) {
            let _ = write!(out, "\\{accent}{{{base}}}");
            return;
        }
    }
    let _ = write!(out, "\\xrunchar{{{:04X}}}", u32::from(c));
}

#[cfg(test)]
mod tests {
    use super::latex;

    #[test]
    fn every_special_character() {
        assert_eq!(latex(r"a_b 5% & #1 ${x}~^\"), r"a\_b 5\% \& \#1 \$\{x\}\textasciitilde{}\textasciicircum{}\textbackslash{}");
        assert_eq!(latex("[pre, grow]*"), "{[}pre,{} grow{]}{*}");
        assert_eq!(latex("line\n\nline"), "line  line");
    }

    #[test]
    fn a_sign_is_not_a_hyphen() {
        assert_eq!(latex("-0.0332 ± 0.0041"), r"\ensuremath{-}0.0332 \ensuremath{\pm} 0.0041");
        assert_eq!(latex("pre-norm at 1e-3"), "pre-{}norm at 1e-{}3");
    }

    #[test]
    fn other_scripts_do_not_stop_it() {
        assert_eq!(latex("ü Δ 中"), r#"\"{u} \ensuremath{\Delta} \xrunchar{4E2D}"#);
    }
}
