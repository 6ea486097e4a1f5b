//! The calendar server: events, mail, a passport as a blob. Shows a list of tools that changes (a trip can be
//! cancelled once it is booked), embedded resources, roots, and arguments that are mirrored into headers.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::call::Call;
use super::fault::Fault;
use super::server::{Offers, Reply, Server};
use super::shape;
use super::world::locked;

const EVENTS: &str = "calendar://events/2024";
const PASSPORT: &str = "calendar://passport";

/// One white pixel, which is all that the scanner saw.
const SCAN: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==";

/// Events that one client may create; the oldest goes first.
const MAX_EVENTS: usize = 100;

/// The events that a client has created.
#[derive(Default)]
pub struct Diary(Mutex<Vec<Value>>);

impl Diary {
    /// Adds an event; true if a trip can be cancelled now and could not be before.
    fn add(&self, event: Value) -> bool {
        let mut events = locked(&self.0);
        let before = events.iter().any(is_trip);
        if events.len() == MAX_EVENTS {
            events.remove(0);
        }
        events.push(event);
        !before && events.iter().any(is_trip)
    }

    /// Takes the events of a trip out, or of all trips; returns how many, and whether no trip is left.
    fn cancel(&self, trip: Option<&str>) -> (usize, bool) {
        let mut events = locked(&self.0);
        let before = events.len();
        events.retain(|event| !is_trip(event) || trip.is_some_and(|trip| event["trip"] != trip));
        (before - events.len(), !events.iter().any(is_trip))
    }

    fn has_trip(&self) -> bool {
        locked(&self.0).iter().any(is_trip)
    }

    fn events(&self) -> Value {
        let mut all = vec![
            json!({ "title": "Dentist", "start": "2024-03-04T09:00" }),
            json!({ "title": "Team offsite", "start": "2024-05-16T08:30" }),
            json!({ "title": "Graduation", "start": "2024-06-28T14:00" }),
        ];
        all.extend(locked(&self.0).iter().cloned());
        json!(all)
    }
}

fn is_trip(event: &Value) -> bool {
    event["trip"].is_string()
}

/// The calendar server.
pub struct Calendar;

impl Server for Calendar {
    fn name(&self) -> &'static str {
        "calendar"
    }

    fn title(&self) -> &'static str {
        "Calendar and mail"
    }

    fn instructions(&self) -> &'static str {
        "Creates calendar events and sends mail. Give an event a trip to be able to cancel the trip later. \
         Nothing is really sent."
    }

    fn offers(&self) -> Offers {
        Offers {
            tools_change: true,
            ..Offers::default()
        }
    }

    fn tools(&self, diary: &Diary) -> Vec<Value> {
        let mut tools = vec![create_calendar_event(), send_email(), list_workspaces()];
        if diary.has_trip() {
            tools.push(cancel_trip());
        }
        tools
    }

    fn call<'a>(&'a self, call: &'a Call, tool: &'a str, arguments: &'a Value) -> Reply<'a> {
        Box::pin(async move {
            match tool {
                "createCalendarEvent" => create(call, arguments),
                "sendEmail" => send(arguments),
                "listWorkspaces" => workspaces(call).await,
                _ => cancel(call, arguments),
            }
        })
    }

    fn resources(&self) -> Vec<Value> {
        vec![
            json!({
                "uri": EVENTS,
                "name": "events-2024",
                "title": "Events in 2024",
                "description": "What is in the calendar already",
                "mimeType": "application/json",
            }),
            json!({
                "uri": PASSPORT,
                "name": "passport",
                "title": "Passport",
                "description": "A scanned passport",
                "mimeType": "image/png",
                "annotations": { "audience": ["user"] },
            }),
        ]
    }

    fn read(&self, diary: &Diary, uri: &str) -> Option<Value> {
        match uri {
            EVENTS => Some(events(diary)),
            PASSPORT => Some(json!({ "uri": PASSPORT, "mimeType": "image/png", "blob": SCAN })),
            _ => None,
        }
    }
}

