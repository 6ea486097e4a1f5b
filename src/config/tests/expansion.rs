//! What comes from the environment and from other files.

use super::*;

#[test]
fn a_variable_that_is_not_set_takes_out_its_server_only() {
    let text = "servers:\n  a:\n    url: https://x/mcp\n    headers: { Authorization: \"Bearer ${NOPE}\", X: { env: NADA } }\n  b: { command: \"${C:-run}\", args: [\"${TOKEN}\"] }\n  c: { command: x, tools: { deny: [\"${NOPE}\"] } }\n";
    let loaded = loaded("a.yaml", text);
    let Target::Unavailable(reason) = &loaded.config.servers["a"].target else {
        panic!()
    };
    assert_eq!(
        reason,
        "servers.a.headers.Authorization: the environment variable `NOPE` is not set; \
         servers.a.headers.X: the environment variable `NADA` is not set"
    );
    assert!(matches!(
        &loaded.config.servers["c"].target,
        Target::Unavailable(_)
    ));
    let Target::Process(process) = &loaded.config.servers["b"].target else {
        panic!()
    };
    assert_eq!(
        (&*process.command, &*process.args[0]),
        ("run", "s3cret-t0ken")
    );
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            format!("a.yaml:2:3: servers.a: cannot be used, and the others can: {reason}"),
            "a.yaml:6:3: servers.c: cannot be used, and the others can: servers.c.tools.deny[0]: the environment variable `NOPE` is not set".into(),
        ]
    );
}

#[test]
fn a_variable_that_is_not_set_elsewhere_is_a_fault() {
    assert_eq!(
        faults(
            "a.yaml",
            "listen: ${NOPE}\nadmin: { key: { env: NADA } }\nhosts: [\"${}\"]\n"
        ),
        "a.yaml:1:9: listen: the environment variable `NOPE` is not set; set it, or write a default, as in `${NOPE:-default}`\n\
         a.yaml:2:15: admin.key: the environment variable `NADA` is not set\n\
         a.yaml:3:9: hosts[0]: has a `${` that begins no variable; write `${NAME}` or `${NAME:-default}`, or `$${` for the characters themselves"
    );
}

#[test]
fn an_unset_admin_key_is_never_compared_as_it_stands() {
    assert!(
        faults("a.yaml", "admin: { key: \"${NOPE}\" }\n")
            .contains("the environment variable `NOPE` is not set")
    );
    assert!(faults("a.yaml", "admin: { key: \"${EMPTY}\" }\n").contains("admin.key: is empty"));
}

#[test]
fn numbers_and_switches_may_come_from_the_environment() {
    let text = "listen: 127.0.0.1:${PORT}\nlimits: { processes: \"${WORKERS}\", body: \"${BODY:-2MiB}\" }\nsingle_server: \"${SINGLE:-false}\"\nservers:\n  a: { command: x, disabled: \"${OFF}\" }\nendpoints: { /mcp: { servers: [a] } }\n";
    let loaded = loaded("a.yaml", text);
    assert_eq!(loaded.config.listen.addresses()[0].port(), 8081);
    assert_eq!(
        (
            loaded.config.limits.processes,
            loaded.config.limits.body.get()
        ),
        (7, 2 << 20)
    );
    assert!(!loaded.config.single_server && loaded.config.servers.is_empty());
    assert_eq!(loaded.disabled, ["a"]);
    assert_eq!(
        faults("a.yaml", "limits: { processes: \"${TOKEN}\" }"),
        "a.yaml:1:22: limits.processes: what came from the environment is not a number; it must be a whole number from 1 to 100000"
    );
}

#[test]
fn what_expands_cannot_change_the_shape_of_the_file() {
    let wild = |name: &str| (name == "W").then(|| "x\", \"evil\": \"${TOKEN}".to_owned());
    let loaded = Config::parse(
        "a.json",
        r#"{ "servers": { "a": { "command": "${W}" } } }"#,
        None,
        &wild,
    )
    .unwrap();
    let Target::Process(process) = &loaded.config.servers["a"].target else {
        panic!()
    };
    assert_eq!(process.command, "x\", \"evil\": \"${TOKEN}");
}

#[test]
fn a_secret_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "from-file\r\n").unwrap();
    let path = folder.path().join("a.yaml");
    std::fs::write(&path, "admin: { key: { file: key } }\nservers: { a: { command: x, env: { K: { file: \"${NAME:-none}\" } } } }\n").unwrap();
    let loaded = Config::load(&path, &env).unwrap();
    assert_eq!(
        loaded.config.admin.key.as_ref().unwrap().expose(),
        "from-file"
    );
    let Target::Unavailable(reason) = &loaded.config.servers["a"].target else {
        panic!()
    };
    assert!(
        reason.starts_with("servers.a.env.K: the file cannot be read"),
        "{reason}"
    );
}

#[test]
fn nothing_secret_is_printed_for_debugging() {
    let text = r#"
admin: { key: s3cret-t0ken }
servers:
  a: { command: x, args: ["--key", "${TOKEN}"], env: { K: "${TOKEN}" }, tools: { fix: { t: { p: "${TOKEN}" } } } }
  b: { url: "https://x/?key=${TOKEN}", headers: { A: "${TOKEN}" } }
"#;
    let loaded = loaded("a.yaml", text);
    assert!(
        !format!("{loaded:?}{loaded:#?}").contains("s3cret"),
        "{loaded:#?}"
    );
    assert_eq!(
        loaded.config.servers["a"].tools.fix["t"]["p"].value(),
        "s3cret-t0ken"
    );
}
