//! Encrypted connections: a server is trusted by a certificate of the system's, and by no other.

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::child::{Fetch, content};
use crate::server::{Asked, Connection, Reply, Server};
use crate::{End, check};

fn file(asked: &Asked) -> Reply {
    Reply::file(content(), "a", asked)
}

/// Starts a server of this name, and returns its certificate as PEM.
pub fn encrypted(
    name: &str,
    reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> (Server, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a key for the certificate");
    let config = Arc::new(config);
    let server = Server::over(
        move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).ok()?;
            let stream: Box<dyn Connection> = Box::new(StreamOwned::new(connection, stream));
            Some(stream)
        },
        reply,
    );
    (server, cert.pem())
}

/// Downloads from this server on a system that trusts only this certificate.
fn trusting(server: &Server, certificate: &str) -> Fetch {
    trusting_at(
        &format!("https://localhost:{}/model.gguf", server.port()),
        certificate,
    )
}

/// Likewise, from this address.
pub fn trusting_at(url: &str, certificate: &str) -> Fetch {
    let fetch = Fetch::new(url);
    let trusted = fetch.folder().join("trusted.pem");
    fs::write(&trusted, certificate).expect("written");
    let trusted = trusted.display().to_string();
    fetch.with("SSL_CERT_FILE", &trusted)
}

#[test]
fn a_server_is_trusted_by_the_systems_certificates_alone() {
    let (server, certificate) = encrypted("localhost", file);
    check("encrypted", &trusting(&server, &certificate), End::File);

    let (_, other) = encrypted("localhost", file);
    check(
        "a certificate that nobody trusts",
        &trusting(&server, &other),
        End::Kept("does not prove who it is"),
    );
    assert_eq!(server.asked().len(), 1);

    let (server, certificate) = encrypted("example.com", file);
    check(
        "the certificate of another host",
        &trusting(&server, &certificate),
        End::Kept("does not prove who it is"),
    );
}

#[test]
fn an_encrypted_server_leads_to_no_plain_one() {
    let plain = Server::new(file);
    let to = plain.address("model.gguf");
    let (server, certificate) = encrypted("localhost", move |_| Reply::redirect(&to));
    check(
        "https leads to http on this computer",
        &trusting(&server, &certificate),
        End::Kept("It was not followed"),
    );
    assert!(plain.asked().is_empty());
}

#[test]
fn a_handshake_that_fails_is_not_tried_again() {
    let server = Server::over(
        |mut stream| {
            // The handshake has begun, and gets no answer.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            None
        },
        file,
    );
    let fetch = Fetch::new(&format!("https://localhost:{}/model.gguf", server.port()));
    let ended = check(
        "a server that does not encrypt",
        &fetch,
        End::Kept("encrypted connection to localhost"),
    );
    assert!(ended.waits().is_empty(), "{ended:?}");
}
