//! The `drawbridge` command: becomes a server's keeper where it was started as one, else does what
//! its command line says.

use anyhow::Context;
use clap::Parser;
use drawbridge::cli::Cli;
use std::{io::Write, process::ExitCode};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First of all: no thread may run yet.
    drawbridge::backend::stdio::child_main_if_asked();
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "drawbridge: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let code = runtime.block_on(cli.run()).unwrap_or_else(|failure| {
        let _ = std::io::stderr().write_all(failure.report().as_bytes());
        ExitCode::from(failure.code())
    });
    // A blocking read of a terminal would otherwise hold the process open.
    runtime.shutdown_background();
    Ok(code)
}
