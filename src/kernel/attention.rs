//! Causal attention with grouped key/value heads (2305.13245) over the documents of one row, with the norms and rotations of heads.
//!
//! Queries go in blocks of eight against the keys from the first that the block may see, so that time follows the documents' lengths
//! and scores of one block at a time exist; the reverse pass makes them anew from the saved log-sum-exp (2205.14135) in tiles of
//! [`TILE`] queries. Heads whose width is not a multiple of sixteen are padded with zeros, which change no product.

use super::norm::{Norm, NormSlopes, norm, norm_backward};
use super::rotate::Rotations;
use super::simd::{LANES, across, exp, largest, multiversion};
use super::sums::dot_all;
use super::tile::{Left, ROWS, product8};

/// Queries of a tile of the reverse pass: its scores against all keys are held at once.
const TILE: usize = 64;

/// Numbers and widths of heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// H.
    pub queries: usize,
    /// G, divides H.
    pub keys: usize,
    /// K, even where rotated.
    pub width: usize,
}

impl AttentionShape {
    /// Width of a row of queries, keys and values: (H + 2G) K.
    pub fn packed(self) -> usize {
        (self.queries + 2 * self.keys) * self.width
    }
    /// Width of a row of results: H K.
    pub fn merged(self) -> usize {
        self.queries * self.width
    }
}

/// Norms over K of each query, key and value head.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadNorms<'a> {
    /// Of queries, before rotation.
    pub q: Option<Norm<'a>>,
    /// Of keys, before rotation.
    pub k: Option<Norm<'a>>,
    /// Of values.
    pub v: Option<Norm<'a>>,
}

/// One row of T tokens.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// For each token the first that it sees: its document's first in this row. Never falls, never beyond the token.
    pub starts: &'a [u32],
    /// Positions and their rotations.
    pub rotation: Option<(&'a [u32], &'a Rotations)>,
}

/// Memory for one thread's work, kept between calls.
#[derive(Debug, Default)]
pub struct Workspace {
    /// What it was last sized for.
    sides: Padded,
    raw: Vec<f32>,
    normed: Vec<f32>,
    stats: Vec<[f32; 2]>,
    key_stats: Vec<[f32; 2]>,
    value_stats: Vec<[f32; 2]>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    kt: Vec<f32>,
    vt: Vec<f32>,
    d_out: Vec<f32>,
    p: Vec<f32>,
    ds: Vec<f32>,
    dq: Vec<f32>,
    dk: Vec<f32>,
    dv: Vec<f32>,
}

/// Sides padded to lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Padded {
    /// Tokens.
    t: usize,
    /// Tokens, a multiple of 16.
    tp: usize,
    /// Head width.
    k: usize,
    /// Head width, a multiple of 16.
    kp: usize,
}

impl Workspace {
    fn resize(&mut self, sides: Padded, backward: bool) {
        if self.sides != sides {
            // What pads must be zero.
            *self = Self { sides, ..Self::default() };
        }
        let Padded { t, tp, k, kp } = sides;
        for (buffer, length) in [
            (&mut self.raw, t * k),
            (&mut self.normed, t * k),
            (&mut self.q, tp * kp),
            (&mut self.k, tp * kp),
            (&mut self.v, tp * kp),
            (&mut self.kt, kp * tp),
            (&mut self.p, TILE * tp),
            (&mut self.dq, tp * kp),
        ] {
            buffer.resize(length, 0.0);
        }
        for stats in [&mut self.stats, &mut self.key_stats, &mut self.value_stats] {
            stats.resize(t, [0.0; 2]);
        }
        if backward {
            for (buffer, length) in [(&mut self.vt, kp * tp), (&mut self.ds, TILE * tp)] {
                buffer.resize(length, 0.0);
            }
            for buffer in [&mut self.d_out, &mut self.dk, &mut self.dv] {
                buffer.resize(tp * kp, 0.0);
            }
        }
    }
}

