//! What the pure parts cost: reading a message, splicing it, event streams, the table of names, building lists.
//!
//! `cargo bench`, or `cargo bench -- message` for some. The gateway as a whole is measured elsewhere
//! (`docs/performance.md`); these guard the parts that every byte passes.

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use drawbridge::{
    catalog::{Fetched, Listing, Naming, Shape, join},
    config,
    mcp::{Edit, ListKind, Message, ServerId, edit::with_id, list, message::quote, names, sse},
};
use serde_json::{Value, json};
use std::hint::black_box;

/// As the gateway's own default.
const DEPTH: u32 = 128;
/// Sizes of what a call carries, in bytes.
const SIZES: [usize; 3] = [100, 10_000, 1_000_000];

/// A call with about `size` bytes of arguments: one long text, or many small fields.
fn call(size: usize, structured: bool) -> Bytes {
    let arguments = match structured {
        false => json!({ "text": prose(size) }),
        true => {
            let rows = (0..size.div_ceil(60)).map(row);
            json!({ "rows": rows.collect::<Vec<_>>() })
        }
    };
    let call = json!({
        "jsonrpc": "2.0",
        "id": 4711,
        "method": "tools/call",
        "params": {
            "_meta": { "progressToken": "p-4711" },
            "name": "files__write_file",
            "arguments": arguments,
        },
    });
    call.to_string().into()
}

fn row(number: usize) -> Value {
    json!({ "id": number, "name": format!("row {number}"), "ok": true, "at": 1.5, "tags": ["a", "b"] })
}

/// Text with the escapes that code and prose have.
fn prose(size: usize) -> String {
    let line = "The quick brown fox jumps over \"the\" lazy dog.\n";
    line.chars().cycle().take(size).collect()
}

/// Each size of a call, as text and structured.
fn calls() -> impl Iterator<Item = (String, Bytes)> {
    let kinds = [("text", false), ("structured", true)];
    let of_kind = |(name, structured)| {
        SIZES.map(move |size| (format!("{name}/{size}"), call(size, structured)))
    };
    kinds.into_iter().flat_map(of_kind)
}

fn message(c: &mut Criterion) {
    let mut group = c.benchmark_group("message");
    for (id, text) in calls() {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(id), &text, |b, text| {
            b.iter(|| Message::parse(black_box(text.clone()), DEPTH).expect("it is a message"));
        });
    }
    group.finish();
}

/// What a call to a merged endpoint needs: another id, the server's own name, another progress token.
fn splice(c: &mut Criterion) {
    let mut group = c.benchmark_group("splice");
    for (id, text) in calls() {
        let message = Message::parse(text, DEPTH).expect("it is a message");
        group.throughput(Throughput::Bytes(message.bytes().len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(id), &message, |b, message| {
            b.iter(|| renamed(black_box(message)));
        });
    }
    let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": prose(100)}]}});
    let answer = Message::parse(answer.to_string().into(), DEPTH).expect("it is a message");
    group.throughput(Throughput::Bytes(answer.bytes().len() as u64));
    group.bench_function("answer", |b| {
        b.iter(|| with_id(black_box(&answer), b"\"c-1\""));
    });
    group.finish();
}

fn renamed(message: &Message) -> Bytes {
    let own = Bytes::from_static(b"12");
    let inner = message.inner();
    let mut edit = Edit::new();
    edit.replace(message.id_span().expect("a call has an id"), own.clone());
    edit.replace(inner.name.expect("a call has a name"), quote("write_file"));
    edit.replace(inner.progress_token.expect("it has a token"), own);
    edit.apply(message.bytes())
}

fn events(c: &mut Criterion) {
    let mut group = c.benchmark_group("events");
    for (id, text) in calls() {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::new("write", &id), &text, |b, text| {
            b.iter(|| sse::event(Some("3-17"), black_box(text)));
        });
        let stream = sse::event(Some("3-17"), &text).repeat(4);
        group.throughput(Throughput::Bytes(stream.len() as u64));
        // As they come from a socket.
        group.bench_with_input(BenchmarkId::new("read", &id), &stream, |b, stream| {
            b.iter(|| {
                let mut reader = sse::Reader::new(16 << 20);
                let mut count = 0;
                for chunk in black_box(stream).chunks(16 * 1024) {
                    let read = reader.feed(chunk, |event| count += event.data.len());
                    read.expect("the events are small enough");
                }
                count
            });
        });
    }
    group.finish();
}

fn shape() -> Shape {
    Shape {
        server: ServerId::new("files").expect("it is an id"),
        naming: Naming::Prefixed { max: 64 },
        tools: config::Tools::default(),
        prompts: config::Shown::default(),
        resources: config::Shown::default(),
        selection: config::Selection::default(),
    }
}

/// A `tools/list` result with this many tools of about 480 bytes.
fn tools(count: usize) -> Bytes {
    let property =
        json!({"type": "string", "description": "What the parameter means, in a sentence."});
    let tool = |number: usize| {
        json!({
            "name": format!("tool_{number}"),
            "description": "Does something useful with what it is given, and tells what became of it. ".repeat(2),
            "inputSchema": {"type": "object", "properties": {"path": property, "mode": property}, "required": ["path"]},
        })
    };
    json!({ "tools": (0..count).map(tool).collect::<Vec<_>>() })
        .to_string()
        .into()
}

fn fetched(result: &Bytes) -> Fetched {
    let (items, _) = list::items(result, ListKind::Tools, DEPTH).expect("it is a list");
    Fetched {
        items,
        ttl: None,
        public: false,
        strict_params: true,
    }
}

fn lists(c: &mut Criterion) {
    let mut group = c.benchmark_group("lists");
    for count in [10, 200, 2000] {
        let result = tools(count);
        group.throughput(Throughput::Bytes(result.len() as u64));
        group.bench_with_input(BenchmarkId::new("build", count), &result, |b, result| {
            b.iter_batched(
                || fetched(result),
                |fetched| Listing::build(ListKind::Tools, 0, &shape(), fetched),
                BatchSize::LargeInput,
            );
        });
        let body = Listing::build(ListKind::Tools, 0, &shape(), fetched(&result)).body;
        let bodies = [body.clone(), body];
        group.bench_with_input(BenchmarkId::new("join two", count), &bodies, |b, bodies| {
            b.iter(|| join(black_box(bodies).iter()));
        });
    }
    group.finish();
}

fn table(c: &mut Criterion) {
    let mut group = c.benchmark_group("names");
    for count in [10, 200, 2000] {
        let listing = Listing::build(ListKind::Tools, 0, &shape(), fetched(&tools(count)));
        let name = format!("files__tool_{}", count / 2);
        group.bench_with_input(
            BenchmarkId::new("look up", count),
            &listing,
            |b, listing| {
                b.iter(|| listing.find(black_box(&name)).expect("it is listed"));
            },
        );
    }
    let server = ServerId::new("files").expect("it is an id");
    group.bench_function("expose", |b| {
        b.iter(|| names::expose(&server, black_box("read_text_file"), 64));
    });
    group.bench_function("expose, changed", |b| {
        b.iter(|| names::expose(&server, black_box("read text.file"), 64));
    });
    group.finish();
}

criterion_group!(pure, message, splice, events, lists, table);
criterion_main!(pure);
