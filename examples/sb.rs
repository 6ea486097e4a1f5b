//! `sb`: a scripted MCP server on stdio that misbehaves on demand. For tests only.
//!
//! It speaks on standard input and output, in any era, and does what its command line
//! and the tools that are called say. One thread reads; a tool that takes time runs
//! on a thread of its own, every other one is answered before the next line is read.
//!
//! Command line, in any order:
//!
//! | option | effect |
//! |---|---|
//! | `--era=legacy` | `legacy` (default), `modern`, or `both`: the first message then fixes it for good |
//! | `--revision=R` | what `initialize` is answered with; default: what was asked |
//! | `--name=N` | `serverInfo.name`; default `sb` |
//! | `--start-delay=MS` | waits before it reads or writes anything |
//! | `--init-delay=MS` | waits before it answers `initialize` or `server/discover` |
//! | `--install=FILE,MS` | unless FILE exists: works for MS, then makes it; lost if killed meanwhile |
//! | `--exit-at-start=CODE` | exits at once |
//! | `--exit-unless=FILE` | exits at once with status 9 unless FILE exists |
//! | `--banner=TEXT` | a line on stderr at the start |
//! | `--noisy` | noise on stdout at the start, before and after every answer |
//! | `--unknown=error` | what an unknown method gets before `initialize`: `error` (-32601), `null` (an error with `"id":null`), `silent`, `exit` (status 4), `flood` (10 KiB on stderr, then nothing) |
//! | `--late=MS` | `server/discover` is answered after MS, other messages at once |
//! | `--refuse` | `initialize` gets the error -32000 |
//! | `--ask-roots` | sends `roots/list` right after `notifications/initialized` |
//! | `--journal=FILE` | appends `start PID`, `in LINE` for every line read (its first 300 bytes), `bad LENGTH` for one that is not JSON, and `end` |
//! | `--ignore-eof` | goes on after the end of its input |
//! | `--ignore-term` | goes on after SIGTERM, too |
//! | `--tools=N` | N more tools in `tools/list`, `tool0` and on; calls to them are answered with their name |
//!
//! Tools (`tools/call`; arguments in parentheses, all optional):
//!
//! | tool | effect |
//! |---|---|
//! | `echo` (anything) | its arguments as text |
//! | `pid` | its process id |
//! | `env` | its environment as a JSON object |
//! | `declared` | the `capabilities` and `clientInfo` it was given, as text |
//! | `sleep` (`ms`) | answers after that |
//! | `hang` | never answers |
//! | `hold` (`text`) | answers `text` when `release` is called |
//! | `release` | answers every `hold` so far, last one first, then itself |
//! | `crash` (`code`) | exits without an answer, status 3 by default |
//! | `exit` (`code`) | exits after the answer |
//! | `text` (`text`, `chunk`) | `text`, written `chunk` bytes at a time |
//! | `big` (`bytes`, `chunk`, `id_last`) | so many `x`, written `chunk` bytes at a time, with the id at the end of the message if wanted |
//! | `bad-utf8` | an answer with a lone byte C3 in its text |
//! | `raw` (`text`) | writes that line, then answers |
//! | `stderr` (`bytes`) | writes so much to stderr in lines of 80, then answers |
//! | `spawn` (`detach`) | starts `sleep 1000`, in its own group and orphaned if wanted; its process id |
//! | `progress` (`count`, `ms`) | so many progress notifications, `ms` apart, then the answer |
//! | `notify` (`method`, `params`) | sends that notification, then answers |
//! | `ask` (`method`, `params`) | sends that request and answers with its answer |
//! | `deaf` (`ms`) | reads nothing for that long, then answers |
//! | `close-output` | closes its standard output and goes on |

use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{BufRead, Write},
    os::unix::process::CommandExt,
    process::{Command, Stdio, exit},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

const MODERN: &str = "2026-07-28";

#[derive(Default)]
struct Options {
    values: HashMap<String, String>,
}

