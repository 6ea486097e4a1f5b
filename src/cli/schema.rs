//! `drawbridge schema`.

use super::{Failure, print};
use std::process::ExitCode;

/// Prints the configuration's JSON Schema.
pub(super) fn run() -> Result<ExitCode, Failure> {
    print::json(&crate::config::schema())?;
    Ok(ExitCode::SUCCESS)
}
