//! HTTP/1.1 and HTTP/2, plain and TLS, and a certificate that is renewed under way.

use crate::support::{
    TestGateway, Wire,
    client::PATIENCE,
    echoing, gateway,
    hb::{Gate, Hb, Reply},
    text,
};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

async fn over(hb: &Hb, more: &str) -> TestGateway {
    gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{more}",
        hb.url()
    ))
    .await
}

type Sender = http2::SendRequest<Full<Bytes>>;

/// A connection that speaks HTTP/2 from its first byte.
async fn http2<S>(stream: S) -> Sender
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

fn request(
    base: &str,
    verb: &str,
    session: Option<&str>,
    more: &[(&str, &str)],
    body: &Value,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(verb)
        .uri(format!("{base}/mcp/one"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    request.body(Full::new(body)).unwrap()
}

async fn json_of(response: http::Response<hyper::body::Incoming>) -> Value {
    let bytes = tokio::time::timeout(PATIENCE, response.into_body().collect())
        .await
        .unwrap()
        .unwrap()
        .to_bytes();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("{bytes:?}"))
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"n": id}}})
}

async fn opened(sender: &mut Sender, base: &str) -> String {
    let response = sender
        .send_request(request(base, "POST", None, &[], &initialize()))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn http2_with_prior_knowledge_serves_everything_on_one_connection() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(text(crate::support::arguments(seen).to_string())))
                .gate_head(&held)
        })
        .start()
        .await;
    let gw = over(&hb, "streams: { keep_alive: 100ms }\n").await;
    let base = format!("http://{}", gw.address);
    let mut sender = http2(TcpStream::connect(gw.address).await.unwrap()).await;
    let session = opened(&mut sender, &base).await;
    let mut stream = sender
        .send_request(request(&base, "GET", Some(&session), &[], &Value::Null))
        .await
        .unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(stream.version(), http::Version::HTTP_2);
    // A hundred calls at a time, beside the stream, answered together.
    let calls: Vec<_> = (0..100)
        .map(|n| sender.send_request(request(&base, "POST", Some(&session), &[], &call(n))))
        .collect();
    let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), async {
        hb.wait_for_nth(100, |s| s.method() == "tools/call").await;
        gate.open();
    });
    for (n, answer) in answers.into_iter().enumerate() {
        let answer = json_of(answer.unwrap()).await;
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(n), &json!(json!({"n": n}).to_string()))
        );
    }
    let mut comments = 0;
    while comments < 2 {
        let frame = tokio::time::timeout(PATIENCE, stream.body_mut().frame())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        comments += usize::from(frame.into_data().unwrap().starts_with(b":"));
    }
    let ended = sender
        .send_request(request(&base, "DELETE", Some(&session), &[], &Value::Null))
        .await
        .unwrap();
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    while let Some(frame) = tokio::time::timeout(PATIENCE, stream.body_mut().frame())
        .await
        .unwrap()
    {
        frame.unwrap();
    }
    let gone = sender
        .send_request(request(&base, "POST", Some(&session), &[], &call(1)))
        .await
        .unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn http2_keeps_the_same_limits_and_checks() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { body: 64KiB, headers: 16KiB }\n").await;
    let base = format!("http://{}", gw.address);
    let mut sender = http2(TcpStream::connect(gw.address).await.unwrap()).await;
    let session = opened(&mut sender, &base).await;
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"x": "x".repeat(1 << 20)}}});
    let response = sender
        .send_request(request(&base, "POST", Some(&session), &[], &large))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let long = "x".repeat(20 << 10);
    let response = sender
        .send_request(request(
            &base,
            "POST",
            Some(&session),
            &[("x-long", &long)],
            &call(1),
        ))
        .await;
    assert!(
        response.is_err()
            || response.is_ok_and(|r| r.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
    );
    let response = sender
        .send_request(request(
            "http://evil.example",
            "POST",
            Some(&session),
            &[],
            &call(1),
        ))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let response = sender
        .send_request(request(
            &base,
            "POST",
            Some(&session),
            &[("origin", "https://evil.example")],
            &call(1),
        ))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(hb.count("tools/call"), 0);
    let response = sender
        .send_request(request(&base, "POST", Some(&session), &[], &call(1)))
        .await
        .unwrap();
    assert!(json_of(response).await["result"].is_object());
}

#[tokio::test]
async fn a_modern_call_given_up_on_http2_is_cancelled_alone() {
    let hb = echoing()
        .on("tools/call", |_| Reply::events().silence())
        .start()
        .await;
    let gw = over(&hb, "streams: { silence: 50ms }\n").await;
    let base = format!("http://{}", gw.address);
    let mut sender = http2(TcpStream::connect(gw.address).await.unwrap()).await;
    let modern = |id: u64| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"n": id}, "_meta": meta}});
        request(
            &base,
            "POST",
            None,
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "echo"),
            ],
            &body,
        )
    };
    let first = sender.send_request(modern(1)).await.unwrap();
    let second = sender.send_request(modern(2)).await.unwrap();
    let given_up = hb
        .wait_for(|s| s.method() == "tools/call" && s.json()["params"]["arguments"]["n"] == 1)
        .await;
    drop(first);
    let told = hb
        .wait_for(|s| s.method() == "notifications/cancelled")
        .await;
    assert_eq!(told.json()["params"]["requestId"], given_up.id());
    assert_eq!(hb.count("notifications/cancelled"), 1);
    drop(second);
    hb.wait_for_nth(2, |s| s.method() == "notifications/cancelled")
        .await;
}

