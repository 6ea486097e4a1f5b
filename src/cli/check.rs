//! `drawbridge check`: everything that is wrong with a configuration, and with its servers.

use super::{Failure, flags::LogFlags, print, serve::start_failure, source, table::table};
use crate::{
    backend::{Fault as ServerFault, Server},
    config::{self, Auth, Config, Faults, Loaded, LogLevel},
    gateway::{Gateway, Options},
    mcp::{Era, ListKind},
    router::Inspected,
};
use clap::Args;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

/// Servers contacted at a time: each may be a program that a package runner installs first.
const AT_A_TIME: usize = 8;
/// How long what runs may take to end.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  drawbridge check --config drawbridge.yaml
  drawbridge check --config claude_desktop_config.json --connect")]
pub(super) struct CheckArgs {
    /// The configuration; left out: drawbridge.yaml (.yml, .toml, .json) of this folder
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Start or reach each server too, and tell what it offers
    #[arg(long)]
    connect: bool,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    log: LogFlags,
}

/// A server at one contact.
struct Contact {
    server: String,
    took: Duration,
    result: Result<Inspected, ServerFault>,
}

pub(super) async fn run(args: CheckArgs) -> Result<ExitCode, Failure> {
    let file = source::file(args.config.as_deref())?.ok_or(Failure::NoConfig)?;
    let _log = args.log.start_quiet(LogLevel::Error)?;
    let loaded = match source::load(&file) {
        Ok(loaded) => loaded,
        Err(Failure::Config { faults, .. }) => return tell_faults(&args, &file, &faults),
        Err(other) => return Err(other),
    };
    let config = &loaded.config;
    let built = Gateway::build(config, &Options::default());
    let gateway = built.map_err(|error| start_failure(error, config))?;
    let contacts = match args.connect {
        true => {
            let contacts = contact_all(config, &gateway).await;
            gateway.close(GRACE).await;
            contacts?
        }
        false => Vec::new(),
    };
    match args.json {
        true => print::json(&json_of(&file, &loaded, &contacts, args.connect))?,
        false => print::out(&text_of(&file, &loaded, &contacts))?,
    }
    match contacts.iter().all(|contact| contact.result.is_ok()) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn contact_all(config: &Config, gateway: &Gateway) -> Result<Vec<Contact>, Failure> {
    let servers = gateway.router.servers.iter();
    let contacts = servers
        .zip(config.servers.values())
        .map(|(server, settings)| contact(gateway, server, settings));
    // Collected first: the stream borrows what the contacts borrow.
    let contacts = contacts.collect::<Vec<_>>();
    let all = stream::iter(contacts).buffered(AT_A_TIME).collect();
    tokio::select! {
        contacts = all => Ok(contacts),
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}

/// Starting and listing have limits of their own; the one over both is for what they do not see.
async fn contact(gateway: &Gateway, server: &Arc<Server>, settings: &config::Server) -> Contact {
    let limit = settings.start.timeout.get() + settings.timeouts.call.get();
    let started = Instant::now();
    let inspected = gateway.router.inspect(server);
    let result = match tokio::time::timeout(limit, inspected).await {
        Ok(result) => result,
        Err(_) => Err(ServerFault::TimedOut(limit)),
    };
    Contact {
        server: server.id.to_string(),
        took: started.elapsed(),
        result,
    }
}

fn tell_faults(args: &CheckArgs, file: &Path, faults: &Faults) -> Result<ExitCode, Failure> {
    let warnings = faults.warnings();
    if args.json {
        print::json(&json!({
            "file": file.display().to_string(),
            "ok": false,
            "faults": faults.iter().map(json_fault).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(json_fault).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::FAILURE);
    }
    let mut text = String::new();
    for fault in faults.iter() {
        let _ = writeln!(text, "{fault}");
    }
    for warning in warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let faults = print::count(faults.iter().len(), "fault");
    let warnings = print::count(warnings.len(), "warning");
    let _ = writeln!(text, "\n{}: {faults}, {warnings}", file.display());
    print::out(&text)?;
    Ok(ExitCode::FAILURE)
}

fn text_of(file: &Path, loaded: &Loaded, contacts: &[Contact]) -> String {
    let mut text = String::new();
    for warning in &loaded.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    for renamed in &loaded.renamed {
        let name = print::harmless(&renamed.name);
        let _ = writeln!(text, "the server `{name}` is called `{}` here", renamed.id);
    }
    for disabled in &loaded.disabled {
        let name = print::harmless(disabled);
        let _ = writeln!(text, "the server `{name}` is switched off");
    }
    let config = &loaded.config;
    let auth = match &config.auth {
        None => "no auth (loopback only)".to_owned(),
        Some(Auth::Open) => "auth: none, open to everyone".to_owned(),
        Some(Auth::Keys(keys)) => print::count(keys.api_keys.len(), "API key"),
    };
    let _ = writeln!(
        text,
        "{} is right: {}, {}, {auth}",
        file.display(),
        print::count(config.servers.len(), "server"),
        print::count(config.endpoints.len(), "endpoint"),
    );
    if !contacts.is_empty() {
        text.push('\n');
        text.push_str(&table(&rows(contacts)));
        text.push_str(&reasons(contacts));
    }
    text
}

fn rows(contacts: &[Contact]) -> Vec<Vec<String>> {
    let head = [
        "SERVER",
        "STATE",
        "PROTOCOL",
        "IMPLEMENTATION",
        "TOOLS",
        "PROMPTS",
        "RESOURCES",
        "TEMPLATES",
        "TIME",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for contact in contacts {
        let mut row = vec![contact.server.clone()];
        if let Ok(inspected) = &contact.result {
            let protocol = format!("{} ({})", inspected.profile.revision, era(inspected));
            row.extend(["up".to_owned(), protocol, implementation(inspected)]);
            row.extend(inspected.counts.map(|count| count.to_string()));
            row.push(format!("{} ms", contact.took.as_millis()));
        } else {
            row.push("DOWN".to_owned());
        }
        rows.push(row);
    }
    rows
}

/// Why servers are down, a line each, and what to do about it.
fn reasons(contacts: &[Contact]) -> String {
    let mut text = String::new();
    for contact in contacts {
        if let Err(fault) = &contact.result {
            let reason = print::harmless(&fault.to_string()).replace('\n', " ");
            let _ = writeln!(text, "the server `{}` {reason}", contact.server);
        }
    }
    if !text.is_empty() {
        text.insert(0, '\n');
        text.push_str("  what a server itself says of it is shown with --log-level info\n");
    }
    text
}

fn era(inspected: &Inspected) -> &'static str {
    match inspected.profile.era() {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn server_info(inspected: &Inspected) -> Value {
    let raw = inspected.profile.server_info.as_deref();
    raw.and_then(|raw| serde_json::from_slice(raw).ok())
        .unwrap_or_default()
}

fn implementation(inspected: &Inspected) -> String {
    let info = server_info(inspected);
    let said = |member: &str| info[member].as_str().unwrap_or_default().to_owned();
    let text = format!("{} {}", said("name"), said("version"));
    print::harmless(text.trim()).replace(['\n', '\t'], " ")
}

fn json_of(file: &Path, loaded: &Loaded, contacts: &[Contact], connected: bool) -> Value {
    let renamed = loaded.renamed.iter();
    let renamed = renamed.map(|r| json!({"name": r.name, "id": r.id.as_str()}));
    let mut value = json!({
        "file": file.display().to_string(),
        "ok": contacts.iter().all(|contact| contact.result.is_ok()),
        "faults": [],
        "warnings": loaded.warnings.iter().map(json_fault).collect::<Vec<_>>(),
        "renamed": renamed.collect::<Vec<_>>(),
        "disabled": loaded.disabled,
    });
    if connected {
        value["servers"] = contacts.iter().map(json_contact).collect();
    }
    value
}

fn json_fault(fault: &config::Fault) -> Value {
    json!({
        "line": fault.at.map(|at| at.line),
        "column": fault.at.map(|at| at.column),
        "path": fault.path.as_str(),
        "text": fault.text,
    })
}

fn json_contact(contact: &Contact) -> Value {
    let took = contact.took.as_millis() as u64;
    match &contact.result {
        Err(fault) => json!({
            "name": contact.server, "ok": false, "took_ms": took, "error": fault.to_string(),
        }),
        Ok(inspected) => {
            let count = |kind: ListKind| inspected.counts[kind.index()];
            json!({
                "name": contact.server,
                "ok": true,
                "took_ms": took,
                "era": era(inspected),
                "revision": inspected.profile.revision.as_str(),
                "server": server_info(inspected),
                "tools": count(ListKind::Tools),
                "prompts": count(ListKind::Prompts),
                "resources": count(ListKind::Resources),
                "templates": count(ListKind::Templates),
            })
        }
    }
}
