//! Connections: TCP, TLS and proxies.
//!
//! A [`Client`] is what all HTTP servers share: the TLS configuration with its
//! sessions, and the proxies of the environment. Each server has a pool of its own,
//! so that one cannot use up another's connections. Nothing is done behind the
//! caller's back: no redirects, no cookies, no decompression.

use super::{address, settings::Settings};
use crate::mcp::Pieces;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::{
            self,
            connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::crypto::aws_lc_rs;
use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};
use tokio::net::TcpStream;
use tower::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Pending<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// A pooled client of one server.
pub(super) type Pooled = legacy::Client<Connector, Full<Pieces>>;

/// What all HTTP servers share. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    plain: Plain,
    given: Option<rustls::ClientConfig>,
    /// Made at the first `https` server: reading the system's roots takes time and memory.
    tls: OnceLock<Result<HttpsConnector<Plain>, String>>,
}

impl Client {
    /// Trusts the roots of the platform and takes proxies from the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`).
    pub fn new() -> Self {
        Self::build(None, Matcher::from_system())
    }

    /// A client with TLS settings of the caller's, without proxies. ALPN is set here.
    pub fn with_tls(config: rustls::ClientConfig) -> Self {
        Self::build(Some(config), Matcher::builder().build())
    }

    /// A client that takes its proxies from `matcher`.
    pub fn with_proxies(matcher: Matcher) -> Self {
        Self::build(None, matcher)
    }

    fn build(given: Option<rustls::ClientConfig>, proxies: Matcher) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // A standing stream is silent for long: only this tells that its other end is gone.
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let plain = Plain {
            tcp,
            proxies: Arc::new(proxies),
        };
        let shared = Arc::new(Shared {
            plain,
            given,
            tls: OnceLock::new(),
        });
        Self { shared }
    }

    /// The pool for one server.
    pub(super) fn pool(&self, settings: &Settings) -> Pooled {
        let connector = Connector {
            shared: self.shared.clone(),
            limit: settings.connect,
        };
        legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(settings.pool.idle)
            .pool_max_idle_per_host(settings.pool.max_idle)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(20))
            .build(connector)
    }

    /// What an `http` request through a proxy must carry for the proxy.
    pub(super) fn proxy_credentials(&self, uri: &Uri) -> Option<HeaderValue> {
        if uri.scheme_str() != Some("http") {
            return None;
        }
        let proxy = self.shared.plain.proxy(uri)?;
        let mut value = proxy.basic_auth()?.clone();
        value.set_sensitive(true);
        Some(value)
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    fn tls(&self) -> Result<HttpsConnector<Plain>, BoxError> {
        let made = self.tls.get_or_init(|| self.make_tls());
        made.clone().map_err(Into::into)
    }

    fn make_tls(&self) -> Result<HttpsConnector<Plain>, String> {
        let builder = match self.given.clone() {
            Some(config) => HttpsConnectorBuilder::new().with_tls_config(config),
            None => HttpsConnectorBuilder::new()
                .with_provider_and_platform_verifier(aws_lc_rs::default_provider())
                .map_err(|e| format!("no TLS: {e}"))?,
        };
        let builder = builder.https_only().enable_all_versions();
        Ok(builder.wrap_connector(self.plain.clone()))
    }
}

/// Opens connections for a pool: TCP, then TLS where the scheme asks for it, all within one limit.
#[derive(Clone)]
pub(super) struct Connector {
    shared: Arc<Shared>,
    limit: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Stream>;
    type Error = BoxError;
    type Future = Pending<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { shared, limit } = self.clone();
        Box::pin(async move {
            let work = async {
                if uri.scheme_str() == Some("https") {
                    return shared.tls()?.call(uri).await;
                }
                let stream = shared.plain.clone().call(uri).await?;
                Ok(MaybeHttpsStream::Http(stream))
            };
            match tokio::time::timeout(limit, work).await {
                Ok(done) => done,
                Err(_) => Err(format!("no connection within {limit:?}").into()),
            }
        })
    }
}

/// TCP, straight or by way of a proxy.
#[derive(Clone)]
struct Plain {
    tcp: HttpConnector,
    proxies: Arc<Matcher>,
}

impl Plain {
    fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        if address::is_loopback(uri) {
            return None;
        }
        self.proxies.intercept(uri)
    }

    async fn connect(mut self, uri: Uri) -> Result<Stream, BoxError> {
        let Some(proxy) = self.proxy(&uri) else {
            return Ok(Stream::new(self.tcp.call(uri).await?, false));
        };
        if proxy.uri().scheme_str() != Some("http") {
            return Err("only proxies with an http:// address are supported".into());
        }
        if uri.scheme_str() == Some("http") {
            let io = self.tcp.call(proxy.uri().clone()).await?;
            return Ok(Stream::new(io, true));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Ok(Stream::new(tunnel.call(uri).await?, false))
    }
}

impl Service<Uri> for Plain {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pending<Stream>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A TCP connection that knows whether it leads to a proxy that wants whole URLs.
pub(super) struct Stream {
    io: TokioIo<TcpStream>,
    forward: bool,
}

impl Stream {
    fn new(io: TokioIo<TcpStream>, forward: bool) -> Self {
        Self { io, forward }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.forward)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}
