//! The travel server: flights, a hotel, a prompt to plan a vacation. Shows sampling (the client's model picks a
//! flight), elicitation in one or two rounds (a hotel is booked), progress, templates with completion.

use serde_json::{Map, Value, json};

use super::calendar::Diary;
use super::call::Call;
use super::fault::Fault;
use super::flights::{self, Place};
use super::server::{Offers, Reply, Server};
use super::{shape, uri};

/// The travel server.
pub struct Travel;

const HISTORY: &str = "trips://history/barcelona-2023";
const FLIGHTS: &str = "travel://flights/{origin}/{destination}";
const ACTIVITIES: &str = "travel://activities/{city}/{category}";
const CATEGORIES: [&str; 4] = ["museums", "food", "beaches", "hiking"];
const ROOMS: [&str; 3] = ["city view", "sea view", "suite"];
const SEATS: [&str; 3] = ["window", "middle", "aisle"];

/// What a night costs, and what a suite costs on top, in dollars.
const NIGHT: u64 = 150;
const SUITE: u64 = 90;

/// The steps of a booking, for its progress.
const STEPS: u64 = 4;

impl Server for Travel {
    fn name(&self) -> &'static str {
        "travel"
    }

    fn title(&self) -> &'static str {
        "Travel"
    }

    fn instructions(&self) -> &'static str {
        "Finds flights and books hotels. Use findBestFlight where the traveller has preferences, \
         searchFlights for a plain list. All data is made up."
    }

    fn offers(&self) -> Offers {
        Offers {
            prompts: true,
            completions: true,
            ..Offers::default()
        }
    }

    fn tools(&self, _diary: &Diary) -> Vec<Value> {
        vec![search_flights(), find_best_flight(), book_hotel()]
    }

    fn call<'a>(&'a self, call: &'a Call, tool: &'a str, arguments: &'a Value) -> Reply<'a> {
        Box::pin(async move {
            match tool {
                "searchFlights" => search(arguments),
                "findBestFlight" => best(call, arguments).await,
                _ => book(call, arguments).await,
            }
        })
    }

    fn resources(&self) -> Vec<Value> {
        vec![json!({
            "uri": HISTORY,
            "name": "barcelona-2023",
            "title": "Barcelona, June 2023",
            "description": "What an earlier trip was like",
            "mimeType": "application/json",
            "annotations": { "audience": ["user", "assistant"], "priority": 0.8 },
        })]
    }

    fn templates(&self) -> Vec<Value> {
        vec![
            json!({
                "uriTemplate": ACTIVITIES,
                "name": "activities",
                "title": "Things to do",
                "description": "What to do in a city, by category",
                "mimeType": "application/json",
            }),
            json!({
                "uriTemplate": FLIGHTS,
                "name": "flights",
                "title": "Flights",
                "description": "All flights between two cities",
                "mimeType": "application/json",
            }),
        ]
    }

    fn read(&self, _diary: &Diary, target: &str) -> Option<Value> {
        let found = if target == HISTORY {
            history()
        } else if let Some(segments) = uri::segments(target, "travel://activities/") {
            let [city, category] = <[String; 2]>::try_from(segments).ok()?;
            activities(Place::find(&city)?, &category)?
        } else {
            let segments = uri::segments(target, "travel://flights/")?;
            let [origin, destination] = <[String; 2]>::try_from(segments).ok()?;
            let (origin, destination) = (Place::find(&origin)?, Place::find(&destination)?);
            json!(flights::between(origin, destination))
        };
        Some(json!({ "uri": target, "mimeType": "application/json", "text": found.to_string() }))
    }

    fn prompts(&self) -> Vec<Value> {
        let argument = |name: &str, title: &str, description: &str, required: bool| json!({ "name": name, "title": title, "description": description, "required": required });
        vec![json!({
            "name": "plan-vacation",
            "title": "Plan a vacation",
            "description": "Plans a trip step by step",
            "arguments": [
                argument("destination", "Destination", "Where to", true),
                argument("dates", "Dates", "When, for instance 2024-06-15 to 2024-06-22", false),
                argument("budget", "Budget", "In dollars", false),
                argument("travellers", "Travellers", "How many", false),
                argument("interests", "Interests", "Separated by commas", false),
            ],
        })]
    }

    fn prompt(&self, _name: &str, arguments: &Map<String, Value>) -> Value {
        let mut text = String::from("Plan a vacation for me.");
        for (name, value) in arguments {
            text.push_str(&format!("\n{name}: {}", value.as_str().unwrap_or_default()));
        }
        text.push_str(
            "\nCheck the weather, find a flight and a hotel, and put the trip into my calendar.",
        );
        let earlier = json!({
            "uri": HISTORY, "mimeType": "application/json", "text": history().to_string(),
        });
        json!({
            "description": "Plans a trip step by step",
            "messages": [
                { "role": "user", "content": { "type": "text", "text": text } },
                { "role": "user", "content": { "type": "resource", "resource": earlier } },
            ],
        })
    }

    fn values(&self, _place: &str, argument: &str) -> Vec<String> {
        match argument {
            "city" | "origin" | "destination" => Place::ALL.iter().map(Place::label).collect(),
            "category" => CATEGORIES.map(str::to_owned).to_vec(),
            "interests" => CATEGORIES.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
    }
}

