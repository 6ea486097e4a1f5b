//! Capabilities of several servers as one.

use serde_json::{Map, Value};

/// Joins `more` into `all`: objects member by member, flags by "or", anything else stays as the first one said it.
pub fn join(all: &mut Value, more: &Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                match all.get_mut(key) {
                    Some(present) => join(present, value),
                    None => {
                        all.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Bool(all), Value::Bool(more)) => *all |= more,
        (all @ Value::Null, more) => *all = more.clone(),
        _ => {}
    }
}

/// Whether `capabilities` has `path`, a dotted path, as an object, a `true`, or anything but false and null.
pub fn has(capabilities: &Map<String, Value>, path: &str) -> bool {
    let mut names = path.split('.');
    let Some(first) = names.next() else {
        return false;
    };
    let mut at = capabilities.get(first);
    for name in names {
        at = at.and_then(|v| v.get(name));
    }
    at.is_some_and(|v| !matches!(v, Value::Null | Value::Bool(false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_union_is_what_any_of_them_offers() {
        let mut all = json!({});
        join(&mut all, &json!({"tools": {"listChanged": false}, "x": 1}));
        join(
            &mut all,
            &json!({"tools": {"listChanged": true}, "logging": {}, "x": 2}),
        );
        assert_eq!(
            all,
            json!({"tools": {"listChanged": true}, "x": 1, "logging": {}})
        );
        let map = all.as_object().unwrap();
        assert!(
            has(map, "tools.listChanged")
                && has(map, "logging")
                && !has(map, "resources.subscribe")
        );
    }
}