impl Options {
    fn read() -> Self {
        let mut values = HashMap::new();
        for arg in std::env::args().skip(1) {
            let Some(option) = arg.strip_prefix("--") else {
                eprintln!("sb: what is {arg}?");
                exit(2)
            };
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            values.insert(name.to_owned(), value.to_owned());
        }
        Self { values }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        Some(value.parse().unwrap_or_else(|_| panic!("--{name}={value}")))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Era {
    Open,
    Legacy,
    Modern,
}

struct Sb {
    options: Options,
    era: Mutex<Era>,
    declared: Mutex<Value>,
    initialized: Mutex<bool>,
    output: Mutex<Option<std::io::Stdout>>,
    held: Mutex<Vec<(Value, String)>>,
    /// Own requests that wait for an answer.
    asked: Mutex<HashMap<String, mpsc::Sender<Value>>>,
    last: AtomicU64,
}

fn main() {
    let options = Options::read();
    ignore_term(&options);
    let era = match options.get("era").unwrap_or("legacy") {
        "legacy" => Era::Legacy,
        "modern" => Era::Modern,
        _ => Era::Open,
    };
    let sb = Arc::new(Sb {
        options,
        era: Mutex::new(era),
        declared: Mutex::default(),
        initialized: Mutex::new(false),
        output: Mutex::new(Some(std::io::stdout())),
        held: Mutex::default(),
        asked: Mutex::default(),
        last: AtomicU64::new(1),
    });
    sb.begin();
    let mut line = Vec::new();
    let mut input = std::io::stdin().lock();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            break;
        }
        sb.take(&line);
    }
    while sb.options.has("ignore-eof") {
        pause(1000);
    }
    sb.journal("end");
}

/// A disposition to ignore a signal survives `exec`; a shell can set it.
fn ignore_term(options: &Options) {
    if !options.has("ignore-term") || std::env::var_os("SB_IGNORES").is_some() {
        return;
    }
    let own = std::env::current_exe().expect("a path");
    let error = Command::new("sh")
        .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env("SB_IGNORES", "1")
        .exec();
    panic!("{error}")
}

#[expect(
    clippy::disallowed_methods,
    reason = "one thread for each message, none of them asynchronous"
)]
fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

fn number(arguments: &Value, name: &str) -> Option<u64> {
    arguments[name].as_u64()
}

impl Sb {
    fn begin(&self) {
        self.journal(&format!("start {}", std::process::id()));
        if let Some(file) = self.options.get("exit-unless")
            && !std::path::Path::new(file).exists()
        {
            eprintln!("sb: there is no {file}");
            exit(9)
        }
        if let Some(code) = self.options.number("exit-at-start") {
            eprintln!("sb: exits at once");
            exit(code as i32)
        }
        if let Some(text) = self.options.get("banner") {
            eprintln!("{text}");
        }
        if let Some((file, ms)) = self.options.get("install").and_then(|v| v.split_once(','))
            && !std::path::Path::new(file).exists()
        {
            pause(ms.parse().expect("milliseconds"));
            std::fs::write(file, "done").expect("a file");
        }
        pause(self.options.number("start-delay").unwrap_or(0));
        self.noise();
    }

    fn journal(&self, text: &str) {
        if let Some(file) = self.options.get("journal") {
            let file = OpenOptions::new().append(true).create(true).open(file);
            let text = format!("{text}\n");
            file.and_then(|mut f| f.write_all(text.as_bytes()))
                .expect("a journal");
        }
    }

    fn noise(&self) {
        if self.options.has("noisy") {
            let noise = "[INFO] up \u{1f680}\n-32\n{broken\n\n[1, 2\n\"text\"\n{\"level\":\"info\",\"id\":1}\n";
            self.write(noise.as_bytes(), 7);
        }
    }

    fn write(&self, bytes: &[u8], chunk: usize) {
        let output = self.output.lock().expect("no panic");
        let Some(mut output) = output.as_ref() else {
            return;
        };
        for piece in bytes.chunks(chunk.max(1)) {
            if output
                .write_all(piece)
                .and_then(|()| output.flush())
                .is_err()
            {
                exit(5)
            }
        }
    }

    fn send(&self, message: &Value) {
        let mut text = message.to_string();
        text.push('\n');
        self.write(text.as_bytes(), usize::MAX);
    }

    fn answer(&self, id: &Value, mut result: Value) {
        if *self.era.lock().expect("no panic") == Era::Modern {
            result["resultType"] = "complete".into();
        }
        self.noise();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        self.noise();
    }

    fn answer_text(&self, id: &Value, text: impl Into<String>) {
        self.answer(id, content(text.into()));
    }

