//! What is in `deploy/`: its configurations load, and its parts agree with each other and with the images.

use super::blocks::{files, read};
use drawbridge::config::{Config, Format, Loaded};

fn load(name: &str, text: &str) -> Loaded {
    let loaded = Config::parse(name, text, Some(Format::Yaml), &|_| None);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
    assert!(!loaded.config.servers.is_empty());
    loaded
}

/// The text of a block scalar (`key: |`) in a YAML file.
fn block(text: &str, key: &str) -> String {
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim() != format!("{key}: |"));
    let head = lines.next().unwrap_or_else(|| panic!("no {key}"));
    let outer = head.len() - head.trim_start().len();
    let inside =
        |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() > outer;
    lines
        .take_while(inside)
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn the_configurations_load() {
    load("drawbridge.yaml", &read("deploy/drawbridge.yaml"));
    let inside = block(&read("deploy/kubernetes.yaml"), "drawbridge.yaml");
    let loaded = load("kubernetes.yaml", &inside);
    assert_eq!(loaded.config.servers.len(), 2);
}

#[test]
fn nothing_in_the_folder_is_unknown_to_these_tests() {
    let names: Vec<String> = files("deploy")
        .iter()
        .filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let known = [
        "docker-compose.yaml",
        "drawbridge.yaml",
        "healthcheck",
        "kubernetes.yaml",
        "nginx.conf",
    ];
    assert_eq!(names, known);
}

/// Who ends the process waits longer than it needs to drain.
#[test]
fn the_end_has_time_enough() {
    let drain = Config::default().drain;
    let needed = (drain.delay.get() + drain.grace.get()).as_secs();
    for (file, key) in [
        ("deploy/docker-compose.yaml", "stop_grace_period: "),
        ("deploy/kubernetes.yaml", "terminationGracePeriodSeconds: "),
    ] {
        let text = read(file);
        let value = text
            .split(key)
            .nth(1)
            .unwrap_or_else(|| panic!("{file}: no {key}"));
        let seconds = value
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end_matches('s');
        assert!(
            seconds.parse::<u64>().unwrap() > needed,
            "{file}: {key}{seconds}"
        );
    }
}

#[test]
fn the_parts_know_each_others_ports_and_user() {
    let image = read("Dockerfile");
    for port in ["0.0.0.0:8080", "0.0.0.0:9090"] {
        for file in [
            "Dockerfile",
            "deploy/docker-compose.yaml",
            "deploy/kubernetes.yaml",
        ] {
            assert!(
                read(file).contains(port),
                "{file}: nothing listens on {port}"
            );
        }
    }
    assert!(image.contains("USER 10001:10001"));
    assert!(read("deploy/kubernetes.yaml").contains("runAsUser: 10001"));
    let rust = read("Cargo.toml");
    let rust = rust
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap();
    let pinned = format!("rust:{}-", rust.trim_matches('"'));
    assert!(
        image.contains(&pinned),
        "the image is not built with {pinned}"
    );
}

/// nginx takes no less than the gateway does, and waits as long.
#[test]
fn nginx_is_no_tighter_than_the_gateway() {
    let nginx = read("deploy/nginx.conf");
    let value = |key: &str| {
        let found = nginx
            .split(key)
            .nth(1)
            .unwrap_or_else(|| panic!("no {key}"));
        found
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    assert_eq!(
        Config::default().limits.body.to_string(),
        value("client_max_body_size")
            .to_uppercase()
            .replace('M', "MiB")
    );
    assert_eq!(value("proxy_read_timeout"), "11m");
    assert!(
        !nginx
            .lines()
            .any(|line| line.trim_start().starts_with("proxy_buffering"))
    );
}
