//! A misbehaving server on this computer. Its replies are bytes that a test chooses.

#![expect(
    clippy::disallowed_types,
    reason = "the downloader is tested against a server on the loopback"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Number of earlier requests.
    pub before: usize,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the first byte of the requested range.
    pub fn from(&self) -> Option<usize> {
        let range = self.header("range")?;
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    }
}

/// A reply.
#[derive(Debug, Clone)]
pub struct Reply {
    head: String,
    body: Vec<u8>,
    /// Bytes of head and body that are sent, before `then`.
    sent: usize,
    then: Then,
    /// Bytes that are sent at once, with a pause of 5 ms after each.
    slowly: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub enum Then {
    Close,
    Hang,
}

impl Reply {
    /// Makes a reply with these headers only.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Reason\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Self {
            head,
            body: body.to_vec(),
            sent: usize::MAX,
            then: Then::Close,
            slowly: None,
        }
    }

    /// Makes a reply that is not HTTP, or invalid.
    pub fn raw(head: &str) -> Self {
        Self {
            head: head.to_owned(),
            ..Self::status(200)
        }
    }

    pub fn status(status: u16) -> Self {
        Self::new(status, &[("Content-Length", "0")], b"")
    }

    pub fn redirect(to: &str) -> Self {
        Self::new(302, &[("Content-Length", "0"), ("Location", to)], b"")
    }

    /// Makes a correct reply: the requested range, with an entity tag.
    pub fn file(content: &[u8], tag: &str, asked: &Asked) -> Self {
        let tag = format!("\"{tag}\"");
        let is_same = asked.header("if-range").is_none_or(|it| it == tag);
        let from = asked.from().filter(|_| is_same);
        if from.is_some_and(|from| from >= content.len()) {
            let range = format!("bytes */{}", content.len());
            return Self::new(
                416,
                &[("Content-Range", &range), ("Content-Length", "0")],
                b"",
            );
        }
        let (status, body) = match from {
            Some(from) => (206, &content[from..]),
            None => (200, content),
        };
        let length = body.len().to_string();
        let range = format!(
            "bytes {}-{}/{}",
            from.unwrap_or(0),
            content.len() - 1,
            content.len()
        );
        let mut headers = vec![("ETag", tag.as_str()), ("Content-Length", &length)];
        if from.is_some() {
            headers.push(("Content-Range", &range));
        }
        Self::new(status, &headers, body)
    }

    /// Returns the bytes of the head.
    pub fn head_bytes(&self) -> usize {
        self.head.len()
    }

    /// Ends after this number of bytes of the body.
    pub fn cut(self, body_bytes: usize, then: Then) -> Self {
        let sent = self.head.len() + body_bytes;
        self.only(sent, then)
    }

    /// Ends after this number of bytes of head and body.
    pub fn only(mut self, sent: usize, then: Then) -> Self {
        self.sent = sent;
        self.then = then;
        self
    }

    pub fn slowly(mut self, at_once: usize) -> Self {
        self.slowly = Some(at_once);
        self
    }
}

/// An accepted connection, plain or encrypted.
pub trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

pub struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts a server that answers until the test ends.
    pub fn new(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::over(|stream| Some(Box::new(stream)), reply)
    }

    /// Likewise, over connections wrapped by `wrap`.
    pub fn over(
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::listen(0, wrap, reply)
    }

    /// Starts a server at a port that another server had before.
    pub fn at(port: u16, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(port, |stream| Some(Box::new(stream)), reply)
    }

    fn listen(
        port: u16,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (both, all) = (Arc::new((wrap, reply)), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (both, all) = (Arc::clone(&both), Arc::clone(&all));
                thread::spawn(move || {
                    if let Some(stream) = both.0(stream) {
                        serve(stream, &both.1, &all);
                    }
                });
            }
        });
        Self { port, asked }
    }

    /// Returns a port at which nobody listens, below those that the system assigns to other servers meanwhile.
    pub fn free_port() -> u16 {
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        (20_000..30_000).find(is_free).expect("a free port")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Returns an address of the same server under another host name.
    pub fn other_address(&self, path: &str) -> String {
        format!("http://localhost:{}/{path}", self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

/// Forwards a connection to a port of this computer, both ways, as a proxy does.
pub fn tunnel(from: TcpStream, port: u16) {
    let Ok(to) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let ends = (
        from.try_clone().expect("open"),
        to.try_clone().expect("open"),
    );
    let pump = |mut from: TcpStream, mut to: TcpStream| {
        // Either end may close at any byte.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    };
    let back = thread::spawn(move || pump(ends.1, ends.0));
    pump(from, to);
    let _ = back.join();
}

fn serve(
    mut stream: Box<dyn Connection>,
    reply: &dyn Fn(&Asked) -> Reply,
    all: &Mutex<Vec<Asked>>,
) {
    let Some(mut asked) = read_head(&mut stream) else {
        return;
    };
    {
        let mut all = all.lock().expect("not poisoned");
        asked.before = all.len();
        all.push(asked.clone());
    }
    let reply = reply(&asked);
    let mut bytes = reply.head.clone().into_bytes();
    if asked.method != "HEAD" {
        bytes.extend(&reply.body);
    }
    bytes.truncate(reply.sent);
    // The other end may close at any byte, as it does in the tests.
    match reply.slowly {
        Some(at_once) => {
            for part in bytes.chunks(at_once) {
                if stream.write_all(part).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        None => {
            let _ = stream.write_all(&bytes);
        }
    }
    if let Then::Hang = reply.then {
        // Until the other end has closed.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

fn read_head(stream: &mut dyn Connection) -> Option<Asked> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(Asked {
        method,
        path,
        headers,
        before: 0,
    })
}
