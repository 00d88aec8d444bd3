//! Real TLS, with an authority of the test's own.

use crate::target::{Act, Names, Target, all_of, allowed, get, status};
use interlock_courier::{Allowed, Courier, Fault, SendError, Sent, Step, Verdict, classify};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> anyhow::Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    fn file(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let file = folder.join("roots.pem");
        std::fs::write(&file, &self.pem)?;
        Ok(file)
    }

    /// How somebody with such a name speaks TLS.
    fn acceptor(&self, names: &[&str], until_year: i32) -> anyhow::Result<TlsAcceptor> {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        params.not_after = date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(TlsAcceptor::from(Arc::new(builder.with_no_client_auth().with_single_cert(chain, key)?)))
    }
}

fn configuration(port: u16, roots: Option<PathBuf>, public: bool) -> anyhow::Result<Allowed> {
    let mut allowed = allowed(&format!(
        "[effects]\nnetworks = [\"127.0.0.0/8\"]\n\
         [[effects.allow]]\nurl = \"https://127.0.0.1:{port}/*\"\nmethods = [\"GET\"]\n\
         [[effects.allow]]\nurl = \"https://tickets.example:{port}/*\"\nmethods = [\"GET\"]"
    ))?;
    (allowed.roots, allowed.public_roots) = (roots, public);
    Ok(allowed)
}

async fn tried(courier: &Courier, host: &str, port: u16) -> anyhow::Result<Result<u16, String>> {
    let tried = courier.send(&get(&format!("https://{host}:{port}/"))?).await;
    match &tried {
        Ok(answer) => return Ok(Ok(answer.status)),
        Err(SendError::Broken { step, fault: Fault::Tls | Fault::NotTls, sent, .. }) => {
            assert_eq!((step, sent), (&Step::Tls, &Sent::Never), "{tried:?}");
        }
        Err(other) => anyhow::bail!("{other}"),
    }
    assert_eq!(classify(&tried, 0), Verdict::Retry { after: None });
    Ok(Err(tried.err().map(|error| error.to_string().replace(&port.to_string(), "PORT")).unwrap_or_default()))
}

#[tokio::test]
async fn an_authority_is_trusted_if_the_operator_says_so() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (ours, theirs) = (Authority::new("ours")?, Authority::new("theirs")?);
    let acceptor = ours.acceptor(&["tickets.example", "127.0.0.1"], 2100)?;
    let target = Target::with_tls(vec![status(200)], Some(acceptor)).await?;
    let port = target.port;
    let courier = Courier::new(configuration(port, None, true)?)?.with_resolver(Names::new(&[&["127.0.0.1"]])?);
    let unknown =
        "expected a TLS session, got invalid peer certificate: UnknownIssuer from https://tickets.example:PORT";
    assert_eq!(tried(&courier, "tickets.example", port).await?, Err(unknown.to_owned()));
    courier.replace(configuration(port, Some(theirs.file(folder.path())?), true)?)?;
    assert_eq!(tried(&courier, "tickets.example", port).await?, Err(unknown.to_owned()));
    assert_eq!(target.seen(), Vec::<String>::new());
    for public in [true, false] {
        courier.replace(configuration(port, Some(ours.file(folder.path())?), public)?)?;
        for host in ["tickets.example", "127.0.0.1"] {
            assert_eq!(tried(&courier, host, port).await?, Ok(200), "{host} public={public}");
        }
    }
    // Withdrawn again: the session that was just spoken does not go on.
    courier.replace(configuration(port, None, true)?)?;
    assert_eq!(tried(&courier, "tickets.example", port).await?, Err(unknown.to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_certificate_is_for_its_names_and_its_time() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let authority = Authority::new("ours")?;
    for (names, until_year, got) in [
        (&["other.example"][..], 2100, "certificate not valid for name"),
        (&["127.0.0.1"], 2100, "certificate not valid for name"),
        (&["tickets.example"], 2001, "certificate expired"),
    ] {
        let target = Target::with_tls(vec![status(200)], Some(authority.acceptor(names, until_year)?)).await?;
        let configuration = configuration(target.port, Some(authority.file(folder.path())?), false)?;
        let courier = Courier::new(configuration)?.with_resolver(Names::new(&[&["127.0.0.1"]])?);
        let error = tried(&courier, "tickets.example", target.port).await?.expect_err("not trusted");
        assert!(error.starts_with(&format!("expected a TLS session, got invalid peer certificate: {got}")), "{error}");
        assert_eq!(target.seen(), Vec::<String>::new());
    }
    Ok(())
}

#[tokio::test]
async fn a_target_without_tls_is_told() -> anyhow::Result<()> {
    let target = Target::new(vec![vec![Act::Say(b"HTTP/1.1 400 x\r\n\r\n".to_vec())]]).await?;
    let courier = Courier::new(configuration(target.port, None, true)?)?;
    let tried = courier.send(&get(&format!("https://127.0.0.1:{}/", target.port))?).await;
    let Err(SendError::Broken { step: Step::Tls, fault: Fault::NotTls, got, sent: Sent::Never }) = &tried else {
        anyhow::bail!("{tried:?}");
    };
    assert!(got.starts_with("received corrupt message"), "{got}");
    assert_eq!(classify(&tried, 0), Verdict::Retry { after: None });
    Ok(())
}

#[tokio::test]
async fn a_target_that_expects_tls_is_no_http() -> anyhow::Result<()> {
    let acceptor = Authority::new("ours")?.acceptor(&["127.0.0.1"], 2100)?;
    let target = Target::with_tls(vec![status(200)], Some(acceptor)).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let tried = Courier::new(all_of(&origin)?)?.send(&get(&format!("{origin}/"))?).await;
    // The alert that it sends, or the end of the connection, if that is seen first.
    let no_http =
        matches!(&tried, Err(SendError::Broken { step: Step::Head, fault: Fault::NotHttp | Fault::Reset, .. }));
    assert!(no_http, "{tried:?}");
    assert_eq!((classify(&tried, 0), target.seen()), (Verdict::Retry { after: None }, Vec::new()));
    Ok(())
}
