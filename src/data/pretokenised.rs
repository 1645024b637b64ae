//! Files of tokens that somebody else has made of text: `.bin` and `.npy`.
//!
//! Owns their formats. A `.bin` is tokens alone, of two bytes where the vocabulary has at most 65,536 and of four where it has more, or begins with the header of
//! llm.c (256 integers: 20240520 and two bytes a token, or 20240801 and four, a version, how many tokens). A `.npy` is NumPy's format, one axis, unsigned or signed
//! integers. All is little-endian. Invariant: a token is below the vocabulary's size, or there is no corpus.

use super::corpus::CorpusError;
use super::documents::{Assembler, DocumentsError};
use super::files::{Kind, PIECE, Plain};
use crate::study::Documents;

/// Tokens as a tokenizer means them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Token types.
    pub vocabulary: usize,
    /// The token that ends a document.
    pub boundary: u32,
}

/// The longest header of a `.npy` that is read: those of arrays of numbers have 128 bytes.
const LONGEST_HEADER: usize = 1 << 16;
/// Integers in the header of llm.c.
const INTEGERS: usize = 256;
/// The first of them, for tokens of two and of four bytes.
const MAGIC: [(u32, usize); 2] = [(20_240_520, 2), (20_240_801, 4)];

/// Shows the documents of a file: what lies between boundary tokens, which belong to none.
pub(super) fn read(
    mut plain: Plain,
    kind: Kind,
    rule: &Documents,
    spelling: Option<Spelling>,
    into: &mut Assembler<'_, '_>,
) -> Result<(), CorpusError> {
    let path = plain.path().to_owned();
    let unfit = |reason: &str| DocumentsError::Unfit { path: path.clone(), reason: reason.to_owned() };
    let damaged = |reason: String| DocumentsError::Damaged { path: path.clone(), reason };
    if *rule != Documents::File {
        return Err(unfit("it holds tokens, whose boundary tokens end documents: leave `document` out").into());
    }
    let Some(Spelling { vocabulary, boundary }) = spelling else {
        return Err(unfit("it holds tokens, and a tokenizer can be trained on text alone").into());
    };
    let mut start = Vec::new();
    let (width, announced) = match kind {
        Kind::Npy => npy(&mut plain)?.map_err(damaged)?,
        Kind::Bin | Kind::Text | Kind::Parquet => {
            start = vec![0; 4 * INTEGERS];
            let read = plain.fill(&mut start)?;
            start.truncate(read);
            let raw = if vocabulary <= 1 << 16 { 2 } else { 4 };
            match llm_c(&start) {
                Some((width, count)) => {
                    start.clear();
                    (width, Some(count))
                }
                None => (raw, None),
            }
        }
    };
    let (mut at, mut tokens, mut buffer) = (0u64, Vec::with_capacity(PIECE), start);
    loop {
        let whole = buffer.len() - buffer.len() % width;
        tokens.clear();
        for (place, bytes) in (at..).zip(buffer[..whole].chunks_exact(width)) {
            let mut value = [0; 8];
            value[..width].copy_from_slice(bytes);
            let value = u64::from_le_bytes(value);
            if value >= vocabulary as u64 {
                let reason = format!("token {place} is {value}, and the tokenizer has {vocabulary} (0 to {})", vocabulary - 1);
                return Err(damaged(reason).into());
            }
            tokens.push(value as u32);
        }
        at += tokens.len() as u64;
        for piece in tokens.split_inclusive(|token| *token == boundary) {
            match piece.split_last() {
                Some((last, document)) if *last == boundary => {
                    into.tokens(document)?;
                    into.end()?;
                }
                _ => into.tokens(piece)?,
            }
        }
        let rest = buffer.len() - whole;
        buffer.copy_within(whole.., 0);
        buffer.resize(PIECE, 0);
        let read = plain.fill(&mut buffer[rest..])?;
        buffer.truncate(rest + read);
        if read == 0 {
            break;
        }
    }
    if !buffer.is_empty() {
        return Err(damaged(format!("it ends in the middle of a token of {width} bytes")).into());
    }
    if let Some(announced) = announced.filter(|announced| *announced != at) {
        return Err(damaged(format!("it has {at} tokens, its header says {announced}")).into());
    }
    into.end()
}

/// Bytes of a token and how many there are, if these are the first bytes of a file of llm.c.
fn llm_c(start: &[u8]) -> Option<(usize, u64)> {
    let integers: Vec<u32> =
        start.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();
    let (&[magic, _, count], rest) = integers.split_first_chunk()?;
    let width = MAGIC.iter().find_map(|(known, width)| (*known == magic).then_some(*width))?;
    // Tokens that happen to begin so do not go on with nothing.
    let is_header = rest.len() == INTEGERS - 3 && rest.iter().all(|integer| *integer == 0);
    is_header.then_some((width, u64::from(count)))
}

/// Bytes of a token and how many there are, from the header of NumPy's format; or what is wrong with it.
fn npy(plain: &mut Plain) -> Result<Result<(usize, Option<u64>), String>, DocumentsError> {
    let mut start = [0; 10];
    let cut = || Ok(Err("it is cut short".to_owned()));
    if plain.fill(&mut start)? < start.len() {
        return cut();
    }
    if !start.starts_with(b"\x93NUMPY") {
        return Ok(Err("it is no NumPy array".to_owned()));
    }
    let mut length = usize::from(u16::from_le_bytes([start[8], start[9]]));
    if start[6] > 1 {
        let mut more = [0; 2];
        if plain.fill(&mut more)? < more.len() {
            return cut();
        }
        length |= usize::from(u16::from_le_bytes(more)) << 16;
    }
    if length > LONGEST_HEADER {
        return Ok(Err(format!("its header has {length} bytes")));
    }
    let mut header = vec![0; length];
    if plain.fill(&mut header)? < length {
        return cut();
    }
    Ok(described(&String::from_utf8_lossy(&header)))
}

