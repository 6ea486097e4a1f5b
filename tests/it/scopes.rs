//! Scopes that an endpoint asks for, and the ways around them that there must not be.

use crate::support::{gateway, sb};
use drawbridge::auth::new_key;
use http::StatusCode;
use serde_json::json;

#[tokio::test]
async fn an_endpoint_opens_for_its_scopes_only_and_so_does_the_servers_own_path() {
    let (guest, ci) = (new_key(), new_key());
    let keys = format!(
        "{{ name: guest, sha256: {:?} }}, {{ name: ci, sha256: {:?}, scopes: [tools] }}",
        guest.sha256, ci.sha256
    );
    let yaml = format!(
        "servers: {{ local: {} }}\nendpoints: {{ /mcp: {{ scopes: [tools] }} }}\nauth: {{ api_keys: [ {keys} ] }}\n",
        sb(&[], "")
    );
    let gw = gateway(&yaml).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    for path in ["/mcp", "/mcp/local"] {
        let refused = gw.client(path).key(&guest.key).post(&hello).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        let challenge = refused.headers["www-authenticate"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            challenge.contains("insufficient_scope") && challenge.contains(r#"scope="tools""#),
            "{challenge}"
        );
        let opened = gw.client(path).key(&ci.key).post(&hello).await;
        assert_eq!(opened.status, StatusCode::OK, "{path}");
        let unknown = gw.client(path).key("other").post(&hello).await;
        assert_eq!(unknown.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    gw.stop().await;
}
