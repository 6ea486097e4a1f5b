//! Broken files and what is said about them.

use super::*;

#[track_caller]
fn expect(name: &str, text: &str, expected: &[&str]) {
    assert_eq!(
        faults(name, text),
        expected.join("\n"),
        "\n{}",
        faults(name, text)
    );
}

#[test]
fn a_yaml_file_shows_all_its_faults_at_once() {
    let text = r#"
listen: 0.0.0.0:80
server: {}
servers:
  files:
    comand: npx
    start: { timeout: 30, restarts: -1, bakoff: 1s }
  tickets:
    url: ftp://x
    protocol: 2025-06-17
    limits: { processes: 0, frame: 1B, memory: big }
    isolation: 5
  My_Tools: { command: x }
policy: {}
endpoints:
  mcp: {}
  /a: { servers: [fils, tickets, tickets], page_size: "10" }
  /a/:
  /healthz: {}
auth: { api_keys: [ { name: ci, sha256: abc }, 5, { sha256: "00" } ] }
names: { max: 200 }
single_server: "no"
"#;
    expect(
        "a.yaml",
        text,
        &[
            "a.yaml:3:1: server: is not a key here; did you mean `servers`?",
            "a.yaml:6:5: servers.files.comand: is not a key here; did you mean `command`?",
            "a.yaml:7:23: servers.files.start.timeout: is a number without a unit; write it with one, such as `30s`",
            "a.yaml:7:37: servers.files.start.restarts: -1 is out of range; write a whole number from 0 to 1000",
            "a.yaml:7:41: servers.files.start.bakoff: is not a key here; did you mean `backoff`?",
            "a.yaml:9:10: servers.tickets.url: the value is not a URL; write one with `http://` or `https://`, such as `https://tickets.example.com/mcp`",
            "a.yaml:10:15: servers.tickets.protocol: `2025-06-17` is not possible here; did you mean `2025-06-18`? Possible are `auto`, `modern`, `legacy`, `2024-11-05`, `2025-03-26`, `2025-06-18`, `2025-11-25` or `2026-07-28`",
            "a.yaml:11:26: servers.tickets.limits.processes: 0 is out of range; write a whole number from 1 to 100000",
            "a.yaml:11:36: servers.tickets.limits.frame: `1B` is out of range; write one from `1KiB` to `1GiB`",
            "a.yaml:11:48: servers.tickets.limits.memory: `big` is not a size; write a number with its unit, such as `16MiB`, `512KiB` or `1GB`",
            "a.yaml:12:16: servers.tickets.isolation: is a number; write `session`, `principal`, `request` or `shared`",
            "a.yaml:13:3: servers.My_Tools: is not a name for a server; write up to 31 lower-case letters, digits and `-`, beginning with a letter, such as `my-tools`",
            "a.yaml:14:1: policy: is not available in this version",
            "a.yaml:16:3: endpoints.mcp: is a path without a `/` at its start; write a path such as `/mcp` or `/teams/data`",
            "a.yaml:17:19: endpoints[\"/a\"].servers[0]: there is no server `fils`; did you mean `files`?",
            "a.yaml:17:34: endpoints[\"/a\"].servers[2]: stands here twice; write it once",
            "a.yaml:17:55: endpoints[\"/a\"].page_size: is a text; write the number without quotes",
            "a.yaml:18:3: endpoints[\"/a/\"]: is the same path as `/a`; write one of them only",
            "a.yaml:19:3: endpoints[\"/healthz\"]: is a path of the gateway's own (`/healthz`); write a path such as `/mcp` or `/teams/data`",
            "a.yaml:20:41: auth.api_keys[0].sha256: the value is not a SHA-256 hash; write the 64 hexadecimal digits that `drawbridge key new NAME` prints",
            "a.yaml:20:48: auth.api_keys[1]: is a number; write a map such as `{ name: …, sha256: … }`",
            "a.yaml:20:51: auth.api_keys[2]: has no `name`; write the name of a key such as `ci` there",
            "a.yaml:20:61: auth.api_keys[2].sha256: the value is not a SHA-256 hash; write the 64 hexadecimal digits that `drawbridge key new NAME` prints",
            "a.yaml:21:15: names.max: 200 is out of range; write a whole number from 44 to 128",
            "a.yaml:22:16: single_server: is a text; write `true` or `false`",
        ],
    );
}