fn route_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "origin": { "type": "string", "description": "City or airport, for instance New York" },
            "destination": { "type": "string", "description": "City or airport, for instance BCN" },
            "date": { "type": "string", "description": "Day of departure, for instance 2024-06-15" },
        },
        "required": ["origin", "destination", "date"],
    })
}

fn search_flights() -> Value {
    json!({
        "name": "searchFlights",
        "title": "Search flights",
        "description": "Lists the five cheapest flights between two cities",
        "inputSchema": route_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn find_best_flight() -> Value {
    let mut schema = route_schema();
    schema["properties"]["preferences"] =
        json!({ "type": "string", "description": "What matters to the traveller" });
    json!({
        "name": "findBestFlight",
        "title": "Find the best flight",
        "description": "Lets the client's model choose among all flights between two cities",
        "inputSchema": schema,
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn book_hotel() -> Value {
    json!({
        "name": "bookHotel",
        "title": "Book a hotel",
        "description": "Books a hotel room and a seat on the way there, after the person has confirmed",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "checkIn": { "type": "string", "description": "For instance 2024-06-15" },
                "nights": { "type": "integer", "minimum": 1, "maximum": 30 },
            },
            "required": ["city", "checkIn", "nights"],
        },
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false },
    })
}

fn place(arguments: &Value, name: &str) -> Result<Place, Fault> {
    let wanted = arguments[name].as_str().unwrap_or_default();
    Place::find(wanted).ok_or_else(|| Fault::tool(format!("No airport is known for {wanted}")))
}

fn search(arguments: &Value) -> Result<Value, Fault> {
    let (origin, destination) = (
        place(arguments, "origin")?,
        place(arguments, "destination")?,
    );
    let mut found = flights::between(origin, destination);
    found.sort_by_key(|flight| flight["price"].as_u64());
    let lines: Vec<String> = found.iter().take(5).map(flights::line).collect();
    let link = format!(
        "travel://flights/{}/{}",
        uri::escape(origin.code),
        uri::escape(destination.code)
    );
    let mut result = shape::text(lines.join("\n"));
    if let Some(blocks) = result["content"].as_array_mut() {
        blocks.push(json!({
            "type": "resource_link",
            "uri": link,
            "name": "flights",
            "description": format!("All {} flights", found.len()),
            "mimeType": "application/json",
        }));
    }
    Ok(result)
}

async fn best(call: &Call, arguments: &Value) -> Result<Value, Fault> {
    let (origin, destination) = (
        place(arguments, "origin")?,
        place(arguments, "destination")?,
    );
    call.require("sampling")?;
    let found = flights::between(origin, destination);
    let lines: Vec<String> = found.iter().map(flights::line).collect();
    let preferences = arguments["preferences"].as_str().unwrap_or("none");
    let question = format!(
        "Choose the best of these {} flights and answer with its number.\nPreferences: {preferences}\n\n{}",
        found.len(),
        lines.join("\n")
    );
    let params = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": question } }],
        "modelPreferences": {
            "hints": [{ "name": "claude" }],
            "costPriority": 0.3, "speedPriority": 0.2, "intelligencePriority": 0.9,
        },
        "systemPrompt": "You help travellers to choose flights.",
        "maxTokens": 1500,
    });
    let answer = call.ask("choice", "sampling/createMessage", params).await?;
    let said = spoken(&answer["content"]);
    let chosen = found
        .iter()
        .find(|flight| said.contains(flight["number"].as_str().unwrap_or_default()))
        .ok_or_else(|| Fault::tool(format!("The model named none of the flights: {said}")))?;
    Ok(shape::text(format!(
        "Best flight: {}\nThe model said: {said}",
        flights::line(chosen)
    )))
}

/// The text of a model's answer, which is one block or (since 2025-11-25) a list of them.
fn spoken(content: &Value) -> String {
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        block => std::slice::from_ref(block),
    };
    blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

async fn book(call: &Call, arguments: &Value) -> Result<Value, Fault> {
    let city = place(arguments, "city")?;
    let nights = arguments["nights"].as_u64().unwrap_or(1);
    let mut price = NIGHT * nights;
    call.require("elicitation")?;
    if !call.knows("booking") {
        call.progress(1, STEPS, "Holding a room");
    }
    let answer = call
        .ask(
            "booking",
            "elicitation/create",
            confirmation(city, nights, price),
        )
        .await?;
    let Some(choices) = accepted(&answer, "confirm")? else {
        return Ok(refused(&answer));
    };
    if !call.knows("suite") {
        call.progress(2, STEPS, "The traveller has confirmed");
    }
    let room = choices["room"].as_str().unwrap_or(ROOMS[0]);
    if room == "suite" {
        let supplement = SUITE * nights;
        let question = suite(supplement);
        let answer = call.ask("suite", "elicitation/create", question).await?;
        if accepted(&answer, "upgrade")?.is_none() {
            return Ok(refused(&answer));
        }
        price += supplement;
    }
    call.progress(3, STEPS, "Paying the deposit");
    call.progress(STEPS, STEPS, "Booked");
    let insurance = if choices["insurance"] == true {
        "with"
    } else {
        "without"
    };
    let seat = choices["seat"].as_str().unwrap_or(SEATS[0]);
    let check_in = arguments["checkIn"].as_str().unwrap_or_default();
    Ok(shape::text(format!(
        "Booked: {nights} nights in {} from {check_in}, {room}, {seat} seat, {insurance} insurance, ${price}. \
         Reference BK-{}-{nights}.",
        city.city, city.code
    )))
}

fn confirmation(city: Place, nights: u64, price: u64) -> Value {
    json!({
        "message": format!("Please confirm your trip to {}: {nights} nights for ${price}", city.city),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "confirm": { "type": "boolean", "title": "Confirm", "description": format!("Pay ${price}") },
                "seat": { "type": "string", "title": "Seat", "enum": SEATS },
                "room": { "type": "string", "title": "Room", "enum": ROOMS },
                "insurance": { "type": "boolean", "title": "Travel insurance", "default": false },
            },
            "required": ["confirm"],
        },
    })
}