/// A certificate for `localhost` and its files.
struct Made {
    der: CertificateDer<'static>,
    cert: String,
    key: String,
}

fn made() -> Made {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    Made {
        der: made.cert.der().clone(),
        cert: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

struct Files {
    _folder: tempfile::TempDir,
    cert: PathBuf,
    key: PathBuf,
}

impl Files {
    fn of(made: &Made) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        );
        std::fs::write(&cert, &made.cert).unwrap();
        std::fs::write(&key, &made.key).unwrap();
        Self {
            _folder: folder,
            cert,
            key,
        }
    }

    fn yaml(&self) -> String {
        format!("tls: {{ cert: {:?}, key: {:?} }}\n", self.cert, self.key)
    }
}

/// A TLS connection that trusts these certificates.
async fn tls(gw: &TestGateway, trusted: &[&Made], protocols: &[&str]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for made in trusted {
        roots.add(made.der.clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(gw.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .expect("a handshake")
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0]
        .clone()
        .into_owned()
}

#[tokio::test]
async fn tls_serves_both_versions_of_http_by_agreement() {
    let hb = echoing().start().await;
    let own = made();
    let files = Files::of(&own);
    let gw = over(&hb, &files.yaml()).await;
    let base = "https://localhost";
    let stream = tls(&gw, &[&own], &["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut sender = http2(stream).await;
    let session = opened(&mut sender, base).await;
    let response = sender
        .send_request(request(base, "POST", Some(&session), &[], &call(1)))
        .await
        .unwrap();
    assert_eq!(
        json_of(response).await["result"]["content"][0]["text"],
        r#"{"n":1}"#
    );
    for protocols in [&["http/1.1"][..], &[]] {
        let stream = tls(&gw, &[&own], protocols).await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = sender
            .send_request(request(
                "",
                "POST",
                Some(&session),
                &[("host", "localhost")],
                &call(2),
            ))
            .await
            .unwrap();
        assert_eq!(
            json_of(response).await["result"]["content"][0]["text"],
            r#"{"n":2}"#
        );
    }
    // Plain text on this port is no request.
    let mut plain = Wire::to(gw.address).await;
    plain
        .request(
            "POST",
            "/mcp",
            &[("content-type", "application/json")],
            &initialize().to_string(),
        )
        .await;
    plain.end().await;
    assert!(
        !plain.read.starts_with(b"HTTP/"),
        "{:?}",
        String::from_utf8_lossy(&plain.read)
    );
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections_and_old_ones_stay() {
    let hb = echoing().start().await;
    let (old, new) = (made(), made());
    let files = Files::of(&old);
    let gw = over(&hb, &files.yaml()).await;
    let base = "https://localhost";
    let stream = tls(&gw, &[&old, &new], &["h2"]).await;
    assert_eq!(shown(&stream), old.der);
    let mut sender = http2(stream).await;
    let session = opened(&mut sender, base).await;
    // A certificate without its key yet, a key without a certificate, nonsense: the old pair stays.
    std::fs::write(&files.cert, &new.cert).unwrap();
    assert_eq!(shown(&tls(&gw, &[&old, &new], &["h2"]).await), old.der);
    std::fs::write(&files.key, "nonsense").unwrap();
    assert_eq!(shown(&tls(&gw, &[&old, &new], &["h2"]).await), old.der);
    std::fs::write(&files.key, &new.key).unwrap();
    let renewed = async {
        while shown(&tls(&gw, &[&old, &new], &["h2"]).await) != new.der {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, renewed)
        .await
        .expect("the new certificate");
    let response = sender
        .send_request(request(base, "POST", Some(&session), &[], &call(3)))
        .await
        .unwrap();
    assert_eq!(
        json_of(response).await["result"]["content"][0]["text"],
        r#"{"n":3}"#
    );
}

#[tokio::test]
async fn a_gateway_with_a_bad_certificate_does_not_start_and_says_which_file_is_at_fault() {
    let (own, other) = (made(), made());
    for (cert, key, at_fault) in [
        ("nonsense", &*own.key, "cert.pem"),
        (&*own.cert, "nonsense", "key.pem"),
        (&*own.cert, &*other.key, "key.pem"),
    ] {
        let files = Files::of(&own);
        std::fs::write(&files.cert, cert).unwrap();
        std::fs::write(&files.key, key).unwrap();
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: off }}\n{}",
            files.yaml()
        );
        let loaded = drawbridge::config::Config::parse(
            "test.yaml",
            &text,
            Some(drawbridge::config::Format::Yaml),
            &|_| None,
        )
        .unwrap_or_else(|f| panic!("{f}"));
        let built = drawbridge::gateway::Gateway::build(&loaded.config, &Default::default());
        let error = built.err().expect("it does not build").to_string();
        assert!(error.contains(at_fault), "{error}");
    }
}
