//! `goldcrest-serve`: the local API. The only program of Goldcrest that listens on a socket.
//!
//! It holds no model: it reads requests of clients, in OpenAI's form, and passes them on to the app by its pipes (see
//! [`api`]). It listens on this computer's own addresses alone, and once it does, the kernel lets it open nothing more.

#![expect(
    clippy::disallowed_types,
    reason = "it listens for programs on this computer"
)]

mod access;
mod chat;
mod completions;
mod connections;
mod error;
mod fields;
mod guard;
mod link;
mod logprobs;
mod messages;
mod metrics;
mod queue;
mod reply;
mod requests;
mod responses;
mod routes;
mod sampling;
mod state;
mod streaming;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use api::{ApiConfig, FromServer};

use crate::access::Access;
use crate::link::AppLink;

/// Attempts to listen at a port in use, and the pause between them.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// Free ports that are tried, since another program may listen on one by IPv6.
const FREE_PORTS: u32 = 10;
/// Bytes of the first line, at most.
const LONGEST_CONFIG: u64 = 1 << 20;

fn main() -> ExitCode {
    let mut stdin = BufReader::new(io::stdin());
    match begin(&mut stdin) {
        Ok((config, listeners)) => run(config, listeners, stdin),
        Err(message) => {
            say(&FromServer::Failed { message });
            ExitCode::FAILURE
        }
    }
}

fn begin(stdin: &mut impl BufRead) -> Result<(ApiConfig, Vec<TcpListener>), String> {
    let mut line = String::new();
    let read = stdin.take(LONGEST_CONFIG).read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    let config: ApiConfig = serde_json::from_str(&line).map_err(|_| {
        "goldcrest-serve is started by Goldcrest: use `goldcrest serve`.".to_owned()
    })?;
    let listeners = listen(config.port, bind)?;
    Ok((config, listeners))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Listens on this computer's own addresses, at the same port, by `bind`. A computer may have no IPv6.
fn listen(
    port: u16,
    bind: impl Fn(SocketAddr) -> io::Result<TcpListener>,
) -> Result<Vec<TcpListener>, String> {
    let mut ports = if port == 0 { FREE_PORTS } else { 1 };
    loop {
        let first = listen_first(port, &bind).map_err(|error| cannot_listen(port, &error))?;
        let address = first.local_addr();
        let port = address.map_err(|error| cannot_listen(port, &error))?.port();
        ports -= 1;
        match bind((Ipv6Addr::LOCALHOST, port).into()) {
            Ok(second) => return Ok(vec![first, second]),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Ok(vec![first]),
            Err(error) if ports == 0 => return Err(cannot_listen(port, &error)),
            Err(_) => {}
        }
    }
}

/// Listens by IPv4. The program before, which was just switched off, may still have the port.
fn listen_first(
    port: u16,
    bind: impl Fn(SocketAddr) -> io::Result<TcpListener>,
) -> io::Result<TcpListener> {
    let mut first = bind((Ipv4Addr::LOCALHOST, port).into());
    for _ in 0..ATTEMPTS {
        if !matches!(&first, Err(error) if error.kind() == io::ErrorKind::AddrInUse) {
            break;
        }
        thread::sleep(PAUSE);
        first = bind((Ipv4Addr::LOCALHOST, port).into());
    }
    first
}

/// Returns the sentence for the user about a port.
fn cannot_listen(port: u16, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("Port {port} is used by another program. Choose another port.")
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "This system does not let Goldcrest listen on port {port}. Choose a port above 1023."
            )
        }
        _ => format!("Port {port} cannot be listened on: {error}."),
    }
}

fn run(
    config: ApiConfig,
    listeners: Vec<TcpListener>,
    stdin: impl BufRead + Send + 'static,
) -> ExitCode {
    let port = listeners.first().and_then(|it| it.local_addr().ok());
    let port = port.map_or(config.port, |address| address.port());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        let message = "The local API could not start.".to_owned();
        say(&FromServer::Failed { message });
        return ExitCode::FAILURE;
    };
    // The runtime has opened what it needs. A kernel without seccomp is no reason not to serve.
    #[cfg(target_os = "linux")]
    let _ = system::confine::confine(system::confine::LISTENING);
    runtime.block_on(async {
        let access = Access::new(config);
        let changed = access.clone();
        let link = AppLink::new(stdin, move |config| changed.replace(config));
        link.send(&FromServer::Listening { port });
        connections::serve(listeners, routes::of(link, access)).await;
    });
    ExitCode::SUCCESS
}

/// Writes a line before there is a [`AppLink`].
fn say(line: &FromServer) {
    let Ok(line) = serde_json::to_string(line) else {
        return;
    };
    // An error means that the app has ended.
    let _ = writeln!(io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn any_port_is_one_that_no_other_program_has_by_ipv6() {
        let asked = Cell::new(0);
        let used = |ports: u32| {
            asked.set(0);
            let asked = &asked;
            move |address: SocketAddr| {
                if address.is_ipv4() {
                    return bind(address);
                }
                asked.set(asked.get() + 1);
                let is_used = asked.get() <= ports;
                Err(io::Error::from(if is_used {
                    io::ErrorKind::AddrInUse
                } else {
                    io::ErrorKind::AddrNotAvailable
                }))
            }
        };
        let listeners = listen(0, used(3)).expect("a port");
        assert_eq!((listeners.len(), asked.get()), (1, 4));
        let error = listen(0, used(u32::MAX)).expect_err("all are used");
        assert!(error.contains("is used by another program"), "{error}");
        assert_eq!(asked.get(), FREE_PORTS);
        // A port that was chosen is not replaced.
        let port = listeners.first().and_then(|it| it.local_addr().ok());
        let port = port.expect("an address").port();
        drop(listeners);
        let error = listen(port, used(1)).expect_err("it is used");
        assert!(error.contains(&port.to_string()), "{error}");
    }
}
