//! The certificate that clients see, read again when its files change.

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How often the files are compared with what was read.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// A certificate and key from two PEM files.
pub struct Certificates {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
    read: ArcSwap<(Vec<u8>, Vec<u8>)>,
}

impl Certificates {
    /// Reads both files; the text says which is at fault.
    pub fn read(cert: &Path, key: &Path) -> Result<Arc<Self>, String> {
        let read = contents(cert, key)?;
        let certified = certified(&read, cert, key)?;
        Ok(Arc::new(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            current: ArcSwap::from_pointee(certified),
            read: ArcSwap::from_pointee(read),
        }))
    }

    /// What a TLS acceptor needs: HTTP/2 and HTTP/1.1 by ALPN.
    pub fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Looks at the files for ever. A pair that does not fit is left aside and the old one stays: a renewal writes one file after the other.
    pub async fn watch(self: Arc<Self>) {
        let mut tick = tokio::time::interval(CHECK_EVERY);
        loop {
            tick.tick().await;
            let Ok(read) = contents(&self.cert, &self.key) else {
                continue;
            };
            if *self.read.load_full() == read {
                continue;
            }
            match certified(&read, &self.cert, &self.key) {
                Ok(certified) => {
                    self.current.store(Arc::new(certified));
                    self.read.store(Arc::new(read));
                    tracing::info!("the certificate was read again");
                }
                Err(reason) => {
                    tracing::debug!(reason, "changed certificate files do not fit together yet")
                }
            }
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("cert", &self.cert)
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn contents(cert: &Path, key: &Path) -> Result<(Vec<u8>, Vec<u8>), String> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    Ok((read(cert)?, read(key)?))
}

fn certified(read: &(Vec<u8>, Vec<u8>), cert: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read.0).collect();
    let chain = chain.map_err(|e| format!("{} is no PEM certificate: {e}", cert.display()))?;
    if chain.is_empty() {
        return Err(format!("{} holds no certificate", cert.display()));
    }
    let private = PrivateKeyDer::from_pem_slice(&read.1)
        .map_err(|e| format!("{} holds no private key: {e}", key.display()))?;
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()).map_err(|e| {
        format!(
            "{} and {} do not fit together: {e}",
            cert.display(),
            key.display()
        )
    })
}
