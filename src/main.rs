//! The `drawbridge` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use drawbridge::example::{self, ExampleArgs};

/// One door for every MCP server
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a built-in example server on stdio or HTTP
    Example(ExampleArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Example(args) = Cli::parse().command;
    match example::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drawbridge: {error}");
            ExitCode::FAILURE
        }
    }
}