    fn fail(&self, id: &Value, code: i64, message: &str, data: Value) {
        let mut error = json!({"code": code, "message": message});
        if !data.is_null() {
            error["data"] = data;
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn take(self: &Arc<Self>, line: &[u8]) {
        let line = line.trim_ascii();
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            self.journal(&format!("bad {}", line.len()));
            return;
        };
        let start = String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
        self.journal(&format!("in {start}"));
        let Some(method) = message["method"].as_str() else {
            let id = message["id"].as_str().unwrap_or_default();
            if let Some(waiting) = self.asked.lock().expect("no panic").remove(id) {
                let _ = waiting.send(message);
            }
            return;
        };
        let (id, params) = (&message["id"], &message["params"]);
        match (method, id.is_null()) {
            ("notifications/initialized", _) => {
                if self.options.has("ask-roots") {
                    let sb = self.clone();
                    thread::spawn(move || sb.ask("roots/list", json!({})));
                }
            }
            (_, true) => {}
            ("initialize", _) => self.initialize(id, params),
            ("server/discover", _) => self.discover(id, params),
            ("ping", _) => self.answer(id, json!({})),
            _ if !*self.initialized.lock().expect("no panic") && self.is(Era::Legacy) => {
                self.unknown(id);
            }
            ("tools/list", _) => self.list(id),
            ("tools/call", _) => self.call(id, params),
            ("subscriptions/listen", _) => self.listen(id),
            _ => self.fail(id, -32601, "Method not found", Value::Null),
        }
    }

    fn is(&self, era: Era) -> bool {
        *self.era.lock().expect("no panic") == era
    }

    fn settle(&self, wanted: Era) -> bool {
        let mut era = self.era.lock().expect("no panic");
        if *era == Era::Open {
            *era = wanted;
        }
        *era == wanted
    }

    fn initialize(&self, id: &Value, params: &Value) {
        if !self.settle(Era::Legacy) {
            let data = json!({"supported": [MODERN]});
            return self.fail(id, -32022, "Unsupported protocol version", data);
        }
        if self.options.has("refuse") {
            return self.fail(id, -32000, "no licence", Value::Null);
        }
        pause(self.options.number("init-delay").unwrap_or(0));
        *self.declared.lock().expect("no panic") = params.clone();
        *self.initialized.lock().expect("no panic") = true;
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let revision = self.options.get("revision").unwrap_or(asked);
        self.answer(
            id,
            json!({
                "protocolVersion": revision,
                "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                "serverInfo": {"name": self.name(), "version": "1"},
            }),
        );
    }

    fn discover(self: &Arc<Self>, id: &Value, params: &Value) {
        if !self.settle(Era::Modern) {
            return self.unknown(id);
        }
        *self.declared.lock().expect("no panic") = params["_meta"].clone();
        let result = json!({
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": self.name(), "version": "1"}},
            "ttlMs": 0,
            "cacheScope": "private",
        });
        let delay = self.options.number("init-delay").unwrap_or(0);
        pause(delay);
        match self.options.number("late") {
            Some(ms) => self.later(id, move |sb, id| {
                pause(ms);
                sb.answer(id, result);
            }),
            None => self.answer(id, result),
        }
    }

    fn unknown(&self, id: &Value) {
        match self.options.get("unknown").unwrap_or("error") {
            "silent" => {}
            "exit" => exit(4),
            "null" => self.fail(&Value::Null, -32600, "Invalid request", Value::Null),
            "flood" => flood(10 << 10),
            _ => self.fail(id, -32601, "Method not found", Value::Null),
        }
    }

    fn name(&self) -> &str {
        self.options.get("name").unwrap_or("sb")
    }

    fn list(&self, id: &Value) {
        let known = [
            "echo",
            "pid",
            "env",
            "declared",
            "sleep",
            "hang",
            "hold",
            "release",
            "crash",
            "exit",
            "text",
            "big",
            "bad-utf8",
            "raw",
            "stderr",
            "spawn",
            "progress",
            "notify",
            "ask",
            "deaf",
            "close-output",
        ];
        let more = 0..self.options.number("tools").unwrap_or(0);
        let names = known.iter().map(|n| (*n).to_owned());
        let all = names.chain(more.map(|n| format!("tool{n}")));
        let schema = json!({"type": "object"});
        let tools: Vec<_> = all
            .map(|name| json!({"name": name, "inputSchema": schema}))
            .collect();
        self.answer(
            id,
            json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"}),
        );
    }

    fn listen(&self, id: &Value) {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
        self.notify("notifications/subscriptions/acknowledged", params);
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let id = format!("sb-{}", self.last.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = mpsc::channel();
        self.asked
            .lock()
            .expect("no panic")
            .insert(id.clone(), sender);
        let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            request["params"] = params;
        }
        self.send(&request);
        answer.recv().unwrap_or_default()
    }

    fn later(self: &Arc<Self>, id: &Value, what: impl FnOnce(&Self, &Value) + Send + 'static) {
        let (sb, id) = (self.clone(), id.clone());
        thread::spawn(move || what(&sb, &id));
    }

    fn call(self: &Arc<Self>, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({}));
        match name {
            "echo" => self.answer_text(id, arguments.to_string()),
            "pid" => self.answer_text(id, std::process::id().to_string()),
            "env" => self.answer_text(id, environment()),
            "declared" => self.answer_text(id, self.declared.lock().expect("no panic").to_string()),
            "hang" => {}
            "hold" => {
                let text = arguments["text"].as_str().unwrap_or_default().to_owned();
                self.held.lock().expect("no panic").push((id.clone(), text));
            }
            "release" => {
                let held = std::mem::take(&mut *self.held.lock().expect("no panic"));
                for (id, text) in held.into_iter().rev() {
                    self.answer_text(&id, text);
                }
                self.answer_text(id, "released");
            }
            "crash" => exit(number(&arguments, "code").unwrap_or(3) as i32),
            "exit" => {
                self.answer_text(id, "bye");
                exit(number(&arguments, "code").unwrap_or(0) as i32)
            }
            "text" | "big" | "bad-utf8" | "raw" => self.odd_answer(name, id, &arguments),
            "stderr" => {
                flood(number(&arguments, "bytes").unwrap_or(1 << 20) as usize);
                self.answer_text(id, "written");
            }
            "spawn" => self.answer_text(id, spawn(arguments["detach"] == true).to_string()),
            "deaf" => {
                pause(number(&arguments, "ms").unwrap_or(500));
                self.answer_text(id, "back");
            }
            "close-output" => close_output(),
            "sleep" | "progress" | "notify" | "ask" => {
                let (name, meta) = (name.to_owned(), params["_meta"].clone());
                self.later(id, move |sb, id| sb.slow(&name, id, &arguments, &meta));
            }
            _ => self.answer_text(id, name),
        }
    }

