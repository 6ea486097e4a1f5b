//! Right files and what is made of them.

use std::time::Duration;

use super::*;

#[test]
fn an_empty_file_is_a_valid_start_without_servers() {
    for (name, text) in [
        ("a.yaml", ""),
        ("a.yaml", "# nothing\n"),
        ("a.yaml", "---\n"),
        ("a.yaml", "servers:\nlimits:\n"),
        ("a.toml", ""),
        ("a.json", ""),
        ("a.json", "{}"),
        ("a", ""),
        ("a.yaml", "\u{feff}"),
    ] {
        let loaded = loaded(name, text);
        assert!(loaded.config.servers.is_empty() && loaded.warnings.is_empty());
        assert_eq!(
            loaded
                .config
                .endpoints
                .keys()
                .map(EndpointPath::as_str)
                .collect::<Vec<_>>(),
            ["/mcp"]
        );
    }
}

#[test]
fn the_same_settings_can_be_written_in_every_format() {
    let yaml = "\u{feff}listen: 127.0.0.1:1\nservers:\n  a: { command: é, args: [1, x], limits: { idle: 1h30m } }\nadmin: { listen: 'off' }\n";
    let toml = "\u{feff}listen = '127.0.0.1:1'\nadmin.listen = 'off'\n[servers.a]\ncommand = 'é'\nargs = [1, 'x']\nlimits.idle = '1h30m'\n";
    let json = "\u{feff}{ \"listen\": \"127.0.0.1:1\", \"servers\": { \"a\": { \"command\": \"\\u00e9\", \"args\": [1, \"x\"],\n \"limits\": { \"idle\": \"1h30m\" } } }, /* c */ \"admin\": { \"listen\": \"off\" }, \"$schema\": \"s\" }";
    let [yaml, toml, json] = [("a.yaml", yaml), ("a.toml", toml), ("a.jsonc", json)]
        .map(|(name, text)| loaded(name, text).config);
    assert_eq!(format!("{yaml:?}"), format!("{toml:?}"));
    assert_eq!(format!("{yaml:?}"), format!("{json:?}"));
    let Target::Process(process) = &yaml.servers["a"].target else {
        panic!()
    };
    assert_eq!(
        (&*process.command, &process.args[..]),
        ("é", &["1".to_owned(), "x".into()][..])
    );
    assert_eq!(
        yaml.servers["a"].limits.idle.get(),
        Duration::from_secs(5_400)
    );
    assert!(yaml.admin.listen.is_none());
}

#[test]
fn the_order_of_servers_is_kept() {
    let config = loaded("a.yaml", "servers: { z: { command: x }, a: { command: x }, m: { command: x } }\nendpoints: { /e: { servers: [m, z] } }\n").config;
    fn names<'a>(config: &'a Config, endpoint: &'a Endpoint) -> Vec<&'a str> {
        let servers = config.servers_of(endpoint).into_iter();
        servers.map(|(id, _)| id.as_str()).collect()
    }
    let all = Endpoint::default();
    assert_eq!(names(&config, &all), ["z", "a", "m"]);
    assert_eq!(names(&config, &config.endpoints[0]), ["m", "z"]);
}

#[test]
fn what_is_shown_is_chosen_by_globs() {
    let text = "servers:\n  a: { command: x, tools: { allow: ['read_*'], deny: ['*_secret'] }, prompts: { allow: [] }, resources: { deny: ['file:///etc/*'] } }\n";
    let config = loaded("a.yaml", text).config;
    let server = &config.servers["a"];
    assert!(
        server.tools.admits("read_x")
            && !server.tools.admits("read_secret")
            && !server.tools.admits("write")
    );
    assert!(!server.prompts.admits("any"));
    assert!(server.resources.admits("file:///a/b") && !server.resources.admits("file:///etc/a/b"));
}

#[test]
fn anchors_and_merged_maps_work_in_yaml() {
    let text = "servers:\n  a: &base { command: x, isolation: shared, start: { restarts: 1 } }\n  b:\n    <<: *base\n    command: y\n  c: *base\n";
    let config = loaded("a.yaml", text).config;
    let Target::Process(process) = &config.servers["b"].target else {
        panic!()
    };
    assert_eq!(
        (&*process.command, config.servers["b"].isolation),
        ("y", Isolation::Shared)
    );
    assert_eq!(config.servers["c"].start.restarts, 1);
}

#[test]
fn a_longer_call_lengthens_the_whole() {
    let config = loaded(
        "a.yaml",
        "servers: { a: { command: x, timeouts: { call: 1h } } }",
    )
    .config;
    assert_eq!(
        config.servers["a"].timeouts.call_max.get(),
        Duration::from_secs(3_600)
    );
}

#[test]
fn doubtful_settings_are_warnings() {
    let hash = "1".repeat(64);
    let text = format!(
        "auth:\n  api_keys:\n  - {{ name: a, sha256: {hash}, expires: 2020-01-01 }}\nservers:\n  a: {{ url: http://x/, start: {{ restarts: 1 }}, limits: {{ memory: 1GB }} }}\n"
    );
    assert_eq!(
        warnings("a.yaml", &text),
        "a.yaml:3:5: auth.api_keys[0]: has expired and is not accepted\n\
         a.yaml:5:24: servers.a.start: means nothing beside `url`; it is ignored\n\
         a.yaml:5:58: servers.a.limits.memory: means nothing beside `url`; it is ignored"
    );
    assert_eq!(
        warnings("a.yaml", "auth: { api_keys: [] }"),
        "a.yaml:1:9: auth.api_keys: has no key, so no one can connect"
    );
}

#[test]
fn a_hash_of_digits_only_is_a_hash() {
    let hash = "12345678e0".to_owned() + &"0".repeat(54);
    let config = loaded(
        "a.yaml",
        &format!("auth: {{ api_keys: [{{ name: a, sha256: {hash} }}] }}"),
    )
    .config;
    let Some(Auth::Keys(keys)) = config.auth else {
        panic!()
    };
    assert_eq!(
        keys.api_keys[0].sha256.bytes()[..5],
        [0x12, 0x34, 0x56, 0x78, 0xe0]
    );
}
