//! The weather server: current weather as structured output, forecasts that can be subscribed to and change on
//! demand, log messages, and a tool that waits, for trying out progress and cancellation.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::calendar::Diary;
use super::call::Call;
use super::fault::Fault;
use super::server::{Offers, Reply, Server};
use super::world::locked;
use super::{shape, uri};

const FORECAST: &str = "weather://forecast/{city}/{date}";
const PREFIX: &str = "weather://forecast/";
const ACTIVITY: &str = "weather://activity";

/// A wind that is worth a warning, in km/h.
const STORM: f64 = 90.0;

/// City, degrees Celsius, wind in km/h, humidity in percent, sky.
const CITIES: [(&str, f64, f64, u64, &str); 8] = [
    ("Barcelona", 24.0, 12.0, 55, "sunny"),
    ("Paris", 18.5, 15.0, 62, "cloudy"),
    ("Park City", 9.0, 8.0, 40, "clear"),
    ("London", 15.0, 22.0, 78, "rain"),
    ("New York", 21.0, 18.0, 58, "partly cloudy"),
    ("Tokyo", 26.5, 10.0, 70, "humid"),
    ("Reykjavík", 4.0, 95.0, 85, "storm"),
    ("São Paulo", 28.0, 9.0, 66, "thunder"),
];

const SKIES: [&str; 5] = ["sunny", "cloudy", "rain", "wind", "fog"];

/// How often `wait` was called, and how its calls ended.
#[derive(Default)]
struct Waits {
    running: u64,
    finished: u64,
    cancelled: u64,
}

/// The weather server.
#[derive(Default)]
pub struct Weather {
    /// How often the forecast for a city and a day has changed.
    changes: Mutex<HashMap<(String, String), usize>>,
    waits: Mutex<Waits>,
}

impl Server for Weather {
    fn name(&self) -> &'static str {
        "weather"
    }

    fn title(&self) -> &'static str {
        "Weather"
    }

    fn instructions(&self) -> &'static str {
        "Tells the weather now (checkWeather) and on a day (weather://forecast/{city}/{date}). All data is made up."
    }

    fn offers(&self) -> Offers {
        Offers {
            completions: true,
            logging: true,
            subscriptions: true,
            ..Offers::default()
        }
    }

    fn tools(&self, _diary: &Diary) -> Vec<Value> {
        vec![check_weather(), advance_forecast(), wait_tool()]
    }

    fn call<'a>(&'a self, call: &'a Call, tool: &'a str, arguments: &'a Value) -> Reply<'a> {
        Box::pin(async move {
            match tool {
                "checkWeather" => check(call, arguments),
                "advanceForecast" => self.advance(call, arguments),
                _ => self.wait(call, arguments).await,
            }
        })
    }

    fn resources(&self) -> Vec<Value> {
        vec![json!({
            "uri": ACTIVITY,
            "name": "activity",
            "title": "Calls of wait",
            "description": "How many calls of `wait` run, have finished, were cancelled",
            "mimeType": "application/json",
        })]
    }

    fn templates(&self) -> Vec<Value> {
        vec![json!({
            "uriTemplate": FORECAST,
            "name": "forecast",
            "title": "Forecast",
            "description": "The forecast for a city and a day; can be subscribed to",
            "mimeType": "application/json",
        })]
    }

    fn read(&self, _diary: &Diary, target: &str) -> Option<Value> {
        let found = if target == ACTIVITY {
            let waits = locked(&self.waits);
            json!({
                "running": waits.running, "finished": waits.finished, "cancelled": waits.cancelled,
            })
        } else {
            self.forecast(subject(target)?)
        };
        Some(json!({ "uri": target, "mimeType": "application/json", "text": found.to_string() }))
    }

    fn values(&self, _place: &str, argument: &str) -> Vec<String> {
        match argument {
            "city" => CITIES.iter().map(|city| city.0.to_owned()).collect(),
            _ => Vec::new(),
        }
    }

    fn watchable(&self, uri: &str) -> bool {
        subject(uri).is_some()
    }
}

impl Weather {
    fn forecast(&self, subject: (String, String)) -> Value {
        let changed = locked(&self.changes)
            .get(&subject)
            .copied()
            .unwrap_or_default();
        let days: usize = subject.1.bytes().map(usize::from).sum();
        json!({
            "city": subject.0,
            "date": subject.1,
            "sky": SKIES[(days + changed) % SKIES.len()],
            "high": 18 + (days + changed * 3) % 12,
            "edition": changed + 1,
        })
    }