/// out (T, H·K) of rows (q | k | v) (T, (H+2G)·K), neither normed nor rotated yet; `lse` (H, T) is left holding log-sum-exp of scores.
pub fn attention(
    shape: AttentionShape,
    norms: &HeadNorms<'_>,
    sequence: Sequence<'_>,
    qkv: &[f32],
    out: &mut [f32],
    lse: &mut [f32],
    work: &mut Workspace,
) {
    let (t, merged) = (sequence.starts.len(), shape.merged());
    let sides = sides(t, shape);
    work.resize(sides, false);
    let group = shape.queries / shape.keys;
    for key in 0..shape.keys {
        load_keys(shape, norms, sequence, qkv, key, sides, work);
        for query in key * group..(key + 1) * group {
            load_queries(shape, norms, sequence, qkv, query, sides, work);
            let lse = &mut lse[query * t..][..t];
            for first in (0..t).step_by(ROWS) {
                let block = Block::new(first, sequence.starts, sides);
                block.scores(sides, &work.q, &work.kt, &mut work.p);
                let mut inverse = [0.0; ROWS];
                soften(&mut work.p, sides.tp, block, sequence.starts, lse, &mut inverse);
                let seen = (first + ROWS).min(t) - block.from;
                let left = Left { data: &work.p[block.from..], row: sides.tp, inner: 1 };
                let right = (&work.v[block.from * sides.kp..], sides.kp);
                product8((sides.kp, seen), left, right, (&mut work.dq, sides.kp), false);
                for (row, inverse) in inverse.iter().enumerate().take(t - first) {
                    let out = &mut out[(first + row) * merged + query * shape.width..][..shape.width];
                    for (out, sum) in out.iter_mut().zip(&work.dq[row * sides.kp..]) {
                        *out = *sum * *inverse;
                    }
                }
            }
        }
    }
}

