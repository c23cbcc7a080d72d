//! The kernel's tables of sockets.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Tables of sockets with addresses, and the names of their protocols.
const WITH_ADDRESSES: [(&str, &str); 10] = [
    ("tcp", "TCP"),
    ("tcp6", "TCP"),
    ("udp", "UDP"),
    ("udp6", "UDP"),
    ("udplite", "UDP-Lite"),
    ("udplite6", "UDP-Lite"),
    ("icmp", "ICMP"),
    ("icmp6", "ICMP"),
    ("raw", "raw IP"),
    ("raw6", "raw IP"),
];
/// State of a TCP socket that waits for connections.
const LISTENS: &str = "0A";

/// Peer of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// A network, in words.
    Network(String),
    /// A program on this computer.
    Local,
    /// The kernel.
    Kernel,
}

/// All sockets of a network namespace by inode.
pub struct Sockets(HashMap<u64, Socket>);

impl Sockets {
    /// Reads the tables in a folder. One that this kernel lacks is empty.
    pub fn read(folder: &Path) -> Sockets {
        let mut sockets = HashMap::new();
        let rows = |table: &str| {
            let text = fs::read_to_string(folder.join(table)).unwrap_or_default();
            let rows = text.lines().skip(1).map(|row| {
                let fields = row.split_whitespace();
                fields.map(str::to_owned).collect::<Vec<_>>()
            });
            rows.collect::<Vec<_>>()
        };
        let mut add = |inode: Option<&String>, socket: Socket| {
            if let Some(inode) = inode.and_then(|inode| inode.parse().ok()) {
                sockets.insert(inode, socket);
            }
        };
        for (table, protocol) in WITH_ADDRESSES {
            for fields in rows(table) {
                let words = words(protocol, &fields);
                add(fields.get(9), Socket::Network(words));
            }
        }
        for fields in rows("packet") {
            add(fields.last(), Socket::Network("raw packets".to_owned()));
        }
        for fields in rows("unix") {
            add(fields.get(6), Socket::Local);
        }
        for fields in rows("netlink") {
            add(fields.last(), Socket::Kernel);
        }
        Sockets(sockets)
    }

    /// Returns the socket with this inode, if it is in a table.
    pub fn of(&self, inode: u64) -> Option<&Socket> {
        self.0.get(&inode)
    }
}

fn words(protocol: &str, fields: &[String]) -> String {
    let address = |at: usize| fields.get(at).and_then(|text| address(text));
    let own = address(1).unwrap_or_else(|| "an unknown address".to_owned());
    let listens = protocol == "TCP" && fields.get(3).is_some_and(|state| state == LISTENS);
    match address(2).filter(|other| !other.ends_with(":0")) {
        _ if listens => format!("{protocol}, listens on {own}"),
        Some(other) => format!("{protocol} {own} to {other}"),
        None => format!("{protocol} {own}"),
    }
}

/// Parses an address: `0100007F:1F90` is `127.0.0.1:8080`, words of 32 bits in network order, printed as numbers.
fn address(text: &str) -> Option<String> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..host.len()).step_by(8) {
        let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let host = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(match host {
        IpAddr::V4(host) => format!("{host}:{port}"),
        IpAddr::V6(host) => format!("[{host}]:{port}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_read_as_the_kernel_prints_them() {
        let read = |text: &str| address(text).unwrap_or_default();
        assert_eq!(read("0100007F:1F90"), "127.0.0.1:8080");
        assert_eq!(read("00000000000000000000000001000000:0050"), "[::1]:80");
        for wrong in [
            "",
            "7F:1",
            "0100007F",
            "0100007F:x",
            "0100007G:1",
            "0100007F0:1",
            "é100007F:1",
        ] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