#[test]
fn a_toml_file_shows_all_its_faults_at_once() {
    let text = r#"
listen = 8080
[servers.a]
command = 5
[servers.b]
url = "http://x/"
command = "x"
[servers.c]
[servers.d]
url = "http://x/"
args = ["a"]
type = "stdio"
[servers.e]
url = "http://x/"
protocol = 2024-11-05
[limits]
body = 16
request_timeout = "1y"
[[x]]
[auth]
api_keys = "k"
[streams.replay]
event = 1
"#;
    expect(
        "a.toml",
        text,
        &[
            "a.toml:2:10: listen: is a number; write an address such as `127.0.0.1:8080`, or a list such as `[127.0.0.1:8080]`",
            "a.toml:4:11: servers.a.command: is a number; write a text, in quotes",
            "a.toml:6:1: servers.b.url: stands beside `command`; write one of them only",
            "a.toml:8:10: servers.c: has neither `command` nor `url`; write the program to run or the address to connect to",
            "a.toml:11:1: servers.d.args: means nothing beside `url`; it belongs to a server with `command`",
            "a.toml:12:1: servers.d.type: `stdio` goes with `command`; write `http`, or leave it out",
            "a.toml:15:1: servers.e.protocol: the HTTP+SSE transport of 2024-11-05 is not supported yet: give the streamable HTTP address",
            "a.toml:17:8: limits.body: is a number without a unit; write it with one, such as `16MiB`",
            "a.toml:18:19: limits.request_timeout: `1y` is not a duration; write numbers with units, such as `30s`, `5m`, `1h30m` or `500ms`",
            "a.toml:19:3: x: is not a key here; `drawbridge schema` prints all that there are",
            "a.toml:21:12: auth.api_keys: is a text; write a list such as `[a, b]`",
            "a.toml:23:1: streams.replay.event: is not a key here; did you mean `events`?",
        ],
    );
}

#[test]
fn a_json_file_shows_all_its_faults_at_once() {
    let text = r#"{
  "listen": ["127.0.0.1:1", "127.0.0.1:1", "x"], // comment
  "servers": { "a": { "command": "", "env": { "A=B": "x" }, "tools": { "allow": "x", "deny": ["["] } } },
  "admin": { "listen": "0.0.0.0:9090" },
  "telemetry": { "log": { "level": "inof" }, "traces": {} },
  "origins": ["https://a/b"],
  "hosts": "a",
  "tls": { "cert": "c" },
}"#;
    expect(
        "a.json",
        text,
        &[
            "a.json:2:29: listen[1]: stands here twice; write it once",
            "a.json:2:44: listen[2]: `x` is not an address; write a host and a port, such as `127.0.0.1:8080`, `[::1]:8080` or `0.0.0.0:8080`",
            "a.json:3:34: servers.a.command: is empty; write a text, or leave the key out",
            "a.json:3:47: servers.a.env[\"A=B\"]: is no name for a variable; write one without `=`, such as `LOG`",
            "a.json:3:81: servers.a.tools.allow: is a text; write a list such as `[read_*]`",
            "a.json:3:95: servers.a.tools.deny[0]: `[` is not a glob (unclosed character class; missing ']'); write a name in which `*` stands for any characters, such as `read_*`; `\\` makes the next character literal",
            "a.json:4:14: admin.listen: other machines can reach it, so it needs a key; write `key: { env: DRAWBRIDGE_ADMIN_KEY }` beside it, or listen on `127.0.0.1:9090`",
            "a.json:5:36: telemetry.log.level: `inof` is not possible here; did you mean `info`? Possible are `error`, `warn`, `info`, `debug` or `trace`",
            "a.json:5:46: telemetry.traces: is not available in this version",
            "a.json:6:15: origins[0]: `https://a/b` is not an origin; write scheme, host and port only, such as `https://app.example.com`, or `*` for any",
            "a.json:7:12: hosts: is a text; write a list such as `[mcp.example.com]`",
            "a.json:8:10: tls: has no `key`; write a text there",
        ],
    );
}

