//! `drawbridge call`: one tool, once.

use super::{Failure, print, source, tools::PlaceFlags, visit::Visit};
use crate::{
    config::LogLevel,
    mcp::{Message, Method},
};
use clap::Args;
use serde_json::{Value, json};
use std::{fmt::Write, io::Read, process::ExitCode};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  drawbridge call weather__checkWeather '{\"city\":\"Paris\"}'
  drawbridge call files__read_file - --config drawbridge.yaml < arguments.json")]
pub(super) struct CallArgs {
    /// The tool's name as `drawbridge tools` lists it
    name: String,

    /// Its arguments, a JSON object; `-` reads them from standard input
    #[arg(value_name = "JSON", default_value = "{}", hide_default_value = true)]
    arguments: String,

    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: PlaceFlags,
}

pub(super) async fn run(args: CallArgs) -> Result<ExitCode, Failure> {
    let arguments = arguments(&args.arguments)?;
    let place = &args.place;
    let config = source::find(place.config.as_deref())?.config;
    let _log = place.log.start_quiet(LogLevel::Error)?;
    let visit = Visit::begin(config, place.endpoint.as_deref(), place.timeout).await?;
    let params = json!({
        "name": args.name,
        "arguments": arguments,
        "_meta": {"progressToken": 1},
    });
    let result = visit.ask("tools/call", &params, tell).await;
    visit.end().await;
    let result = result?;
    match args.json {
        true => print::json(&result)?,
        false => print::out(&print::foreign(&content(&result)))?,
    }
    match result["isError"].as_bool() {
        Some(true) => Ok(ExitCode::FAILURE),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn arguments(text: &str) -> Result<Value, Failure> {
    let mut input = String::new();
    if text == "-" {
        let read = std::io::stdin().read_to_string(&mut input);
        read.map_err(|source| Failure::Io {
            what: "cannot read standard input",
            source,
        })?;
    } else {
        input.push_str(text);
    }
    let value: Value = serde_json::from_str(&input).map_err(Failure::NotJson)?;
    match value.is_object() {
        true => Ok(value),
        false => Err(Failure::NotAnObject),
    }
}

/// Progress goes to standard error.
fn tell(message: &Message) {
    if message.method() != Method::Progress {
        return;
    }
    let params: Value = message
        .payload()
        .and_then(|p| serde_json::from_slice(p).ok())
        .unwrap_or_default();
    print::note(&progress(&params));
}

fn progress(params: &Value) -> String {
    let mut line = format!("progress {}", params["progress"]);
    if params["total"].is_number() {
        let _ = write!(line, "/{}", params["total"]);
    }
    if let Some(text) = params["message"].as_str() {
        let _ = write!(line, " {}", print::harmless(text).replace('\n', " "));
    }
    line
}

/// Text as it is, and of everything else what it is. A result with structured content only is shown as JSON.
fn content(result: &Value) -> String {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text = String::new();
    for block in blocks {
        text.push_str(&shown(block));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if text.is_empty() && result["structuredContent"].is_object() {
        text = format!("{:#}\n", result["structuredContent"]);
    }
    text
}

fn shown(block: &Value) -> String {
    let said = |member: &str| block[member].as_str().unwrap_or("?");
    match block["type"].as_str().unwrap_or_default() {
        "text" => block["text"].as_str().unwrap_or_default().to_owned(),
        kind @ ("image" | "audio") => {
            let size = decoded(block["data"].as_str());
            format!("[{kind} {}, {size} bytes]", said("mimeType"))
        }
        "resource_link" => format!("[link {}]", said("uri")),
        "resource" => {
            let resource = &block["resource"];
            match resource["text"].as_str() {
                Some(text) => text.to_owned(),
                None => {
                    let uri = resource["uri"].as_str().unwrap_or("?");
                    format!("[{uri}, {} bytes]", decoded(resource["blob"].as_str()))
                }
            }
        }
        kind => format!("[{kind}]"),
    }
}

/// How many bytes a base64 text stands for.
fn decoded(base64: Option<&str>) -> usize {
    base64.unwrap_or_default().trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_and_the_rest_is_named() {
        let result = json!({"content": [
            {"type": "text", "text": "sunny"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "x://y"},
            {"type": "resource", "resource": {"uri": "x://z", "blob": "AA=="}},
            {"type": "future"},
        ]});
        let text = "sunny\n[image image/png, 3 bytes]\n[link x://y]\n[x://z, 1 bytes]\n[future]\n";
        assert_eq!(content(&result), text);
    }

    #[test]
    fn structured_content_alone_is_shown_as_json() {
        let text = content(&json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(text, "{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn progress_is_one_line() {
        let params = json!({"progress": 1, "total": 4, "message": "a\nb"});
        assert_eq!(progress(&params), "progress 1/4 a b");
        assert_eq!(progress(&json!({"progress": 0.5})), "progress 0.5");
    }

    #[test]
    fn arguments_are_an_object() {
        assert!(arguments("{\"a\":1}").is_ok());
        assert!(matches!(arguments("[1]"), Err(Failure::NotAnObject)));
        assert!(matches!(arguments("{a:1}"), Err(Failure::NotJson(_))));
    }
}
