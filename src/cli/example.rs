//! `drawbridge example`.

use super::Failure;
use crate::example::{self, ExampleArgs};
use std::process::ExitCode;

/// Runs a built-in example server until its client or the operator ends it.
pub(super) async fn run(args: ExampleArgs) -> Result<ExitCode, Failure> {
    let ran = example::run(args).await;
    ran.map_err(|source| Failure::Io {
        what: "the example server cannot run",
        source,
    })?;
    Ok(ExitCode::SUCCESS)
}
