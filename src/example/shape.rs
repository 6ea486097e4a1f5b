//! Takes away from lists and results what the client's revision doesn't know yet, and adds what 2026-07-28
//! wants on every result. The servers write everything in the newest shape.

use serde_json::{Map, Value, json};

use super::revision::Revision;
use super::server::{Server, implementation};

/// How long a list that only changes with a notification may be kept, in milliseconds.
const LIST_TTL_MS: u64 = 60_000;

/// An entry of a list as that revision knows it.
pub fn entry(mut item: Value, revision: Revision) -> Value {
    let Some(fields) = item.as_object_mut() else {
        return item;
    };
    if revision < Revision::V2025_06_18 {
        fields.remove("title");
        fields.remove("outputSchema");
        for argument in fields
            .get_mut("arguments")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            argument
                .as_object_mut()
                .map(|fields| fields.remove("title"));
        }
    }
    if revision < Revision::V2025_03_26 && fields.contains_key("inputSchema") {
        // Resources had annotations from the start; tools did not.
        fields.remove("annotations");
    }
    if !revision.is_modern() {
        for property in properties(fields) {
            property.remove("x-mcp-header");
        }
    }
    item
}

fn properties(tool: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    tool.get_mut("inputSchema")
        .and_then(|schema| schema.get_mut("properties"))
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|properties| properties.values_mut())
        .filter_map(Value::as_object_mut)
}

/// A tool's result as that revision knows it.
pub fn tool_result(mut result: Value, revision: Revision) -> Value {
    if revision >= Revision::V2025_06_18 {
        return result;
    }
    result
        .as_object_mut()
        .map(|fields| fields.remove("structuredContent"));
    for block in result["content"].as_array_mut().into_iter().flatten() {
        if block["type"] == "resource_link" {
            *block = json!({ "type": "text", "text": format!("See {}", block["uri"]) });
        }
    }
    result
}

/// A result with what 2026-07-28 wants on it. `fresh` is false for an answer that depends on a question, which
/// nobody may keep.
pub fn modern_result(
    mut result: Value,
    method: &str,
    server: &dyn Server,
    revision: Revision,
    fresh: bool,
) -> Value {
    if result["resultType"].is_null() {
        result["resultType"] = json!("complete");
    }
    result["_meta"]["io.modelcontextprotocol/serverInfo"] = implementation(server, revision);
    if result["resultType"] == "complete" && is_cacheable(method) {
        let changing = method == "tools/list" && server.offers().tools_change;
        let lasting = fresh && !changing && method != "resources/read";
        result["ttlMs"] = json!(if lasting { LIST_TTL_MS } else { 0 });
        result["cacheScope"] = json!(if lasting { "public" } else { "private" });
    }
    result
}

fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

/// A tool result of one text block.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_revision_sees_no_newer_fields() {
        let tool = json!({
            "name": "a", "title": "A", "annotations": {}, "outputSchema": {},
            "inputSchema": { "properties": { "x": { "type": "string", "x-mcp-header": "X" } } },
        });
        let oldest = entry(tool.clone(), Revision::V2024_11_05);
        assert_eq!(
            oldest,
            json!({ "name": "a", "inputSchema": { "properties": { "x": { "type": "string" } } } })
        );
        assert_eq!(entry(tool.clone(), Revision::V2026_07_28), tool);
    }

    #[test]
    fn a_resource_keeps_its_annotations() {
        let resource = json!({ "uri": "a:b", "title": "A", "annotations": { "priority": 1 } });
        let oldest = entry(resource, Revision::V2024_11_05);
        assert_eq!(
            oldest,
            json!({ "uri": "a:b", "annotations": { "priority": 1 } })
        );
    }

    #[test]
    fn a_link_becomes_text_where_links_are_unknown() {
        let result = json!({
            "content": [{ "type": "resource_link", "uri": "a:b", "name": "b" }],
            "structuredContent": {},
        });
        let old = tool_result(result, Revision::V2025_03_26);
        assert_eq!(old, text("See \"a:b\""));
    }
}