fn suite(supplement: u64) -> Value {
    json!({
        "message": format!("A suite costs ${supplement} more"),
        "requestedSchema": {
            "type": "object",
            "properties": { "upgrade": { "type": "boolean", "title": "Pay the supplement" } },
            "required": ["upgrade"],
        },
    })
}

/// What the person filled in, if the person accepted the form and said yes in the field `yes`.
fn accepted<'a>(answer: &'a Value, yes: &str) -> Result<Option<&'a Value>, Fault> {
    match answer["action"].as_str() {
        Some("decline" | "cancel") => Ok(None),
        Some("accept") => {
            let content = &answer["content"];
            let allowed = |field: &str, known: &[&str]| {
                content[field]
                    .as_str()
                    .map_or(content[field].is_null(), |it| known.contains(&it))
            };
            if !content[yes].is_boolean() || !allowed("seat", &SEATS) || !allowed("room", &ROOMS) {
                return Err(Fault::tool("The form was not filled in as it asks"));
            }
            Ok((content[yes] == true).then_some(content))
        }
        _ => Err(Fault::tool(
            "The client's answer is neither accept, decline nor cancel",
        )),
    }
}

fn refused(answer: &Value) -> Value {
    shape::text(match answer["action"].as_str() {
        Some("decline") => "Not booked: the traveller declined",
        Some("cancel") => "Not booked: the traveller closed the question",
        _ => "Not booked: the traveller did not confirm",
    })
}

fn history() -> Value {
    json!({
        "destination": "Barcelona",
        "dates": "2023-06-10 to 2023-06-17",
        "flight": "DB-107",
        "liked": ["Sagrada Família", "tapas in El Born", "the beach in the evening"],
        "disliked": ["queues at noon"],
    })
}

fn activities(city: Place, category: &str) -> Option<Value> {
    let known = CATEGORIES.contains(&category);
    let names: Vec<String> = (1..=3)
        .map(|n| format!("{} {category} walk {n}", city.city))
        .collect();
    known.then(|| json!({ "city": city.city, "category": category, "activities": names }))
}
