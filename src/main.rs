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

fn main() -> ExitCode {
    drawbridge::backend::stdio::child_main_if_asked();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let Command::Example(args) = Cli::parse().command;
    match example::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drawbridge: {error}");
            ExitCode::FAILURE
        }
    }
}
