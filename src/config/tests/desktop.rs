//! Files of desktop clients and of VS Code, unchanged.

use super::*;

fn process<'a>(loaded: &'a Loaded, id: &str) -> &'a Process {
    match &loaded.config.servers[id].target {
        Target::Process(process) => process,
        other => panic!("{other:?}"),
    }
}

fn remote<'a>(loaded: &'a Loaded, id: &str) -> &'a Remote {
    match &loaded.config.servers[id].target {
        Target::Remote(remote) => remote,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_desktop_file_is_taken_as_it_is() {
    let text = r#"{ "mcpServers": {
        "Brave Search": { "command": "npx", "args": ["-y", "x", 7], "env": { "KEY": "${env:TOKEN}", "N": 1, "B": true },
                          "autoApprove": ["a"], "alwaysAllow": [], "headers": {} },
        "my_server": { "type": "streamable-http", "url": "https://x/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" }, "env": {} },
        "w": { "serverUrl": "https://w/mcp" },
        "off": { "command": "x", "disabled": true },
        "on": { "command": "y", "disabled": false, "type": "stdio" }
    } }"#;
    let loaded = loaded("mcp.json", text);
    assert_eq!(
        loaded
            .config
            .servers
            .keys()
            .map(ServerId::as_str)
            .collect::<Vec<_>>(),
        ["brave-search", "my-server", "w", "on"]
    );
    let renamed: Vec<_> = loaded
        .renamed
        .iter()
        .map(|r| (&*r.name, r.id.as_str()))
        .collect();
    assert_eq!(
        renamed,
        [("Brave Search", "brave-search"), ("my_server", "my-server")]
    );
    assert_eq!(loaded.disabled, ["off"]);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let brave = process(&loaded, "brave-search");
    assert_eq!(
        (&*brave.command, &brave.args[..]),
        ("npx", &["-y".to_owned(), "x".into(), "7".into()][..])
    );
    let env: Vec<_> = brave
        .env
        .iter()
        .map(|(name, value)| (&**name, value.expose()))
        .collect();
    assert_eq!(env, [("KEY", "s3cret-t0ken"), ("N", "1"), ("B", "true")]);
    let mine = remote(&loaded, "my-server");
    assert_eq!(
        mine.headers.iter().next().unwrap().1.expose(),
        "Bearer s3cret-t0ken"
    );
}

#[test]
fn inputs_of_vs_code_come_from_the_environment() {
    let text = |id: &str| {
        format!(
            r#"{{ "inputs": [ {{ "id": "github-token", "type": "promptString", "password": true }} ],
            "servers": {{ "gh": {{ "type": "http", "url": "https://x/mcp", "headers": {{ "Authorization": "Bearer ${{input:{id}}}" }} }} }} }}"#
        )
    };
    let loaded = loaded("mcp.json", &text("github-token"));
    assert_eq!(
        remote(&loaded, "gh")
            .headers
            .values()
            .next()
            .unwrap()
            .expose(),
        "Bearer from-input"
    );
    assert_eq!(
        faults("mcp.json", &text("other")),
        "mcp.json:2:104: servers.gh.headers.Authorization: the input `other` would be asked of a person, and there is none; \
         set the environment variable `INPUT_OTHER` to its value"
    );
}

#[test]
fn unknown_keys_of_a_desktop_file_are_warnings() {
    let text = "{ \"mcpServers\": { \"a\": { \"command\": \"x\", \"comand\": 1,\n \"gallery\": true, \"headers\": { \"A\": \"b\" } } } }";
    assert_eq!(
        warnings("mcp.json", text),
        "mcp.json:1:42: mcpServers.a.comand: is not a key here; did you mean `command`?; it is ignored\n\
         mcp.json:2:2: mcpServers.a.gallery: is not a key here; `drawbridge schema` prints all that there are; it is ignored\n\
         mcp.json:2:19: mcpServers.a.headers: means nothing beside `command`; it is ignored"
    );
    // With any other key it is a file of ours.
    let ours =
        "{ \"mcpServers\": { \"a_b\": { \"command\": \"x\", \"gallery\": true } }, \"drain\": {} }";
    assert!(faults("drawbridge.json", ours).contains("mcpServers.a_b.gallery: is not a key here"));
}

#[test]
fn names_that_become_equal_are_a_fault_with_both() {
    let text = "{ \"mcpServers\": { \"Brave Search\": { \"command\": \"x\" },\n \"brave_search\": { \"command\": \"x\" }, \"日本\": { \"command\": \"x\" } } }";
    assert_eq!(
        faults("mcp.json", text),
        "mcp.json:2:2: mcpServers.brave_search: `Brave Search` and `brave_search` would both be called `brave-search`; rename one of them\n\
         mcp.json:2:38: mcpServers[\"日本\"]: has no letter or digit that its name could be made of; write one such as `files`"
    );
}

#[test]
fn our_own_files_may_say_mcp_servers_too() {
    let loaded = loaded(
        "a.yaml",
        "mcpServers:\n  my_files: { command: x }\nendpoints: { /mcp: { servers: [my-files] } }\n",
    );
    assert!(loaded.config.servers.contains_key("my-files"));
    assert_eq!(
        faults("a.yaml", "servers: {}\nmcpServers: {}\n"),
        "a.yaml:2:1: mcpServers: means the same as `servers` in line 1; write one of them only"
    );
}

#[test]
fn the_old_transport_is_refused_with_a_hint() {
    let text = "{ \"mcpServers\": { \"a\": { \"type\": \"sse\", \"url\": \"http://x/sse\" } } }";
    assert_eq!(
        faults("mcp.json", text),
        "mcp.json:1:26: mcpServers.a.type: the HTTP+SSE transport of 2024-11-05 is not supported yet: give the streamable HTTP address"
    );
    assert!(
        load(
            "a.yaml",
            "servers: { a: { command: x, protocol: 2024-11-05 } }"
        )
        .is_ok()
    );
}

#[test]
fn an_env_file_adds_what_env_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".env"), "A=file\nB=file\n").unwrap();
    let text = r#"{ "servers": {
        "a": { "command": "x", "envFile": ".env", "env": { "A": "own" }, "cwd": "sub" },
        "b": { "command": "x", "envFile": "none" }, "c": { "command": "x", "envFile": ".env" } } }"#;
    let path = folder.path().join("mcp.json");
    std::fs::write(&path, text).unwrap();
    let loaded = Config::load(&path, &env).unwrap();
    let of = |id| {
        process(&loaded, id)
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", value.expose()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("a"), ["A=own", "B=file"]);
    assert_eq!(of("c"), ["A=file", "B=file"]);
    assert_eq!(
        process(&loaded, "a").cwd.as_deref(),
        Some(&*folder.path().join("sub"))
    );
    let Target::Unavailable(reason) = &loaded.config.servers["b"].target else {
        panic!()
    };
    assert!(
        reason.starts_with("servers.b.envFile: the file cannot be read: "),
        "{reason}"
    );
}
