//! Executes a plan into a store and tells its story.
//!
//! Owns the store's layout, locks, resuming and the order of work. Deliberately knows no arms, no claims and no tensor: a [`worker::Worker`]
//! does a node's work. Invariant: a node in the store is whole or absent.

pub mod device;
mod differences;
pub mod executor;
pub mod history;
pub mod lines;
pub mod lock;
pub mod record;
pub mod rerun;
pub mod store;
pub mod worker;

pub use device::Device;
pub use differences::differences;
pub use executor::{Listener, Options, Summary, execute};
pub use history::History;
pub use store::{Standing, Store, StoreError};
