//! The methods that all five revisions share: lists in pages, tools, resources, prompts, completion. What
//! only sessions have stands in `legacy`, what only 2026-07-28 has in `modern`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::call::Call;
use super::fault::Fault;
use super::shape;

/// Proposals in one completion, as the specification caps them.
const MAX_PROPOSALS: usize = 100;

/// The result of a request, or why there is none.
pub async fn answer(call: &Call, method: &str) -> Result<Value, Fault> {
    let server = &*call.world.server;
    let offers = server.offers();
    match method {
        "tools/list" => page(call, "tools", server.tools(&call.diary)),
        "tools/call" => tool(call).await,
        "resources/list" => page(call, "resources", server.resources()),
        "resources/templates/list" => page(call, "resourceTemplates", server.templates()),
        "resources/read" => read(call),
        "prompts/list" if offers.prompts => page(call, "prompts", server.prompts()),
        "prompts/get" if offers.prompts => prompt(call),
        "completion/complete" if offers.completions => complete(call),
        _ => Err(Fault::method(method)),
    }
}

/// The string parameter of that name.
pub fn string<'a>(params: &'a Value, name: &str) -> Result<&'a str, Fault> {
    params[name]
        .as_str()
        .ok_or_else(|| Fault::params(format!("`{name}` must be given, as a string")))
}

/// The parameter `arguments`, which may be left out.
fn arguments(params: &Value) -> Result<Map<String, Value>, Fault> {
    match &params["arguments"] {
        Value::Null => Ok(Map::new()),
        Value::Object(arguments) => Ok(arguments.clone()),
        _ => Err(Fault::params("`arguments` must be an object")),
    }
}

/// One page of a list. A cursor is the place to go on at; it reads as noise so that nobody counts with it.
fn page(call: &Call, field: &str, items: Vec<Value>) -> Result<Value, Fault> {
    let start = match &call.params["cursor"] {
        Value::Null => 0,
        cursor => cursor
            .as_str()
            .and_then(place)
            .filter(|start| call.world.page_size.is_some() && *start < items.len())
            .ok_or_else(|| Fault::params("Invalid cursor"))?,
    };
    let size = call.world.page_size.unwrap_or(usize::MAX);
    let end = start.saturating_add(size).min(items.len());
    let more = end < items.len();
    let shown: Vec<Value> = items
        .into_iter()
        .skip(start)
        .take(size)
        .map(|item| shape::entry(item, call.revision))
        .collect();
    let mut result = json!({ field: shown });
    if more {
        result["nextCursor"] = json!(URL_SAFE_NO_PAD.encode(format!("from:{end}")));
    }
    Ok(result)
}

fn place(cursor: &str) -> Option<usize> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    text.strip_prefix("from:")?.parse().ok()
}

async fn tool(call: &Call) -> Result<Value, Fault> {
    let name = string(&call.params, "name")?;
    let server = &*call.world.server;
    let tool = server
        .tools(&call.diary)
        .into_iter()
        .find(|tool| tool["name"] == name)
        .ok_or_else(|| Fault::params(format!("Unknown tool: {name}")))?;
    let arguments = Value::Object(arguments(&call.params)?);
    let outcome = match jsonschema::validate(&tool["inputSchema"], &arguments) {
        Ok(()) => server.call(call, name, &arguments).await,
        Err(error) => Err(Fault::tool(format!("Invalid arguments: {error}"))),
    };
    match outcome {
        Ok(result) => Ok(shape::tool_result(result, call.revision)),
        Err(Fault::Tool(reason)) => {
            let mut result = shape::text(reason);
            result["isError"] = json!(true);
            Ok(result)
        }
        Err(fault) => Err(fault),
    }
}

fn read(call: &Call) -> Result<Value, Fault> {
    let uri = string(&call.params, "uri")?;
    let contents = call
        .world
        .server
        .read(&call.diary, uri)
        .ok_or_else(|| Fault::resource(call.revision, uri))?;
    Ok(json!({ "contents": [contents] }))
}

fn prompt(call: &Call) -> Result<Value, Fault> {
    let name = string(&call.params, "name")?;
    let server = &*call.world.server;
    let prompt = server
        .prompts()
        .into_iter()
        .find(|prompt| prompt["name"] == name)
        .ok_or_else(|| Fault::params(format!("Unknown prompt: {name}")))?;
    let arguments = arguments(&call.params)?;
    for argument in prompt["arguments"].as_array().into_iter().flatten() {
        let name = argument["name"].as_str().unwrap_or_default();
        let value = arguments.get(name).unwrap_or(&Value::Null);
        if argument["required"] == true && value.is_null() {
            return Err(Fault::params(format!("Missing argument: {name}")));
        }
        if !value.is_null() && !value.is_string() {
            return Err(Fault::params(format!("Not a string: {name}")));
        }
    }
    Ok(server.prompt(name, &arguments))
}

fn complete(call: &Call) -> Result<Value, Fault> {
    let place = completion_place(call)?;
    let argument = &call.params["argument"];
    let name = string(argument, "name")?;
    let typed = string(argument, "value")?.to_lowercase();
    let resolved = &call.params["context"]["arguments"];
    let mut values = call.world.server.values(&place, name);
    // A flight does not end where it starts: what another argument already says is no proposal.
    values.retain(|value| {
        let taken = resolved
            .as_object()
            .is_some_and(|resolved| resolved.values().any(|other| other == value));
        value.to_lowercase().starts_with(&typed) && !taken
    });
    let total = values.len();
    values.truncate(MAX_PROPOSALS);
    Ok(json!({
        "completion": { "values": values, "total": total, "hasMore": total > MAX_PROPOSALS }
    }))
}

/// The prompt or template that the request refers to, if it has the argument.
fn completion_place(call: &Call) -> Result<String, Fault> {
    let server = &*call.world.server;
    let reference = &call.params["ref"];
    let (place, argument_known) = match reference["type"].as_str() {
        Some("ref/prompt") => {
            let name = string(reference, "name")?;
            let prompt = server
                .prompts()
                .into_iter()
                .find(|prompt| prompt["name"] == name);
            let argument = &call.params["argument"]["name"];
            let known = prompt.is_some_and(|prompt| {
                let arguments = prompt["arguments"].as_array();
                arguments
                    .into_iter()
                    .flatten()
                    .any(|known| known["name"] == *argument)
            });
            (name, known)
        }
        Some("ref/resource") => {
            let uri = string(reference, "uri")?;
            let listed = server
                .templates()
                .iter()
                .any(|known| known["uriTemplate"] == uri);
            let argument = call.params["argument"]["name"].as_str().unwrap_or_default();
            (uri, listed && uri.contains(&format!("{{{argument}}}")))
        }
        _ => {
            return Err(Fault::params(
                "`ref` must be a `ref/prompt` or a `ref/resource`",
            ));
        }
    };
    if !argument_known {
        return Err(Fault::params(format!("Nothing to complete in {place}")));
    }
    Ok(place.to_owned())
}