/// Of [`attention`]: `dqkv` from `d_out`, the saved `out` and `lse`; the norms' gradients are added to those of q, k and v (empty where there is
/// no norm).
#[expect(clippy::too_many_arguments, reason = "a kernel's inputs and outputs, each of which a caller holds apart")]
pub fn attention_backward(
    shape: AttentionShape,
    norms: &HeadNorms<'_>,
    sequence: Sequence<'_>,
    qkv: &[f32],
    (out, lse): (&[f32], &[f32]),
    d_out: &[f32],
    dqkv: &mut [f32],
    [dq_norm, dk_norm, dv_norm]: &mut [NormSlopes<'_>; 3],
    work: &mut Workspace,
) {
    let (t, merged) = (sequence.starts.len(), shape.merged());
    let sides @ Padded { tp, kp, .. } = sides(t, shape);
    work.resize(sides, true);
    let group = shape.queries / shape.keys;
    for key in 0..shape.keys {
        load_keys(shape, norms, sequence, qkv, key, sides, work);
        transpose(&work.v, &mut work.vt, sides);
        work.dk.fill(0.0);
        work.dv.fill(0.0);
        for query in key * group..(key + 1) * group {
            load_queries(shape, norms, sequence, qkv, query, sides, work);
            gather(d_out, merged, query * shape.width, sides, &mut work.raw);
            pad(&work.raw, sides, &mut work.d_out);
            let lse = &lse[query * t..][..t];
            for tile in (0..t).step_by(TILE) {
                let end = (tile + TILE).min(t);
                let from = Block::new(tile, sequence.starts, sides).from;
                for first in (tile..end).step_by(ROWS) {
                    let block = Block::new(first, sequence.starts, sides);
                    let rows = (first - tile) * tp;
                    let (p, ds) = (&mut work.p[rows..][..ROWS * tp], &mut work.ds[rows..][..ROWS * tp]);
                    block.scores(sides, &work.q, &work.kt, p);
                    block.scores(sides, &work.d_out, &work.vt, ds);
                    let mut along = [0.0; ROWS];
                    for (row, along) in along.iter_mut().enumerate().take(t - first) {
                        let cell =
                            (first + row) * merged + query * shape.width..(first + row) * merged + (query + 1) * shape.width;
                        *along = dot_all(&d_out[cell.clone()], &out[cell]);
                    }
                    slopes(p, ds, tp, block, sequence.starts, lse, &along);
                    for row in 0..ROWS {
                        // The tile's earlier rows may see keys that this block's do not.
                        p[row * tp + from..row * tp + block.from].fill(0.0);
                        ds[row * tp + from..row * tp + block.from].fill(0.0);
                    }
                    let left = Left { data: &ds[block.from..], row: tp, inner: 1 };
                    let right = (&work.k[block.from * kp..], kp);
                    let seen = (first + ROWS).min(t) - block.from;
                    product8((kp, seen), left, right, (&mut work.dq[first * kp..], kp), false);
                }
                // Blocks before the key's own do not see it.
                for keys in (from - from % ROWS..end).step_by(ROWS) {
                    let skip = keys.saturating_sub(tile);
                    let depth = (end - tile).next_multiple_of(ROWS) - skip;
                    let (p, ds) = (&work.p[skip * tp + keys..], &work.ds[skip * tp + keys..]);
                    let rows = (tile + skip) * kp;
                    let dv = (&mut work.dv[keys * kp..], kp);
                    product8((kp, depth), Left { data: p, row: 1, inner: tp }, (&work.d_out[rows..], kp), dv, true);
                    let dk = (&mut work.dk[keys * kp..], kp);
                    product8((kp, depth), Left { data: ds, row: 1, inner: tp }, (&work.q[rows..], kp), dk, true);
                }
            }
            let scale = 1.0 / (shape.width as f32).sqrt();
            unrotate(&work.dq, sides, sequence, scale, &mut work.normed);
            gather(qkv, shape.packed(), query * shape.width, sides, &mut work.raw);
            finish(norms.q, sides, &work.raw, &work.normed, &work.stats, dq_norm, dqkv, (shape.packed(), query * shape.width));
        }
        let at = (shape.queries + key) * shape.width;
        unrotate(&work.dk, sides, sequence, 1.0, &mut work.normed);
        gather(qkv, shape.packed(), at, sides, &mut work.raw);
        finish(norms.k, sides, &work.raw, &work.normed, &work.key_stats, dk_norm, dqkv, (shape.packed(), at));
        let at = (shape.queries + shape.keys + key) * shape.width;
        unpad(&work.dv, sides, &mut work.normed);
        gather(qkv, shape.packed(), at, sides, &mut work.raw);
        finish(norms.v, sides, &work.raw, &work.normed, &work.value_stats, dv_norm, dqkv, (shape.packed(), at));
    }
}

fn sides(t: usize, shape: AttentionShape) -> Padded {
    let k = shape.width;
    Padded { t, tp: t.next_multiple_of(LANES), k, kp: k.next_multiple_of(LANES) }
}

/// Eight queries and the keys that they are held against.
#[derive(Clone, Copy)]
struct Block {
    /// First query.
    first: usize,
    /// Queries that exist.
    rows: usize,
    /// First key, a multiple of 16 so that sums fall on the same lanes wherever a document begins.
    from: usize,
    /// End of keys, a multiple of 16.
    to: usize,
}

impl Block {
    fn new(first: usize, starts: &[u32], sides: Padded) -> Self {
        let from = starts[first] as usize;
        let rows = ROWS.min(sides.t - first);
        Self { first, rows, from: from - from % LANES, to: (first + ROWS).next_multiple_of(LANES).min(sides.tp) }
    }
    /// out (8, to − from) at column `from` = rows of `left` · columns of `right` (K, T).
    fn scores(self, sides: Padded, left: &[f32], right: &[f32], out: &mut [f32]) {
        let left = Left { data: &left[self.first * sides.kp..], row: sides.kp, inner: 1 };
        let right = (&right[self.from..], sides.tp);
        product8((self.to - self.from, sides.kp), left, right, (&mut out[self.from..], sides.tp), false);
    }
}

multiversion! {
    /// Scores become exponentials less their row's largest, 0 where a query does not see; `inverse`: one over their sums.
    fn soften(p: &mut [f32], tp: usize, block: Block, starts: &[u32], lse: &mut [f32], inverse: &mut [f32; ROWS]) {
        for row in 0..ROWS {
            let scores = &mut p[row * tp + block.from..row * tp + block.to];
            if row >= block.rows {
                scores.fill(0.0);
                continue;
            }
            let query = block.first + row;
            let (open, close) = (starts[query] as usize - block.from, query + 1 - block.from);
            scores[..open].fill(f32::NEG_INFINITY);
            scores[close..].fill(f32::NEG_INFINITY);
            let most = largest(scores);
            let mut sums = [0.0; LANES];
            for chunk in scores.chunks_exact_mut(LANES) {
                for (value, sum) in chunk.iter_mut().zip(&mut sums) {
                    // What is not seen must be 0 exactly, not merely small.
                    let seen = *value > f32::MIN || value.is_nan();
                    let e = if seen { exp::<FMA>(*value - most) } else { 0.0 };
                    *value = e;
                    *sum += e;
                }
            }
            let total = across(sums);
            inverse[row] = 1.0 / total;
            lse[query] = most + total.ln();
        }
    }

    /// Scores become probabilities p, and d of probabilities becomes d of scores: p (dp − `along`).
    fn slopes(p: &mut [f32], ds: &mut [f32], tp: usize, block: Block, starts: &[u32], lse: &[f32], along: &[f32; ROWS]) {
        for row in 0..ROWS {
            let p = &mut p[row * tp + block.from..row * tp + block.to];
            let ds = &mut ds[row * tp + block.from..row * tp + block.to];
            if row >= block.rows {
                p.fill(0.0);
                ds.fill(0.0);
                continue;
            }
            let query = block.first + row;
            let (open, close) = (starts[query] as usize - block.from, query + 1 - block.from);
            let (lse, along) = (lse[query], along[row]);
            for (p, ds) in p.chunks_exact_mut(LANES).zip(ds.chunks_exact_mut(LANES)) {
                for (p, ds) in p.iter_mut().zip(ds) {
                    *p = exp::<FMA>(*p - lse);
                    *ds = *p * (*ds - along);
                }
            }
            for side in [p, ds] {
                side[..open].fill(0.0);
                side[close..].fill(0.0);
            }
        }
    }

    /// (T, K), normed, to (T, K) padded: rotated by each token's position and scaled.
    fn rotate(x: &[f32], sides: Padded, sequence: Sequence<'_>, scale: f32, out: &mut [f32]) {
        let half = sides.k / 2;
        for (at, (x, out)) in x.chunks_exact(sides.k).zip(out.chunks_exact_mut(sides.kp)).enumerate() {
            match sequence.rotation {
                Some((positions, rotations)) => {
                    let angles = rotations.at(positions[at]);
                    let (x1, x2) = x.split_at(half);
                    let (out1, out2) = out[..sides.k].split_at_mut(half);
                    for i in 0..half {
                        let [cos, sin] = angles[i];
                        let (a, b) = (x1[i] * scale, x2[i] * scale);
                        out1[i] = a * cos - b * sin;
                        out2[i] = b * cos + a * sin;
                    }
                }
                None => out.iter_mut().zip(x).for_each(|(out, x)| *out = *x * scale),
            }
        }
    }

    /// The transpose of [`rotate`].
    fn unrotate(d: &[f32], sides: Padded, sequence: Sequence<'_>, scale: f32, out: &mut [f32]) {
        let half = sides.k / 2;
        for (at, (d, out)) in d.chunks_exact(sides.kp).zip(out.chunks_exact_mut(sides.k)).enumerate() {
            match sequence.rotation {
                Some((positions, rotations)) => {
                    let angles = rotations.at(positions[at]);
                    let (d1, d2) = d[..sides.k].split_at(half);
                    let (out1, out2) = out.split_at_mut(half);
                    for i in 0..half {
                        let [cos, sin] = angles[i];
                        let (a, b) = (d1[i] * scale, d2[i] * scale);
                        out1[i] = a * cos + b * sin;
                        out2[i] = b * cos - a * sin;
                    }
                }
                None => out.iter_mut().zip(d).for_each(|(out, d)| *out = *d * scale),
            }
        }
    }

    /// (T, K) padded to its transpose (K, T), padded.
    fn transpose(x: &[f32], out: &mut [f32], sides: Padded) {
        let Padded { tp, kp, .. } = sides;
        for block in (0..tp).step_by(LANES) {
            for channel in 0..kp {
                let out = &mut out[channel * tp + block..][..LANES];
                for (token, out) in out.iter_mut().enumerate() {
                    *out = x[(block + token) * kp + channel];
                }
            }
        }
    }
}

/// One head's columns of rows of width `packed`, from `at`: (T, K).
fn gather(x: &[f32], packed: usize, at: usize, sides: Padded, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(packed).zip(out.chunks_exact_mut(sides.k)) {
        out.copy_from_slice(&x[at..at + sides.k]);
    }
}

/// (T, K) to (T, K) padded; what pads stays zero.
fn pad(x: &[f32], sides: Padded, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(sides.k).zip(out.chunks_exact_mut(sides.kp)) {
        out[..sides.k].copy_from_slice(x);
    }
}

/// The reverse of [`pad`].
fn unpad(x: &[f32], sides: Padded, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(sides.kp).zip(out.chunks_exact_mut(sides.k)) {
        out.copy_from_slice(&x[..sides.k]);
    }
}

/// Keys (also transposed) and values of a key/value head.
fn load_keys(
    shape: AttentionShape,
    norms: &HeadNorms<'_>,
    sequence: Sequence<'_>,
    qkv: &[f32],
    key: usize,
    sides: Padded,
    work: &mut Workspace,
) {
    let at = (shape.queries + key) * shape.width;
    gather(qkv, shape.packed(), at, sides, &mut work.raw);
    let keys = normed(norms.k, &work.raw, &mut work.normed, &mut work.key_stats);
    rotate(keys, sides, sequence, 1.0, &mut work.k);
    transpose(&work.k, &mut work.kt, sides);
    gather(qkv, shape.packed(), at + shape.keys * shape.width, sides, &mut work.raw);
    pad(normed(norms.v, &work.raw, &mut work.normed, &mut work.value_stats), sides, &mut work.v);
}

/// Queries of a head, over √K.
fn load_queries(
    shape: AttentionShape,
    norms: &HeadNorms<'_>,
    sequence: Sequence<'_>,
    qkv: &[f32],
    query: usize,
    sides: Padded,
    work: &mut Workspace,
) {
    gather(qkv, shape.packed(), query * shape.width, sides, &mut work.raw);
    let queries = normed(norms.q, &work.raw, &mut work.normed, &mut work.stats);
    rotate(queries, sides, sequence, 1.0 / (shape.width as f32).sqrt(), &mut work.q);
}

fn normed<'a>(weights: Option<Norm<'_>>, raw: &'a [f32], out: &'a mut [f32], stats: &mut [[f32; 2]]) -> &'a [f32] {
    match weights {
        Some(weights) => {
            norm(weights, raw, out, stats);
            out
        }
        None => raw,
    }
}

/// Through the norm of heads, if there is one, and into the columns of `dqkv` from `at`.
#[expect(clippy::too_many_arguments, reason = "three calls, side by side")]
fn finish(
    weights: Option<Norm<'_>>,
    sides: Padded,
    raw: &[f32],
    d: &[f32],
    stats: &[[f32; 2]],
    slopes: &mut NormSlopes<'_>,
    dqkv: &mut [f32],
    (packed, at): (usize, usize),
) {
    let rows = dqkv.chunks_exact_mut(packed);
    match weights {
        Some(weights) => {
            for (row, ((d, raw), stats)) in rows.zip(d.chunks_exact(sides.k).zip(raw.chunks_exact(sides.k)).zip(stats)) {
                let row = &mut row[at..at + sides.k];
                row.fill(0.0);
                norm_backward(weights, d, raw, std::slice::from_ref(stats), row, slopes);
            }
        }
        None => {
            for (row, d) in rows.zip(d.chunks_exact(sides.k)) {
                row[at..at + sides.k].copy_from_slice(d);
            }
        }
    }
}
