//! Tool parameters that travel in headers: the `x-mcp-header` annotations of a schema.
//!
//! Answers "Custom Headers from Tool Parameters" of the streamable HTTP page of
//! revision 2026-07-28: which annotations are valid, and what a header says for
//! given arguments.

use super::header;
use serde_json::Value;
use std::collections::HashSet;

const ANNOTATION: &str = "x-mcp-header";
/// Deepest schema that is looked through.
const MAX_DEPTH: usize = 64;
/// Integers that JavaScript holds exactly.
const SAFE: i64 = (1 << 53) - 1;

/// One annotated parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The `properties` keys that lead to it.
    pub path: Vec<String>,
    /// The header, lower-case, prefix included.
    pub header: String,
}

/// The annotated parameters of a tool, or why the tool is invalid.
pub fn of_tool(tool: &Value) -> Result<Vec<Param>, &'static str> {
    let mut found = Vec::new();
    let Some(schema) = tool.get("inputSchema") else {
        return Ok(found);
    };
    walk(schema, &mut Vec::new(), true, 0, &mut found)?;
    let mut seen = HashSet::new();
    if !found.iter().all(|p| seen.insert(p.header.as_str())) {
        return Err("two parameters have the same x-mcp-header");
    }
    Ok(found)
}

/// `reachable`: only `properties` keys lead here.
fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    depth: usize,
    found: &mut Vec<Param>,
) -> Result<(), &'static str> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let object = match schema {
        Value::Object(object) => object,
        Value::Array(list) => {
            for one in list {
                walk(one, path, false, depth + 1, found)?;
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    if let Some(annotation) = object.get(ANNOTATION) {
        if !reachable || path.is_empty() {
            return Err("x-mcp-header stands where no argument can be read");
        }
        found.push(param(annotation, object.get("type"), path)?);
    }
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    walk(property, path, reachable, depth + 1, found)?;
                    path.pop();
                }
            }
            // Values, not schemas: an annotation in there is data.
            ("const" | "default" | "enum" | "examples" | ANNOTATION, _) => {}
            (_, value) => walk(value, path, false, depth + 1, found)?,
        }
    }
    Ok(())
}

fn param(annotation: &Value, kind: Option<&Value>, path: &[String]) -> Result<Param, &'static str> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = annotation.as_str().unwrap_or_default();
    if name.is_empty() || !name.bytes().all(token) {
        return Err("x-mcp-header is not a header name");
    }
    let kind = kind.and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "string" | "integer" | "boolean") {
        return Err("x-mcp-header on a parameter that is no string, integer or boolean");
    }
    Ok(Param {
        path: path.to_vec(),
        header: format!("{}{}", header::PARAM_PREFIX, name.to_ascii_lowercase()),
    })
}

impl Param {
    /// The header's value for `arguments`, encoded; `None` where the argument is absent, null, or no primitive.
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let plain = self.plain(arguments)?;
        Some(header::encode(&plain).into_owned())
    }

    /// Whether a header that came with `arguments` says what they say; integers are compared by value.
    pub fn agrees(&self, arguments: &Value, header: Option<&str>) -> bool {
        match (self.plain(arguments), header) {
            (None, None) => true,
            (Some(want), Some(header)) => {
                let Some(said) = header::decode(header) else {
                    return false;
                };
                let same = |a: &str, b: &str| matches!((number(a), number(b)), (Some(a), Some(b)) if a == b);
                said == want
                    || (self.argument(arguments).is_some_and(Value::is_number)
                        && same(&said, &want))
            }
            _ => false,
        }
    }

    fn argument<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(arguments, |at, key| at.get(key))
    }

    fn plain(&self, arguments: &Value) -> Option<String> {
        match self.argument(arguments)? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(match number.as_i64() {
                Some(n) => n.to_string(),
                None => whole(number.as_f64()?)?,
            }),
            _ => None,
        }
    }
}

/// `42.0` as `42`, if it is a safe integer.
fn whole(number: f64) -> Option<String> {
    let fits = number.fract() == 0.0 && number.abs() <= SAFE as f64;
    fits.then(|| (number as i64).to_string())
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(properties: Value) -> Value {
        json!({"name": "t", "inputSchema": {"type": "object", "properties": properties}})
    }

    #[test]
    fn annotations_are_found_along_properties() {
        let params = of_tool(&tool(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        })))
        .unwrap();
        assert_eq!(params[0].header, "mcp-param-region");
        assert_eq!(params[1].path, ["deep", "n"]);
        let arguments = json!({"region": "日本", "deep": {"n": 42}});
        assert_eq!(params[0].value(&arguments).unwrap(), "=?base64?5pel5pys?=");
        assert!(params[1].agrees(&arguments, Some("42.0")));
        assert!(!params[1].agrees(&arguments, Some("43")));
        assert!(!params[1].agrees(&arguments, None));
        assert!(params[1].agrees(&json!({"deep": {"n": null}}), None));
    }

    #[test]
    fn invalid_annotations_make_the_tool_invalid() {
        for bad in [
            json!({"a": {"type": "string", "x-mcp-header": ""}}),
            json!({"a": {"type": "string", "x-mcp-header": "a b"}}),
            json!({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}),
            json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
            json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}),
        ] {
            assert!(of_tool(&tool(bad.clone())).is_err(), "{bad}");
        }
        assert_eq!(of_tool(&json!({"name": "t"})), Ok(vec![]));
        let data = json!({"a": {"type": "object", "default": {"x-mcp-header": "A"}}});
        assert_eq!(of_tool(&tool(data)), Ok(vec![]));
    }
}
