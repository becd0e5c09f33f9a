//! Authorities, client certificates and secrets from files, and file changes.

use std::path::Path;
use std::time::Duration;

use oidc::{GrantError, Outage};
use provider_settings::follow;
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};

use crate::support::{Certificates, NOW, TlsProvider, party};

const DEADLINE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn only_the_authority_that_is_named_is_believed() {
    let (ours, others) = (Certificates::make(), Certificates::make());
    let provider = TlsProvider::start(&ours, None).await;
    let settings = |ca: Option<String>| {
        let ca = ca.unwrap_or_default();
        party(&[
            ("OIDC_ISSUER_URL", &provider.issuer),
            ("OIDC_CLIENT_ID", CLIENT_ID),
            ("OIDC_CLIENT_SECRET", CLIENT_SECRET),
            ("OIDC_CA_FILE", &ca),
        ])
    };
    let (trusting, _) = settings(Some(ours.text("ca.pem"))).unwrap();
    assert_eq!(trusting.metadata().await.unwrap().issuer, provider.issuer);
    for stranger in [None, Some(others.text("ca.pem"))] {
        let (doubting, _) = settings(stranger).unwrap();
        let error = doubting.metadata().await.unwrap_err();
        assert_eq!(error.outage(), Outage::Unreachable);
    }
    let nonsense = settings(Some(ours.text("ca.key"))).map(|_| ()).unwrap_err();
    assert!(nonsense.contains("OIDC_CA_FILE"), "{nonsense}");
}

// conformance: B-033
#[tokio::test]
async fn a_client_certificate_proves_the_client_at_the_address_made_for_it() {
    let certificates = Certificates::make();
    let provider = TlsProvider::start(&certificates, Some(certificates.path("ca.pem"))).await;
    let ca = certificates.text("ca.pem");
    let common = [
        ("OIDC_ISSUER_URL", provider.issuer.as_str()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CA_FILE", ca.as_str()),
    ];
    let (certificate, key) = (certificates.text("client.pem"), certificates.text("client.key"));
    let with_certificate = [
        ("OIDC_CLIENT_AUTH_METHOD", "tls_client_auth"),
        ("OIDC_CLIENT_CERT_FILE", certificate.as_str()),
        ("OIDC_CLIENT_KEY_FILE", key.as_str()),
    ];
    let (known, _) = party(&[&common[..], &with_certificate[..]].concat()).unwrap();
    known
        .exchange_code("code", "verifier", "https://app.example/cb", NOW)
        .await
        .unwrap();
    let (form, has_header) = provider.forms.borrow().last().cloned().unwrap();
    assert!(
        form.starts_with("mtls ") && form.contains(&format!("client_id={CLIENT_ID}")),
        "{form}"
    );
    assert!(
        !has_header && !form.contains("secret") && !form.contains("assertion"),
        "{form}"
    );

    let (stranger, _) = party(&[&common[..], &[("OIDC_CLIENT_AUTH_METHOD", "none")]].concat()).unwrap();
    assert_eq!(
        stranger.metadata().await.unwrap_err().outage(),
        Outage::Unreachable
    );
    let incomplete = party(&[&common[..], &with_certificate[..2]].concat())
        .map(|_| ())
        .unwrap_err();
    assert!(incomplete.contains("OIDC_CLIENT_KEY_FILE"), "{incomplete}");
}

// conformance: B-033
#[tokio::test]
async fn a_secret_whose_file_changes_is_used_without_a_restart_and_an_empty_one_is_not() {
    let provider = ScriptedProvider::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    write(&file, "not the right secret yet");
    let (party, files) = party(&[
        ("OIDC_ISSUER_URL", provider.issuer()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET_FILE", file.to_str().unwrap()),
    ])
    .unwrap();
    follow(&party, &files);
    let refused = async || match party.refresh("unknown", NOW).await {
        Err(oidc::GrantError::Refused(refusal)) => refusal.code().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused().await, "invalid_client");
    write(&file, "");
    write(&file, CLIENT_SECRET);
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while refused().await == "invalid_client" {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the changed secret is not used"
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(refused().await, "invalid_grant", "the client is known now");
    assert!(provider.calls(Endpoint::Token) >= 3);
    let wrong = party
        .exchange_code("unknown", "verifier", "https://app.example/cb", NOW)
        .await;
    assert!(matches!(wrong, Err(GrantError::Refused(_))));
}

#[tokio::test]
async fn a_secret_that_changed_while_the_settings_were_read_is_used() {
    let provider = ScriptedProvider::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    write(&file, "not the right secret yet");
    let (party, files) = party(&[
        ("OIDC_ISSUER_URL", provider.issuer()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET_FILE", file.to_str().unwrap()),
    ])
    .unwrap();
    write(&file, CLIENT_SECRET);
    follow(&party, &files);
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !matches!(&party.refresh("unknown", NOW).await,
        Err(oidc::GrantError::Refused(refusal)) if refusal.code() == "invalid_grant")
    {
        assert!(tokio::time::Instant::now() < deadline, "the change was missed");
        tokio::task::yield_now().await;
    }
}

fn write(path: &Path, text: &str) {
    // Renamed into place, as Kubernetes updates mounted secrets.
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}