    /// Answers that are odd as bytes.
    fn odd_answer(&self, name: &str, id: &Value, arguments: &Value) {
        let chunk = number(arguments, "chunk").map_or(usize::MAX, |n| n as usize);
        let text = match name {
            "text" => arguments["text"].as_str().unwrap_or_default().to_owned(),
            "big" => "x".repeat(number(arguments, "bytes").unwrap_or(1 << 20) as usize),
            "raw" => {
                let text = arguments["text"].as_str().unwrap_or_default();
                self.write(format!("{text}\n").as_bytes(), chunk);
                return self.answer_text(id, "written");
            }
            _ => "a?b".to_owned(),
        };
        let mut message = Map::new();
        message.insert("jsonrpc".into(), "2.0".into());
        if arguments["id_last"] != true {
            message.insert("id".into(), id.clone());
        }
        message.insert("result".into(), content(text));
        message.insert("id".into(), id.clone());
        let mut bytes = Value::Object(message).to_string().into_bytes();
        bytes.push(b'\n');
        if name == "bad-utf8"
            && let Some(at) = bytes.iter().position(|b| *b == b'?')
        {
            bytes[at] = 0xc3;
        }
        self.write(&bytes, chunk);
    }

    fn slow(&self, name: &str, id: &Value, arguments: &Value, meta: &Value) {
        let ms = number(arguments, "ms").unwrap_or(0);
        let method = arguments["method"].as_str().unwrap_or_default();
        let params = arguments["params"].clone();
        match name {
            "sleep" => {
                pause(ms);
                self.answer_text(id, "slept");
            }
            "progress" => {
                for n in 0..number(arguments, "count").unwrap_or(1) {
                    pause(ms);
                    let token = &meta["progressToken"];
                    let params = json!({"progressToken": token, "progress": n + 1});
                    self.notify("notifications/progress", params);
                }
                pause(ms);
                self.answer_text(id, "done");
            }
            "notify" => {
                self.notify(method, params);
                self.answer_text(id, "sent");
            }
            _ => {
                let answer = self.ask(method, params);
                self.answer_text(id, answer.to_string());
            }
        }
    }
}

fn content(text: String) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn environment() -> String {
    let all: Map<String, Value> = std::env::vars().map(|(k, v)| (k, v.into())).collect();
    Value::Object(all).to_string()
}

fn flood(bytes: usize) {
    let line = format!("{}\n", "e".repeat(79));
    let mut stderr = std::io::stderr().lock();
    for _ in 0..bytes.div_ceil(line.len()) {
        let _ = stderr.write_all(line.as_bytes());
    }
}

/// Starts something that outlives this process unless somebody sees to it.
fn spawn(detach: bool) -> u32 {
    if !detach {
        // It holds this process's output open as long as it lives.
        let child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn();
        return child.expect("sleep").id();
    }
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let output = Command::new("sh")
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::null())
        .output()
        .expect("sh");
    let pid = String::from_utf8_lossy(&output.stdout);
    pid.trim().parse().expect("a process id")
}

fn close_output() {
    let null = std::fs::File::options()
        .write(true)
        .open("/dev/null")
        .expect("/dev/null");
    rustix::stdio::dup2_stdout(&null).expect("a descriptor");
}
