//! Connections, each with limits: on their number, the time of a head, and the time that a client takes to read.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

/// Connections at once.
const MOST: usize = 256;
/// Time for a request's head, and for which an unused connection stays open.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Time in which a client has to read what is ready for it.
const READ_TIME: Duration = Duration::from_secs(20);
/// Headers of a request, and bytes of its head.
const MOST_HEADERS: usize = 100;
const LONGEST_HEAD: usize = 64 << 10;
/// Answer to one connection too many.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 126\r\n\r\n{\"error\":{\"message\":\"There are too many connections. Try again in a moment.\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n";

/// Serves the clients of these listeners, without an end.
pub async fn serve(listeners: Vec<TcpListener>, routes: Router) {
    let places = Arc::new(Semaphore::new(MOST));
    let accepting = listeners.into_iter().map(|listener| {
        let (places, routes) = (Arc::clone(&places), routes.clone());
        tokio::spawn(accept(listener, places, routes))
    });
    for accepts in accepting.collect::<Vec<_>>() {
        // It ends only if the system has no listener for it.
        let _ = accepts.await;
    }
}

async fn accept(listener: TcpListener, places: Arc<Semaphore>, routes: Router) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Of files, for example, there may be too many at the moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tokio::spawn(async move {
                // The client may be gone.
                let _ = tokio::time::timeout(READ_TIME, stream.write_all(BUSY)).await;
            });
            continue;
        };
        let routes = routes.clone();
        tokio::spawn(async move {
            connection(stream, routes).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, routes: Router) {
    // Tokens are small, and each is sent at once.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(READ_TIME));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(
            TokioIo::new(Box::pin(stream)),
            TowerToHyperService::new(routes),
        );
    // An error is a client that is gone, or that does not speak HTTP; hyper has answered the latter.
    let _ = connection.await;
}
