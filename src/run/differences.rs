//! What is different between two stores: nodes that only one of them has, and nodes of one key whose results are not the same.
//!
//! Reads records alone: what a record says of a file is what was written. Deliberately judges nothing and changes nothing. Invariant: two equal stores have no
//! difference. One key is one computation: on one kind of machine a difference in results is a fault, between two kinds it is what their arithmetic makes.

use std::collections::BTreeSet;

use super::record::Record;
use super::store::{Store, StoreError};
use crate::plan::node::Key;

/// One line for each node that is not in both stores alike, in the order of keys.
pub fn differences(old: &Store, new: &Store) -> Result<Vec<String>, StoreError> {
    let (first, second) = (old.keys()?, new.keys()?);
    let all: BTreeSet<&Key> = first.iter().chain(&second).collect();
    Ok(all.into_iter().filter_map(|key| difference(key, &old.recorded(key), &new.recorded(key))).collect())
}

/// What a store has of a node: nothing, a record, or the reason why that is not to be trusted.
type Kept = Option<Result<Record, String>>;

fn difference(key: &Key, old: &Kept, new: &Kept) -> Option<String> {
    let said = match (old, new) {
        (None, None) => return None,
        (Some(Ok(record)), None) => format!("{} only in the first", record.kind),
        (None, Some(Ok(record))) => format!("{} only in the second", record.kind),
        (Some(Err(reason)), None) => format!("only in the first, and damaged: {reason}"),
        (None, Some(Err(reason))) => format!("only in the second, and damaged: {reason}"),
        (Some(Err(reason)), Some(_)) => format!("damaged in the first: {reason}"),
        (Some(_), Some(Err(reason))) => format!("damaged in the second: {reason}"),
        (Some(Ok(old)), Some(Ok(new))) => {
            let names: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
            let other: Vec<String> = names
                .into_iter()
                .filter(|name| old.files.get(*name) != new.files.get(*name))
                .map(|name| format!("`{name}`"))
                .collect();
            match other.as_slice() {
                [] if old == new => return None,
                [] => format!("{} with other counts", old.kind),
                names => format!("{} with another {}", old.kind, names.join(", ")),
            }
        }
    };
    Some(format!("node {}: {said}", key.0.get(..16).unwrap_or(&key.0)))
}