fn events(diary: &Diary) -> Value {
    json!({ "uri": EVENTS, "mimeType": "application/json", "text": diary.events().to_string() })
}

fn create(call: &Call, arguments: &Value) -> Result<Value, Fault> {
    if call.diary.add(arguments.clone()) {
        call.tools_changed();
    }
    let title = arguments["title"].as_str().unwrap_or_default();
    let start = arguments["start"].as_str().unwrap_or_default();
    let mut result = shape::text(format!("Created: {title} at {start}"));
    if let Some(blocks) = result["content"].as_array_mut() {
        blocks.push(json!({ "type": "resource", "resource": events(&call.diary) }));
    }
    Ok(result)
}

fn send(arguments: &Value) -> Result<Value, Fault> {
    let to = arguments["to"].as_str().unwrap_or_default();
    if !to.contains('@') {
        return Err(Fault::tool(format!("Not a mail address: {to}")));
    }
    let subject = arguments["subject"].as_str().unwrap_or_default();
    Ok(shape::text(format!("Sent to {to}: {subject}")))
}

fn cancel(call: &Call, arguments: &Value) -> Result<Value, Fault> {
    let (cancelled, none_left) = call.diary.cancel(arguments["trip"].as_str());
    if cancelled == 0 {
        return Err(Fault::tool("No such trip is booked"));
    }
    if none_left {
        call.tools_changed();
    }
    Ok(shape::text(format!("Cancelled {cancelled} events")))
}

async fn workspaces(call: &Call) -> Result<Value, Fault> {
    call.require("roots")?;
    let answer = call.ask("roots", "roots/list", Value::Null).await?;
    let roots = answer["roots"].as_array();
    let lines: Vec<String> = roots
        .ok_or_else(|| Fault::tool("The client's answer has no roots"))?
        .iter()
        .map(|root| {
            let uri = root["uri"].as_str().unwrap_or_default();
            root["name"]
                .as_str()
                .map_or_else(|| uri.to_owned(), |name| format!("{name}: {uri}"))
        })
        .collect();
    Ok(shape::text(if lines.is_empty() {
        "No workspaces".to_owned()
    } else {
        lines.join("\n")
    }))
}

fn create_calendar_event() -> Value {
    json!({
        "name": "createCalendarEvent",
        "title": "Create an event",
        "description": "Puts an event into the calendar; with `trip`, the trip can be cancelled later",
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "start": { "type": "string", "description": "For instance 2024-06-15T10:00" },
                "minutes": { "type": "integer", "minimum": 1, "x-mcp-header": "Minutes" },
                "calendar": {
                    "type": "string", "description": "Which calendar, if there are several",
                    "x-mcp-header": "Calendar",
                },
                "trip": { "type": "string", "description": "For instance barcelona-2024" },
            },
            "required": ["title", "start"],
        },
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false },
    })
}

fn send_email() -> Value {
    json!({
        "name": "sendEmail",
        "title": "Send a mail",
        "description": "Pretends to send a mail",
        "inputSchema": {
            "type": "object",
            "properties": {
                "to": { "type": "string" },
                "subject": { "type": "string" },
                "body": { "type": "string" },
            },
            "required": ["to", "subject", "body"],
        },
        "annotations": { "readOnlyHint": false, "openWorldHint": true },
    })
}

fn list_workspaces() -> Value {
    json!({
        "name": "listWorkspaces",
        "title": "List workspaces",
        "description": "Asks the client for its roots and lists them",
        "inputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true },
    })
}

fn cancel_trip() -> Value {
    json!({
        "name": "cancelTrip",
        "title": "Cancel a trip",
        "description": "Takes all events of a trip, or of all trips, out of the calendar",
        "inputSchema": {
            "type": "object",
            "properties": { "trip": { "type": "string" } },
        },
        "annotations": { "readOnlyHint": false, "destructiveHint": true },
    })
}
