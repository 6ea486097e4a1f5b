//! The configuration's JSON Schema: for editors, and for the reader itself.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::settings::Config;

/// The JSON Schema (draft 2020-12) of a configuration file. Its `x-kind`, `x-min` and `x-max` are ours: the kind of a
/// text, and the limits of a duration or a size.
pub fn schema() -> Value {
    let mut schema = bare();
    schema["title"] = "Drawbridge configuration".into();
    let servers = schema["properties"]["servers"].clone();
    let properties = schema["properties"]
        .as_object_mut()
        .expect("the settings are a struct");
    properties.insert(
        "$schema".into(),
        json!({ "type": "string", "description": "Where editors find this schema." }),
    );
    if let Some(servers) = servers.as_object() {
        let mut alias = servers.clone();
        alias.insert(
            "description".into(),
            "Another name for `servers`; names here need not be ids.".into(),
        );
        alias.remove("propertyNames");
        properties.insert("mcpServers".into(), alias.into());
    }
    schema
}

/// The schema as the reader uses it, after other names of keys have been replaced.
pub(super) fn bare() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    generator.into_root_schema_for::<Config>().to_value()
}
