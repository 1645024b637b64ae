//! Values that are worked out once, by the content of what they are worked out from.
//!
//! Owns digests. Invariant: equal contents have equal digests, whichever `Arc` holds them.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use serde::Serialize;

/// BLAKE3 over the JSON of plain data, under a context of its own.
pub(super) fn digest(context: &str, of: &impl Serialize) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    // A buffer: the serialiser writes a few bytes at a time.
    let mut buffer = BufWriter::with_capacity(4 << 10, &mut hasher);
    serde_json::to_writer(&mut buffer, of).expect("plain data has a JSON form");
    buffer.flush().expect("a hasher takes everything");
    drop(buffer);
    hasher.finalize()
}

/// A table of what is known already.
#[derive(Debug)]
pub(super) struct Memo<V>(BTreeMap<[u8; 32], V>);

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: Clone> Memo<V> {
    /// The value for `of`, made if it is new.
    pub(super) fn get(&mut self, of: &impl Serialize, make: impl FnOnce() -> V) -> V {
        let key = *digest("xrun 2026 planner memo v1", of).as_bytes();
        self.0.entry(key).or_insert_with(make).clone()
    }
}
