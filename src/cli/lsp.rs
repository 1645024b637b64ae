//! `xrun lsp`.

use lsp_server::Connection;

use super::world::Files;
use super::{Fault, Outcome};
use crate::lsp;

pub fn lsp() -> Result<Outcome, Fault> {
    let (connection, threads) = Connection::stdio();
    lsp::serve(&connection, &Files).map_err(Fault::Machine)?;
    // The threads end when the connection does.
    drop(connection);
    threads.join().map_err(|error| Fault::Machine(error.to_string()))?;
    Ok(Outcome::Done)
}
