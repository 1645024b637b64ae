//! Executes a plan into a store and tells its story.
//!
//! Owns the store's layout, locks, resuming, the order of work and the stream of events that tells of it. Deliberately knows no arms, no claims and no tensor: a [`worker::Worker`]
//! does a node's work. Invariant: a node in the store is whole or absent.

pub mod device;
mod differences;
pub mod event;
pub mod executor;
pub mod history;
pub mod lines;
pub mod lock;
pub mod machine;
pub mod profile;
pub mod record;
pub mod replay;
pub mod rerun;
pub mod slurm;
pub mod store;
mod stream;
pub mod tfevents;
pub mod worker;

pub use device::Device;
pub use differences::differences;
pub use event::Event;
pub use executor::{Options, Summary, execute};
pub use history::History;
pub use store::{Standing, Store, StoreError};
pub use stream::Listener;
