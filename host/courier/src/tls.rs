//! Who is trusted to be who they say: the public authorities, the operator's, or both.

use crate::allowed::Allowed;
use crate::deadline::Deadline;
use crate::outbound::{Fault, SendError, Sent, Step};
use crate::url::{Destination, Host};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A file of certificates in bytes: every public authority together is a quarter of it.
const ROOTS_BYTES_MAX: u64 = 1 << 20;

/// A file of certificates that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRoots {
    /// The file.
    pub file: PathBuf,
    /// What was in it instead of certificates.
    pub got: String,
}

impl fmt::Display for BadRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected certificates to trust in {}, got {}", self.file.display(), self.got)
    }
}

impl std::error::Error for BadRoots {}

/// How TLS is spoken, by the operator's configuration. Reads the file with the roots.
pub(crate) fn config(allowed: &Allowed) -> Result<Arc<ClientConfig>, BadRoots> {
    let roots = roots(allowed)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| BadRoots { file: PathBuf::new(), got: error.to_string() })?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots(allowed: &Allowed) -> Result<RootCertStore, BadRoots> {
    let mut roots = RootCertStore::empty();
    if allowed.public_roots {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(file) = &allowed.roots {
        add(&mut roots, file).map_err(|got| BadRoots { file: file.clone(), got })?;
    }
    Ok(roots)
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    let mut pem = Vec::new();
    let open = std::fs::File::open(file).map_err(|error| error.to_string())?;
    open.take(ROOTS_BYTES_MAX + 1).read_to_end(&mut pem).map_err(|error| error.to_string())?;
    if pem.len() as u64 > ROOTS_BYTES_MAX {
        return Err("more than 1 MiB".to_owned());
    }
    let before = roots.len();
    for (nth, certificate) in CertificateDer::pem_slice_iter(&pem).enumerate() {
        let wrong = |error: String| format!("certificate {}: {error}", nth + 1);
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.len() == before { Err("no certificate in PEM".to_owned()) } else { Ok(()) }
}

/// The TLS session on a connection.
pub(crate) async fn handshake(
    url: &Destination,
    stream: TcpStream,
    config: &Arc<ClientConfig>,
    deadline: &mut Deadline<'_>,
) -> Result<TlsStream<TcpStream>, SendError> {
    let broken = |fault, got| SendError::Broken { step: Step::Tls, fault, got, sent: Sent::Never };
    let name = match url.host() {
        Host::V4(address) => ServerName::from(IpAddr::V4(*address)),
        Host::V6(address) => ServerName::from(IpAddr::V6(*address)),
        Host::Name(name) => {
            ServerName::try_from(name.clone()).map_err(|error| broken(Fault::Tls, format!("{name}: {error}")))?
        }
    };
    let connector = TlsConnector::from(Arc::clone(config));
    match deadline.within(connector.connect(name, stream)).await {
        None => Err(deadline.error(Step::Tls, Sent::Never)),
        Some(Ok(stream)) => Ok(stream),
        Some(Err(error)) => {
            let fault = match error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>()) {
                Some(rustls::Error::InvalidMessage(_)) => Fault::NotTls,
                Some(_) => Fault::Tls,
                None => Fault::Reset,
            };
            Err(broken(fault, format!("{error} from {}", url.origin())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_authorities_are_trusted_unless_the_operator_says_otherwise() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("ours.pem");
        let ours = rcgen::generate_simple_self_signed(["a.example".to_owned()])?;
        std::fs::write(&file, ours.cert.pem())?;
        let public = webpki_roots::TLS_SERVER_ROOTS.len();
        for (file, public_roots, trusted) in
            [(None, true, public), (Some(&file), true, public + 1), (Some(&file), false, 1), (None, false, 0)]
        {
            let allowed = Allowed { roots: file.cloned(), public_roots, ..Allowed::default() };
            assert_eq!(roots(&allowed)?.len(), trusted, "{file:?} {public_roots}");
        }
        Ok(())
    }
}