/// The same from the words of the header, a Python dictionary.
fn described(header: &str) -> Result<(usize, Option<u64>), String> {
    let value = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let (Some(kind), Some(shape)) = (value("descr"), value("shape")) else {
        return Err("its header has no `descr` or no `shape`".to_owned());
    };
    let kind = kind.trim_start_matches('\'').split('\'').next().unwrap_or_default();
    let width = match kind {
        "|u1" => 1,
        "<u2" | "<i2" => 2,
        "<u4" | "<i4" => 4,
        "<u8" | "<i8" => 8,
        _ => return Err(format!("its values are of the type `{kind}`, and tokens are little-endian integers")),
    };
    let inside = shape.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(inside, _)| inside);
    let axes: Vec<&str> = inside.split(',').map(str::trim).filter(|axis| !axis.is_empty()).collect();
    match axes.as_slice() {
        [axis] => axis.parse().map(|count| (width, Some(count))).map_err(|_| format!("its shape is ({inside})")),
        _ => Err(format!("its shape is ({inside}), and tokens have one axis")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::documents::PART;
    use super::super::documents::tests::{all, of_files};
    use super::*;

    const SPELLING: Spelling = Spelling { vocabulary: 257, boundary: 256 };

    fn read(name: &str, bytes: &[u8], spelling: Option<Spelling>) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), bytes).expect("writes");
        all(&of_files(name, Documents::File), folder.path(), spelling)
    }

    fn bytes<const N: usize>(tokens: &[u32], of: fn(u32) -> [u8; N]) -> Vec<u8> {
        tokens.iter().flat_map(|token| of(*token)).collect()
    }

    fn two(token: u32) -> [u8; 2] {
        (token as u16).to_le_bytes()
    }

    /// As `numpy.save` writes it.
    fn npy(kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        let header = format!("{header:<117}\n");
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), values].concat()
    }

    #[test]
    fn boundaries_end_documents_in_every_format() {
        let tokens = [256, 5, 6, 256, 256, 7, 256, 8, 9];
        let wanted = Ok(["5 6 ", "7 ", "8 9 "].map(str::to_owned).to_vec());
        assert_eq!(read("a.bin", &bytes(&tokens, two), Some(SPELLING)), wanted);
        let large = Spelling { vocabulary: 70_000, boundary: 256 };
        assert_eq!(read("a.bin", &bytes(&tokens, u32::to_le_bytes), Some(large)), wanted);
        for (kind, values) in [
            ("<u2", bytes(&tokens, two)),
            ("<i4", bytes(&tokens, u32::to_le_bytes)),
            ("<i8", bytes(&tokens, |token| u64::from(token).to_le_bytes())),
        ] {
            assert_eq!(read("a.npy", &npy(kind, "(9,)", &values), Some(SPELLING)), wanted, "{kind}");
        }
        let header = |magic: u32, count: u32| {
            let mut header = [0u32; INTEGERS];
            header[..3].copy_from_slice(&[magic, 1, count]);
            bytes(&header, u32::to_le_bytes)
        };
        assert_eq!(read("a.bin", &[header(20_240_520, 9), bytes(&tokens, two)].concat(), Some(SPELLING)), wanted);
        let four = [header(20_240_801, 9), bytes(&tokens, u32::to_le_bytes)].concat();
        assert_eq!(read("a.bin", &four, Some(SPELLING)), wanted);
        let packed = zstd::encode_all(&bytes(&tokens, two)[..], 1).expect("packs");
        assert_eq!(read("a.bin.zst", &packed, Some(SPELLING)), wanted);
        // A long document comes in parts, and pieces end anywhere.
        let long: Vec<u32> = (0..2 * PART as u32 + 3).map(|at| at % 200).collect();
        let found = read("a.bin", &bytes(&long, two), Some(SPELLING)).expect("reads");
        assert_eq!((found.len(), found[0].split_whitespace().count()), (1, long.len()));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let said = |name: &str, bytes: &[u8], spelling| read(name, bytes, spelling).expect_err("refused");
        let tokens = bytes(&[5, 300], two);
        assert_eq!(
            said("a.bin", &tokens, Some(SPELLING)),
            "`a.bin` is damaged: token 1 is 300, and the tokenizer has 257 (0 to 256)"
        );
        assert!(
            said("a.bin", &tokens[..3], Some(Spelling { vocabulary: 400, boundary: 0 })).contains("in the middle of a token")
        );
        assert!(said("a.bin", &tokens, None).contains("a tokenizer can be trained on text alone"));
        assert!(said("a.npy", &tokens, Some(SPELLING)).contains("cut short"));
        assert!(said("a.npy", &[0; 200], Some(SPELLING)).contains("no NumPy array"));
        assert!(said("a.npy", &npy("<f4", "(2,)", &[0; 8]), Some(SPELLING)).contains("the type `<f4`"));
        assert!(said("a.npy", &npy("<u2", "(1, 2)", &[0; 4]), Some(SPELLING)).contains("its shape is (1, 2)"));
        assert!(said("a.npy", &npy("<u2", "(3,)", &[0; 4]), Some(SPELLING)).contains("it has 2 tokens, its header says 3"));
        assert!(said("a.npy", &npy("<i4", "(1,)", &[255; 4]), Some(SPELLING)).contains("token 0 is 4294967295"));
    }
}