#[test]
fn broken_syntax_is_shown_where_it_breaks() {
    for (name, text, expected) in [
        (
            "a.yaml",
            "listen: [\n",
            "a.yaml:2:1: is not valid YAML here: while parsing a node, did not find expected node content",
        ),
        (
            "a.yaml",
            "a: 1\n---\nb: 1\n",
            "a.yaml:2:1: begins a second document; write one document into a file",
        ),
        (
            "a.yaml",
            "? [a]\n: b\n",
            "a.yaml:1:3: is not a key; write a text before the `:`",
        ),
        (
            "a.yaml",
            "a: *b\n",
            "a.yaml:1:4: is not valid YAML here: while parsing node, found unknown anchor",
        ),
        (
            "a.yaml",
            "- a\n",
            "a.yaml:1:1: is a list; write a map such as `{ listen: …, public_url: … }`",
        ),
        (
            "a.toml",
            "listen = \n",
            "a.toml:1:10: is not valid TOML here: string values must be quoted, expected literal string",
        ),
        (
            "a.json",
            "{ \"a\": }",
            "a.json:1:8: is not valid JSON here: unexpected close brace",
        ),
        (
            "a.json",
            "{} {}",
            "a.json:1:4: is not valid JSON here: text cannot contain more than one json value",
        ),
    ] {
        expect(name, text, &[expected]);
    }
}

#[test]
fn a_key_that_stands_twice_is_a_fault_in_every_format() {
    expect(
        "a.yaml",
        "servers:\n  a: { command: x, command: y }\n  a: { url: http://x/ }\n",
        &[
            "a.yaml:2:20: servers.a.command: the key `command` stands here twice; it is already in line 2",
            "a.yaml:3:3: servers.a: the key `a` stands here twice; it is already in line 2",
        ],
    );
    expect(
        "a.toml",
        "drain = {}\ndrain = {}\n",
        &["a.toml:2:1: the key `drain` stands here twice"],
    );
    expect(
        "a.json",
        "{ \"drain\": {},\n  \"drain\": {} }",
        &["a.json:2:3: drain: the key `drain` stands here twice; it is already in line 1"],
    );
}

#[test]
fn a_listener_that_others_can_reach_needs_auth() {
    let fault = "a.yaml:1:1: listen: other machines can reach it, so say who may: add a key to `auth.api_keys` \
                 (`drawbridge key new NAME` makes one), or write `auth: none` for everyone";
    expect("a.yaml", "listen: 0.0.0.0:80\n", &[fault]);
    expect("a.yaml", "listen: ['127.0.0.1:80', '[::]:80']\n", &[fault]);
    for fine in [
        "listen: 0.0.0.0:80\nauth: none\n",
        "listen: 127.0.0.1:80\n",
        "listen: localhost:80\n",
    ] {
        expect("a.yaml", fine, &[]);
    }
    // What is wrong with `auth` is enough to know.
    expect(
        "a.yaml",
        "listen: 0.0.0.0:80\nauth: nobody\n",
        &["a.yaml:2:7: auth: is `nobody`; write `none`, or a map such as `{ api_keys: … }`"],
    );
}

#[test]
fn keys_have_names_and_hashes_of_their_own() {
    let (one, two) = ("1".repeat(64), "2".repeat(64));
    expect(
        "a.yaml",
        &format!(
            "auth:\n  api_keys:\n  - {{ name: a, sha256: {one} }}\n  - {{ name: b, sha256: '{one}' }}\n  - {{ name: a, sha256: {two} }}\n"
        ),
        &[
            "a.yaml:4:5: auth.api_keys[1]: is the same key as `api_keys[0]`; make another with `drawbridge key new NAME`",
            "a.yaml:5:5: auth.api_keys[2]: has the name of `api_keys[0]`; give every key a name of its own",
        ],
    );
}

