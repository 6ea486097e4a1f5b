//! Accepting connections, plain or TLS, HTTP/1.1 or HTTP/2, and ending them in order.

use super::prompt::Prompt;
use axum::Router as Routes;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Streams of one HTTP/2 connection at a time.
const HTTP2_STREAMS: u32 = 1024;
/// How long the kernel keeps sending to a client that acknowledges nothing before the connection is dead.
const SILENT_CLIENT: u32 = 60_000;
/// How much of a body hyper may read at once, in bytes.
const READ: usize = 512 << 10;
/// Wait after a failed accept: the usual cause, too many open files, does not pass at once.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Bounds on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest head of a request, in bytes.
    pub headers: usize,
    /// How long a client may take to send it.
    pub request_timeout: Duration,
}

/// One address to serve.
pub struct Listener {
    pub tcp: TcpListener,
    pub tls: Option<Arc<ServerConfig>>,
}

/// Serves until `stop`, then lets connections finish, at most `grace` long.
pub async fn serve(
    listener: Listener,
    routes: Routes,
    limits: Limits,
    stop: CancellationToken,
    grace: Duration,
) {
    let builder = Arc::new(builder(limits));
    let graceful = GracefulShutdown::new();
    let acceptor = listener.tls.map(TlsAcceptor::from);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.tcp.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        prepare(&stream);
        let (builder, routes, watcher) = (builder.clone(), routes.clone(), graceful.watcher());
        let stream = Prompt::new(stream, limits.request_timeout);
        match acceptor.clone() {
            None => {
                tokio::spawn(connection(stream, builder, routes, watcher));
            }
            Some(acceptor) => {
                tokio::spawn(async move {
                    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
                    match handshake.await {
                        Ok(Ok(stream)) => connection(stream, builder, routes, watcher).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
                    }
                });
            }
        }
    }
    drop(listener.tcp);
    if tokio::time::timeout(grace, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some connections did not end within the grace time");
    }
}

fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request_timeout)
        // A larger head is refused by the front, which can say why; large bodies are read in large pieces.
        .max_buf_size(limits.headers.max(READ));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(limits.headers as u32)
        .keep_alive_interval(Duration::from_secs(30))
        .adaptive_window(true);
    builder
}

async fn connection<S>(
    stream: S,
    builder: Arc<auto::Builder<TokioExecutor>>,
    routes: Routes,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(routes);
    let connection = builder
        .serve_connection(TokioIo::new(stream), service)
        .into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Small messages go out at once, and a client that vanished without a word is noticed.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, SILENT_CLIENT);
}