    fn advance(&self, call: &Call, arguments: &Value) -> Result<Value, Fault> {
        let city = known_city(arguments["city"].as_str().unwrap_or_default())?.0;
        let date = arguments["date"].as_str().unwrap_or_default();
        if date.is_empty() {
            return Err(Fault::tool("A forecast needs a day"));
        }
        let changed = (city.to_owned(), date.to_owned());
        *locked(&self.changes).entry(changed.clone()).or_default() += 1;
        call.world
            .resources_changed(|uri| subject(uri).as_ref() == Some(&changed));
        Ok(shape::text(self.forecast(changed).to_string()))
    }

    async fn wait(&self, call: &Call, arguments: &Value) -> Result<Value, Fault> {
        let seconds = arguments["seconds"].as_f64().unwrap_or_default();
        let steps = u32::try_from(arguments["steps"].as_u64().unwrap_or(1)).unwrap_or(1);
        let step = Duration::from_secs_f64(seconds) / steps;
        let mut visit = Visit::begin(&self.waits);
        for done in 1..=steps {
            tokio::time::sleep(step).await;
            call.progress(
                done.into(),
                steps.into(),
                &format!("Step {done} of {steps}"),
            );
        }
        visit.finished = true;
        Ok(shape::text(format!("Waited {seconds} s in {steps} steps")))
    }
}

/// One call of `wait`; dropped before it has finished, it was cancelled.
struct Visit<'a> {
    waits: &'a Mutex<Waits>,
    finished: bool,
}

impl<'a> Visit<'a> {
    fn begin(waits: &'a Mutex<Waits>) -> Self {
        locked(waits).running += 1;
        Self {
            waits,
            finished: false,
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut waits = locked(self.waits);
        waits.running -= 1;
        if self.finished {
            waits.finished += 1;
        } else {
            waits.cancelled += 1;
        }
    }
}

/// City and day of a forecast's URI.
fn subject(target: &str) -> Option<(String, String)> {
    let [city, date] = <[String; 2]>::try_from(uri::segments(target, PREFIX)?).ok()?;
    Some((known_city(&city).ok()?.0.to_owned(), date))
}

fn known_city(wanted: &str) -> Result<&'static (&'static str, f64, f64, u64, &'static str), Fault> {
    let lower = wanted.trim().to_lowercase();
    CITIES
        .iter()
        .find(|city| city.0.to_lowercase() == lower)
        .ok_or_else(|| Fault::tool(format!("No weather is known for {wanted}")))
}

fn check(call: &Call, arguments: &Value) -> Result<Value, Fault> {
    let wanted = arguments["city"].as_str().unwrap_or_default();
    call.log("debug", json!({ "looking up": wanted }));
    let (city, celsius, wind, humidity, sky) = known_city(wanted).inspect_err(|_| {
        call.log("error", json!({ "unknown city": wanted }));
    })?;
    call.log("info", json!({ "city": city, "station": "roof" }));
    if *wind >= STORM {
        call.log("warning", json!({ "city": city, "wind": wind }));
    }
    let imperial = arguments["units"] == "imperial";
    let (temperature, wind, units, degrees) = if imperial {
        (
            celsius * 9.0 / 5.0 + 32.0,
            (wind * 0.621_371).round(),
            "imperial",
            "°F",
        )
    } else {
        (*celsius, *wind, "metric", "°C")
    };
    let structured = json!({
        "city": city, "units": units, "temperature": temperature,
        "wind": wind, "humidity": humidity, "sky": sky,
    });
    let mut result = shape::text(format!(
        "{city}: {temperature} {degrees}, {sky}, humidity {humidity} %"
    ));
    result["structuredContent"] = structured;
    Ok(result)
}

fn check_weather() -> Value {
    json!({
        "name": "checkWeather",
        "title": "Check the weather",
        "description": "The weather in a city now",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "For instance Barcelona" },
                "units": { "type": "string", "enum": ["metric", "imperial"], "default": "metric" },
            },
            "required": ["city"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "units": { "type": "string", "enum": ["metric", "imperial"] },
                "temperature": { "type": "number" },
                "wind": { "type": "number" },
                "humidity": { "type": "integer" },
                "sky": { "type": "string" },
            },
            "required": ["city", "units", "temperature", "wind", "humidity", "sky"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn advance_forecast() -> Value {
    json!({
        "name": "advanceForecast",
        "title": "Change a forecast",
        "description": "Makes a new edition of a forecast and tells its subscribers",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "date": { "type": "string", "description": "For instance 2024-06-15" },
            },
            "required": ["city", "date"],
        },
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false },
    })
}

fn wait_tool() -> Value {
    json!({
        "name": "wait",
        "title": "Wait",
        "description": "Waits for better weather, with progress; can be cancelled",
        "inputSchema": {
            "type": "object",
            "properties": {
                "seconds": { "type": "number", "minimum": 0, "maximum": 3600 },
                "steps": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 1 },
            },
            "required": ["seconds"],
        },
        "annotations": { "readOnlyHint": true },
    })
}
