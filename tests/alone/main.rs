//! Tests that need the whole process: one at a time, and not beside the tests of another file.
#![cfg(feature = "train")]

mod levels;
mod memory;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the test that runs.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
