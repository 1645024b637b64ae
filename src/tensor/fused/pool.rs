//! Memory that passes from layer to layer and from batch to batch.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// The pool of the thread that makes batches, and for how many tokens its buffers are.
    static CURRENT: RefCell<(usize, Arc<Pool>)> = RefCell::default();
}

/// Buffers by their length. Held by the thread that trains, for batches of one size: those of another size free them.
#[derive(Debug, Default)]
pub(in crate::tensor) struct Pool(Mutex<BTreeMap<usize, Vec<Vec<f32>>>>);

impl Pool {
    /// The calling thread's pool for batches of so many tokens.
    pub fn of_thread(tokens: usize) -> Arc<Self> {
        CURRENT.with_borrow_mut(|current| {
            if current.0 != tokens {
                *current = (tokens, Arc::default());
            }
            current.1.clone()
        })
    }
    fn buffers(&self) -> MutexGuard<'_, BTreeMap<usize, Vec<Vec<f32>>>> {
        // A panic elsewhere leaves at worst a buffer too few.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A buffer of any content.
    pub fn take(&self, length: usize) -> Vec<f32> {
        let found = self.buffers().get_mut(&length).and_then(Vec::pop);
        found.unwrap_or_else(|| vec![0.0; length])
    }
    /// A buffer of zeros.
    pub fn zeros(&self, length: usize) -> Vec<f32> {
        match self.buffers().get_mut(&length).and_then(Vec::pop) {
            Some(mut buffer) => {
                buffer.fill(0.0);
                buffer
            }
            None => vec![0.0; length],
        }
    }
    /// A copy.
    pub fn copy(&self, from: &[f32]) -> Vec<f32> {
        let mut buffer = self.take(from.len());
        buffer.copy_from_slice(from);
        buffer
    }
    /// Gives a buffer to whoever needs one of its length.
    pub fn give(&self, buffer: Vec<f32>) {
        if !buffer.is_empty() {
            self.buffers().entry(buffer.len()).or_default().push(buffer);
        }
    }
}
