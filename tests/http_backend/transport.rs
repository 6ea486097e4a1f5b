//! TLS, HTTP/2 and proxies.

use super::{
    hb::{Hb, Reply},
    *,
};
use drawbridge::backend::{Ran, http::Address};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, Version, body::Incoming, service::service_fn};
use hyper_util::{
    client::proxy::matcher::Matcher,
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, rustls};

/// A TLS server on loopback that speaks HTTP/2, and a client configuration that trusts it.
async fn tls_server(connections: Arc<AtomicUsize>) -> (u16, rustls::ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let io = TokioIo::new(stream);
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(io, service_fn(answer)).await;
            });
        }
    });
    (port, client)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!(request.version(), Version::HTTP_2);
    assert!(request.headers().get("host").is_none());
    let body = request.into_body().collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match body["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
        Some("tools/call") => json!({"ok": true}),
        _ => {
            return Ok(Response::builder()
                .status(405)
                .body(Full::default())
                .unwrap());
        }
    };
    let text = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
    Ok(Response::builder()
        .header("content-type", "application/json")
        .body(Full::new(text.into()))
        .unwrap())
}

#[tokio::test]
async fn http_2_is_used_where_it_is_offered_and_one_connection_carries_all() {
    let connections = Arc::new(AtomicUsize::new(0));
    let (port, tls) = tls_server(connections.clone()).await;
    let url = format!("https://localhost:{port}/mcp");
    let settings = Settings::at(Address::new(url.parse().unwrap()).unwrap());
    let origin = origin_with(settings, &Client::with_tls(tls));
    let ear = Arc::new(Ear::default());
    let link = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    let calls = (0..50).map(|_| call(&link, "a"));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap()["result"]["ok"], true);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent() {
    let (port, _) = tls_server(Arc::default()).await;
    let url = format!("https://localhost:{port}/mcp");
    let settings = Settings::at(Address::new(url.parse().unwrap()).unwrap());
    let (_, other) = tls_server(Arc::default()).await;
    let origin = origin_with(settings, &Client::with_tls(other));
    let ear = Arc::new(Ear::default());
    let fault = origin.open(opening(Era::Legacy, &ear)).await.err().unwrap();
    assert!(
        matches!(fault, Fault::Unreachable { ran: Ran::No, .. }),
        "{fault:?}"
    );
}

fn through(proxy: &Hb, url: &str) -> Origin {
    let address = format!("http://user:secret@127.0.0.1:{}", proxy.port);
    let matcher = Matcher::builder().all(address).no("direct.invalid").build();
    let mut settings = Settings::at(Address::new(url.parse().unwrap()).unwrap());
    settings.connect = Duration::from_secs(2);
    origin_with(settings, &Client::with_proxies(matcher))
}

#[tokio::test]
async fn a_proxy_is_asked_for_whole_urls_and_for_tunnels() {
    let proxy = Hb::legacy()
        .on("CONNECT", |_| Reply::status(403))
        .start()
        .await;
    let ear = Arc::new(Ear::default());
    let origin = through(&proxy, "http://tickets.invalid/mcp");
    let link = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    call(&link, "a").await.unwrap();
    let seen = proxy.wait_for(|s| s.method() == "tools/call").await;
    assert_eq!(seen.path, "http://tickets.invalid/mcp");
    assert_eq!(seen.header("host"), Some("tickets.invalid"));
    let credentials = seen.header("proxy-authorization").unwrap();
    assert!(credentials.starts_with("Basic "));
    let origin = through(&proxy, "https://tickets.invalid/mcp");
    let fault = origin.open(opening(Era::Legacy, &ear)).await.err().unwrap();
    assert!(
        matches!(fault, Fault::Unreachable { ran: Ran::No, .. }),
        "{fault:?}"
    );
    let seen = proxy.wait_for(|s| s.verb == "CONNECT").await;
    assert_eq!(seen.path, "tickets.invalid:443");
    assert!(seen.header("proxy-authorization").is_some());
}

#[tokio::test]
async fn no_proxy_is_asked_for_this_machine_or_for_what_is_exempt() {
    let proxy = Hb::legacy().start().await;
    let hb = Hb::legacy().start().await;
    let ear = Arc::new(Ear::default());
    for url in [hb.url(), hb.url().replace("127.0.0.1", "localhost")] {
        let link = through(&proxy, &url).open(opening(Era::Legacy, &ear)).await;
        call(&link.unwrap(), "a").await.unwrap();
    }
    let origin = through(&proxy, "http://direct.invalid/mcp");
    assert!(origin.open(opening(Era::Legacy, &ear)).await.is_err());
    assert!(proxy.seen().is_empty());
}
