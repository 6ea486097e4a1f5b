//! Running the binary, and speaking to a gateway that it started. Everything ends by itself.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

pub const DRAWBRIDGE: &str = env!("CARGO_BIN_EXE_drawbridge");

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary in `folder`, with nothing of this process's environment that it would heed.
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(DRAWBRIDGE);
    command
        .args(args)
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .env_remove("DRAWBRIDGE_TOKEN")
        .env_remove("DRAWBRIDGE_ADMIN_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a command said, and how it ended.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs the binary to its end in a folder that is empty but for `files`.
pub fn run_with(files: &[(&str, &str)], args: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    finish(command(folder.path(), args).spawn().unwrap())
}

pub fn run(args: &[&str]) -> Said {
    run_with(&[], args)
}

fn finish(mut child: Child) -> Said {
    let out = collect(child.stdout.take().unwrap());
    let err = collect(child.stderr.take().unwrap());
    let status = wait(&mut child);
    Said {
        code: status.code().unwrap_or(-1),
        out: out.recv_timeout(PATIENCE).unwrap(),
        err: err.recv_timeout(PATIENCE).unwrap(),
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (done, text) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = done.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

/// Waits for the end of a process, or kills it and fails.
#[expect(
    clippy::disallowed_methods,
    reason = "the thread waits for nothing else"
)]
pub fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("the process did not end");
}

/// A gateway that listens on free ports.
pub struct Started {
    pub child: Child,
    /// All of the text on standard output.
    pub banner: String,
    /// `http://127.0.0.1:PORT`.
    pub base: String,
    /// The same of the admin listener.
    pub admin: String,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a gateway with `args` and free ports, and waits until it says where it is.
pub fn start(mut command: Command) -> Started {
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    start_as_it_is(command)
}

/// [`start`] of a command that has its ports already.
pub fn start_as_it_is(mut command: Command) -> Started {
    let mut child = command.spawn().unwrap();
    let mut banner = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    // The client's snippet is the last of it.
    while !banner.ends_with("\n}\n") {
        if lines.read_line(&mut banner).unwrap() == 0 {
            let _ = child.kill();
            let mut err = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                let _ = stderr.read_to_string(&mut err);
            }
            panic!("the gateway did not start: {banner}{err}");
        }
    }
    let address = |before: &str, after: &str| {
        let (_, rest) = banner.split_once(before).expect("an address");
        let (address, _) = rest.split_once(after).expect("its end");
        format!("http://{address}")
    };
    Started {
        base: address("  http://", "/mcp"),
        admin: address("Metrics", "/metrics")
            .replacen("http://", "", 1)
            .trim()
            .to_owned(),
        banner,
        child,
    }
}

impl Started {
    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Opens a session and calls; the answer's body.
    pub fn rpc(&self, headers: &[(&str, &str)], body: &str) -> Response {
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        http("POST", &format!("{}/mcp", self.base), &all, body)
    }

    pub fn initialize(&self, headers: &[(&str, &str)]) -> Response {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
        self.rpc(headers, body)
    }
}

/// An HTTP answer.
pub struct Response {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

pub fn get(url: &str) -> Response {
    http("GET", url, &[], "")
}

/// One request on a connection of its own.
pub fn http(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    request.push_str(body);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
