use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;

/// Makes a folder like `/proc`, in which the process 10 has started 11 and 12, and 12 has started 13.
fn proc() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let net = folder.path().join("net");
    fs::create_dir(&net).expect("a folder");
    let table = |name: &str, rows: &str| {
        fs::write(net.join(name), format!("header\n{rows}\n")).expect("a table");
    };
    let row = |inode: u64, addresses: &str, state: &str| {
        format!("0: {addresses} {state} 0:0 00:0 0 1000 0 {inode} 1 x")
    };
    table(
        "tcp",
        &[
            row(100, "0100007F:1F90 00000000:0000", "0A"),
            row(101, "0200000A:C822 0101A8C0:01BB", "01"),
            row(999, "0100007F:0001 00000000:0000", "0A"),
        ]
        .join("\n"),
    );
    table(
        "udp6",
        &row(
            102,
            "00000000000000000000000001000000:0035 00000000000000000000000000000000:0000",
            "07",
        ),
    );
    table(
        "unix",
        "x: 00000003 00000000 00000000 0001 03 200 /run/user/1000/bus",
    );
    table("netlink", "x 0 0 0 0 0 0 2 0 201");
    table("packet", "x 3 3 0003 2 1 0 0 202");
    let process = |pid: u32, parent: u32, command: &str, sockets: &[u64]| {
        let folder = folder.path().join(pid.to_string());
        fs::create_dir_all(folder.join("fd")).expect("a folder");
        let stat = format!("{pid} (a) name) S {parent} 1 1");
        fs::write(folder.join("stat"), stat).expect("a file");
        fs::write(
            folder.join("cmdline"),
            format!("/usr/lib/{command}\0--flag\0"),
        )
        .expect("a file");
        symlink(&net, folder.join("net")).expect("a link");
        symlink("/dev/null", folder.join("fd/0")).expect("a link");
        for (at, inode) in sockets.iter().enumerate() {
            let link = folder.join("fd").join((at + 3).to_string());
            symlink(format!("socket:[{inode}]"), link).expect("a link");
        }
    };
    process(10, 1, "goldcrest", &[200, 201, 300]);
    process(11, 10, "WebKitWebProcess", &[200, 100, 102, 202]);
    process(12, 10, "bwrap", &[]);
    process(13, 12, "goldcrest-fetch", &[101]);
    process(14, 1, "another", &[999]);
    folder
}

#[test]
fn the_sockets_of_all_processes_below_are_counted_by_kind() {
    let folder = proc();
    let found = processes(folder.path(), 10);
    let names: Vec<_> = found.iter().map(|process| process.name.as_str()).collect();
    assert_eq!(
        names,
        ["goldcrest", "WebKitWebProcess", "bwrap", "goldcrest-fetch"]
    );
    let [app, page, _, fetch] = &found[..] else {
        panic!("four");
    };
    assert_eq!(
        (app.network.len(), app.local, app.kernel, app.unconnected),
        (0, 1, 1, 1)
    );
    assert_eq!(
        page.network,
        [
            "TCP, listens on 127.0.0.1:8080",
            "UDP [::1]:53",
            "raw packets"
        ]
        .map(str::to_owned)
    );
    assert_eq!(fetch.network, ["TCP 10.0.0.2:51234 to 192.168.1.1:443"]);
    assert_eq!(
        (app.role, fetch.role),
        (ProcessRole::App, ProcessRole::Download)
    );
    assert_eq!(role("WebKitWebProcess", false), ProcessRole::WebView);
    assert_eq!(role("goldcrest", false), ProcessRole::Other);
    assert!(found.iter().all(|process| process.readable));
}

#[test]
fn a_process_that_cannot_be_looked_at_is_said_to_be_one() {
    let folder = proc();
    fs::remove_dir_all(folder.path().join("11/fd")).expect("it is there");
    let found = processes(folder.path(), 10);
    assert!(!found[1].readable && found[1].network.is_empty());
}

/// A program that listens on a port of this computer until its input ends.
const LISTENER: &str = "use IO::Socket::INET;
my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
$| = 1; print $s->sockport, qq(\\n); <STDIN>;";

struct Listener(Child);

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_child_that_listens_is_seen_and_its_port_is_named() {
    let child = Command::new("perl")
        .args(["-e", LISTENER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(child) = child else {
        return testing::skip("perl, to open a socket, is not there");
    };
    let mut listener = Listener(child);
    let mut port = String::new();
    let output = listener.0.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut port).expect("a port");
    // A socket of this process, to no network.
    let _pair = UnixStream::pair().expect("a pair of sockets");

    let found = processes(Path::new("/proc"), std::process::id());
    let of = |pid: u32| {
        found
            .iter()
            .find(|process| process.pid == pid)
            .expect("it runs")
    };
    let child = of(listener.0.id());
    assert_eq!(child.name, "perl");
    assert_eq!(
        child.network,
        [format!("TCP, listens on 127.0.0.1:{}", port.trim())]
    );
    let own = of(std::process::id());
    assert!(own.network.is_empty() && own.local >= 2, "{own:?}");
}
