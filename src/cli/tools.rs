//! `drawbridge tools`: the merged catalog, as clients see it.

use super::{Failure, flags::LogFlags, print, source, table::table, visit::Visit};
use crate::{
    config::{LogLevel, Period},
    mcp::ListKind,
};
use clap::Args;
use serde_json::{Value, json};
use std::{collections::HashMap, io::IsTerminal, path::PathBuf, process::ExitCode};

/// The longest description in a table on a terminal.
const DESCRIPTION: usize = 80;

/// Which gateway a command builds for itself, and where in it it looks.
#[derive(Debug, Args)]
pub(super) struct PlaceFlags {
    /// The configuration; left out: this folder's, or the built-in examples
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The endpoint; left out: the first one
    #[arg(long, value_name = "PATH")]
    pub endpoint: Option<String>,

    /// How long a server may take to start and list what it has
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub timeout: Period,

    #[command(flatten)]
    pub log: LogFlags,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  drawbridge tools --config drawbridge.yaml
  drawbridge tools --config drawbridge.yaml --endpoint /mcp/files --json")]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    place: PlaceFlags,

    /// Print whole tools as JSON
    #[arg(long)]
    json: bool,
}

/// What was found.
struct Found {
    tools: Vec<Value>,
    /// Servers by the exposed names of their tools.
    servers: HashMap<String, String>,
    missing: Vec<String>,
}

pub(super) async fn run(args: ToolsArgs) -> Result<ExitCode, Failure> {
    let place = &args.place;
    let config = source::find(place.config.as_deref())?.config;
    let _log = place.log.start_quiet(LogLevel::Error)?;
    let visit = Visit::begin(config, place.endpoint.as_deref(), place.timeout).await?;
    let found = list(&visit).await;
    visit.end().await;
    let found = found?;
    match args.json {
        true => print::json(&found.json())?,
        false => print::out(&found.table())?,
    }
    if found.missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let missing = found.missing.join(", ");
    print::note(&format!("drawbridge: could not be reached: {missing}"));
    print::note("  `drawbridge check --connect` tells why");
    Ok(ExitCode::FAILURE)
}

async fn list(visit: &Visit) -> Result<Found, Failure> {
    let mut found = Found {
        tools: Vec::new(),
        servers: HashMap::new(),
        missing: Vec::new(),
    };
    let mut params = json!({});
    loop {
        let mut page = visit.ask("tools/list", &params, |_| {}).await?;
        if let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) {
            found.tools.extend(tools);
        }
        if let Some(missing) = page["_meta"]["drawbridge/missingServers"].as_array() {
            let names = missing.iter().filter_map(Value::as_str);
            found.missing = names.map(str::to_owned).collect();
        }
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let endpoint = &visit.gateway.router.endpoints[visit.session.caller.endpoint];
    if let Some(place) = endpoint.only() {
        let names = found.tools.iter().filter_map(|t| t["name"].as_str());
        let id = place.server.id.to_string();
        found.servers = names.map(|n| (n.to_owned(), id.clone())).collect();
    }
    for slot in visit.session.state.slots() {
        let Some(listing) = slot.layer().known(ListKind::Tools) else {
            continue;
        };
        for entry in &listing.entries {
            let id = slot.server.id.to_string();
            found.servers.entry(entry.exposed.clone()).or_insert(id);
        }
    }
    Ok(found)
}

impl Found {
    fn server(&self, tool: &Value) -> &str {
        let name = tool["name"].as_str().unwrap_or_default();
        self.servers.get(name).map_or("", String::as_str)
    }

    fn json(&self) -> Value {
        let tool =
            |tool: &Value| json!({"name": tool["name"], "server": self.server(tool), "tool": tool});
        let tools: Vec<Value> = self.tools.iter().map(tool).collect();
        json!({"tools": tools, "missing": self.missing})
    }

    fn table(&self) -> String {
        let mut rows = vec![
            ["NAME", "SERVER", "DESCRIPTION"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for tool in &self.tools {
            let name = tool["name"].as_str().unwrap_or_default();
            let told = tool["description"].as_str().unwrap_or_default();
            rows.push(vec![
                print::harmless(name),
                self.server(tool).to_owned(),
                first_line(told, std::io::stdout().is_terminal()),
            ]);
        }
        table(&rows)
    }
}

/// The first line with anything in it, cut where a terminal would fold it.
fn first_line(text: &str, cut: bool) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty());
    let line = print::harmless(line.unwrap_or_default()).replace('\t', " ");
    match line.char_indices().nth(DESCRIPTION) {
        Some((end, _)) if cut => format!("{}…", &line[..end]),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line() {
        assert_eq!(
            first_line("\n\n  Reads\ta file.\u{7}\nMore.", false),
            "Reads a file. "
        );
        assert_eq!(
            first_line(&"é".repeat(100), true),
            format!("{}…", "é".repeat(80))
        );
        assert_eq!(first_line("", true), "");
    }
}
