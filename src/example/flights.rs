//! The made-up airports and the 47 made-up flights between any two of them.

use serde_json::{Value, json};

/// How many flights there are between two cities.
const FLIGHTS: u64 = 47;

const AIRLINES: [&str; 5] = [
    "Drawbridge Air",
    "Moat Express",
    "Portcullis",
    "Rampart",
    "Bailey",
];

/// A city with an airport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The city's name.
    pub city: &'static str,
    /// The airport's code.
    pub code: &'static str,
}

const fn at(city: &'static str, code: &'static str) -> Place {
    Place { city, code }
}

impl Place {
    /// All places, the most visited first.
    pub const ALL: [Self; 10] = [
        at("Barcelona", "BCN"),
        at("New York", "JFK"),
        at("Paris", "CDG"),
        at("London", "LHR"),
        at("Tokyo", "HND"),
        at("Barbados", "BGI"),
        at("Park City", "SLC"),
        at("Lisbon", "LIS"),
        at("Reykjavík", "KEF"),
        at("São Paulo", "GRU"),
    ];

    /// The place by its city, its code, or both as completion writes them.
    pub fn find(text: &str) -> Option<Self> {
        let wanted = text.trim().to_lowercase();
        Self::ALL.into_iter().find(|place| {
            [
                place.city.to_lowercase(),
                place.code.to_lowercase(),
                place.label().to_lowercase(),
            ]
            .contains(&wanted)
        })
    }

    /// City and code, as completion offers them.
    pub fn label(&self) -> String {
        format!("{} ({})", self.city, self.code)
    }
}

/// All flights between two cities, in order of departure.
pub fn between(origin: Place, destination: Place) -> Vec<Value> {
    (0..FLIGHTS)
        .map(|n| {
            let departure = 6 * 60 + n * 20;
            json!({
                "number": format!("DB-{}", 100 + n),
                "airline": AIRLINES[usize::try_from(n).unwrap_or_default() % AIRLINES.len()],
                "from": origin.code,
                "to": destination.code,
                "departure": format!("{:02}:{:02}", departure / 60, departure % 60),
                "minutes": 95 + n * 37 % 180,
                "stops": n % 3,
                "price": 89 + n * 53 % 400,
            })
        })
        .collect()
}

/// A flight in one line.
pub fn line(flight: &Value) -> String {
    let text = |field: &str| flight[field].as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} {}-{} at {}, {} min, {} stops, ${}",
        text("number"),
        text("airline"),
        text("from"),
        text("to"),
        text("departure"),
        flight["minutes"],
        flight["stops"],
        flight["price"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_however_it_is_written() {
        for text in ["Barcelona", "bcn", "Barcelona (BCN)"] {
            assert_eq!(Place::find(text).unwrap().code, "BCN");
        }
        assert_eq!(Place::find("Atlantis"), None);
    }

    #[test]
    fn there_are_47_different_flights() {
        let flights = between(Place::ALL[0], Place::ALL[1]);
        let numbers: std::collections::BTreeSet<_> = flights
            .iter()
            .map(|flight| flight["number"].as_str())
            .collect();
        assert_eq!(numbers.len(), 47);
    }
}