#[test]
fn an_endpoint_may_not_stand_where_a_server_does() {
    let text = "servers: { a: { command: x } }\nendpoints:\n  /mcp/a: {}\n";
    expect(
        "a.yaml",
        text,
        &[
            "a.yaml:3:3: endpoints[\"/mcp/a\"]: is where the server `a` is served alone; write another path, or `single_server: false`",
        ],
    );
    expect("a.yaml", &format!("{text}single_server: false\n"), &[]);
}

#[test]
fn times_and_new_names_fit_together() {
    expect(
        "a.yaml",
        "servers:\n  a:\n    command: x\n    timeouts: { call: 2m, call_max: 1m }\n    tools: { rename: { b: x, c: x, d: '' } }\n",
        &[
            "a.yaml:4:27: servers.a.timeouts.call_max: is less than `call`; write at least as much, or leave it out",
            "a.yaml:5:30: servers.a.tools.rename.c: is the new name of `b` already; write another",
            "a.yaml:5:36: servers.a.tools.rename.d: is empty; write the new name",
        ],
    );
}

#[test]
fn headers_are_single_lines_and_not_the_transports() {
    expect(
        "a.yaml",
        "servers:\n  a:\n    url: http://x/\n    headers: { Host: y, X-A: \"1\\n2\", x-b: 1, X-B: 2 }\n",
        &[
            "a.yaml:4:16: servers.a.headers.Host: is a header that the gateway sets itself; write other headers only, and leave this one out",
            "a.yaml:4:25: servers.a.headers.X-A: has a line break or another control character; write a single line",
            "a.yaml:4:46: servers.a.headers.X-B: stands here twice; upper and lower case do not matter in the name of a header",
        ],
    );
}

#[test]
fn no_fault_repeats_a_secret_or_what_came_from_the_environment() {
    let text = r#"
listen: ${TOKEN}
public_url: "https://x/?${TOKEN}"
auth: { api_keys: [ { name: "a ${TOKEN}", sha256: s3cret-t0ken, expires: "${TOKEN}" } ] }
admin: { key: [s3cret-t0ken] }
limits: { sessions: "${TOKEN}", body: "${TOKEN}" }
telemetry: { log: { level: "${TOKEN}" } }
servers:
  a: { url: "http://u:s3cret-t0ken@x/", headers: { A: "${TOKEN}\u0001" }, protocol: "${TOKEN}" }
  b: { command: x, tools: { allow: ["[${TOKEN}"] }, cwd: { x: s3cret-t0ken } }
endpoints: { /x: { servers: ["${TOKEN}"] } }
"#;
    let faults = faults("a.yaml", text);
    assert!(!faults.contains("s3cret"), "{faults}");
    assert_eq!(faults.lines().count(), 14, "{faults}");
}

#[test]
fn a_file_that_cannot_be_read_is_a_fault_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let missing = Config::load(&path, &env).unwrap_err().to_string();
    assert!(
        missing.starts_with(&format!("{}: cannot be read: ", path.display())),
        "{missing}"
    );
    std::fs::write(&path, b"a: 1\nb: \xff\n").unwrap();
    let latin = Config::load(&path, &env).unwrap_err().to_string();
    assert_eq!(
        latin,
        format!(
            "{}: is not UTF-8 in line 2; save it as UTF-8",
            path.display()
        )
    );
}

#[test]
fn aliases_cannot_make_a_file_explode() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let alias = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", [&*alias; 10].join(", "));
    }
    assert!(faults("a.yaml", &text).contains("makes more than 100000 values of the file"));
    assert!(faults("a.yaml", &"a: [".repeat(100)).contains("nested more than 64 levels deep"));
}
