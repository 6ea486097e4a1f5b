//! The commands: what the operator said, turned into calls of the rooms below.
//!
//! One file for each command. What several of them need: [`flags`] (what was said),
//! [`source`] (which configuration that means), [`visit`] (a gateway in this process
//! with one client), [`print`] and [`table`] (standard output), [`failure`] (why it did
//! not work, and what to do). Results go to standard output; logs, progress and
//! failures to standard error.

mod banner;
mod call;
mod check;
mod example;
mod failure;
mod flags;
mod key;
mod print;
mod run;
mod schema;
mod serve;
mod source;
mod table;
mod tools;
mod visit;

pub use failure::Failure;

use clap::{Parser, Subcommand};
use flags::GatewayFlags;
use std::process::ExitCode;

/// One door for every MCP server
///
/// Without a command, starts the gateway with drawbridge.yaml (or .yml, .toml, .json) of
/// this folder, or, if there is none, with three built-in example servers.
#[derive(Debug, Parser)]
#[command(
    name = "drawbridge",
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES
)]
pub struct Cli {
    #[command(flatten)]
    gateway: GatewayFlags,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  drawbridge                                    the built-in examples at http://127.0.0.1:8080/mcp
  drawbridge run -- npx -y @scope/server /data  one stdio server
  drawbridge run https://host.example/mcp       one remote server
  drawbridge serve --config drawbridge.yaml     everything in a file
  drawbridge check --config drawbridge.yaml     is the file right?";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the gateway with a configuration
    Serve(serve::ServeArgs),
    /// Start the gateway with one server at /mcp, without a file
    Run(run::RunArgs),
    /// Tell everything that is wrong with a configuration
    Check(check::CheckArgs),
    /// List the tools as clients see them
    Tools(tools::ToolsArgs),
    /// Call one tool
    Call(call::CallArgs),
    /// Make API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Print the JSON Schema of the configuration
    Schema,
    /// Run a built-in example server on stdio or HTTP
    Example(crate::example::ExampleArgs),
}

impl Cli {
    /// Does what was asked, and says how the process should end.
    pub async fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            None => serve::run(serve::ServeArgs::without_file(self.gateway)).await,
            Some(Command::Serve(args)) => serve::run(args).await,
            Some(Command::Run(args)) => run::run(args).await,
            Some(Command::Check(args)) => check::run(args).await,
            Some(Command::Tools(args)) => tools::run(args).await,
            Some(Command::Call(args)) => call::run(args).await,
            Some(Command::Key(command)) => key::run(command),
            Some(Command::Schema) => schema::run(),
            Some(Command::Example(args)) => example::run(args).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_go_without_a_command_too() {
        let cli = Cli::try_parse_from(["drawbridge", "--listen", "127.0.0.1:0"]).unwrap();
        assert!(cli.command.is_none());
        assert!(Cli::try_parse_from(["drawbridge", "--listen", "127.0.0.1:0", "schema"]).is_err());
    }
}
