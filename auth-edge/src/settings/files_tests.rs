//! The edge opens and checks files named in settings before it starts.

#[path = "../../../session-svc/tests/support/certificates.rs"]
mod certificates;

use std::process::Command;

use chassis::settings::{Reader, Source};

use self::certificates::Certificates;
use super::{SERVICE, read};

const GOOD: [(&str, &str); 5] = [
    ("EDGE_BASE_URL", "https://app.example"),
    ("EDGE_SECRET", "0123456789abcdef0123456789abcdef"),
    ("OIDC_ISSUER_URL", "https://op.example"),
    ("OIDC_CLIENT_ID", "client"),
    ("OIDC_CLIENT_AUTH_METHOD", "tls_client_auth"),
];

/// The messages for the good settings with these changes: mistakes, or the number of warnings.
fn check_settings(settings: &[(&str, String)], changes: &[(&str, &str)]) -> Result<usize, String> {
    let given = settings.iter().map(|(name, value)| (*name, value.as_str()));
    let mut pairs: Vec<(&str, &str)> = GOOD.into_iter().chain(given).collect();
    pairs.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    pairs.extend(changes);
    let source = Source::from_pairs(&SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let settings = read(&mut reader);
    let finished = reader.finish(settings);
    finished
        .map(|(_, warnings)| warnings.len())
        .map_err(|wrong| wrong.to_string())
}

/// Every setting that names a certificate, a key or authorities, with its file.
fn all(made: &Certificates) -> Vec<(&'static str, String)> {
    let names = [
        ("EDGE_TLS_CERT_FILE", "server.pem"),
        ("EDGE_TLS_KEY_FILE", "server.key"),
        ("EDGE_SESSION_SVC_CERT_FILE", "client.pem"),
        ("EDGE_SESSION_SVC_KEY_FILE", "client.key"),
        ("EDGE_SESSION_SVC_CA_FILE", "ca.pem"),
        ("EDGE_UPSTREAM_CA_FILE", "ca.pem"),
        ("OIDC_CLIENT_CERT_FILE", "client.pem"),
        ("OIDC_CLIENT_KEY_FILE", "client.key"),
        ("OIDC_CA_FILE", "ca.pem"),
    ];
    let files = names.map(|(name, file)| (name, made.text(file)));
    let address = ("EDGE_SESSION_SVC_URL", "https://session-svc:50051".to_owned());
    files.into_iter().chain([address]).collect()
}

#[test]
fn a_file_that_is_missing_swapped_or_of_another_pair_is_named_with_its_setting() {
    let made = Certificates::make();
    made.issue("ca", "other", "extendedKeyUsage=clientAuth");
    let right = all(&made);
    assert_eq!(check_settings(&right, &[]), Ok(0));
    for (name, path) in right.iter().filter(|(name, _)| name.ends_with("_FILE")) {
        let (swapped, said) = match path.strip_suffix(".pem") {
            Some(stem) => (format!("{stem}.key"), "no certificate"),
            None => (path.replace(".key", ".pem"), "no private key"),
        };
        let mut wrong = vec![("/nowhere/file".to_owned(), "cannot be read"), (swapped, said)];
        if name.ends_with("KEY_FILE") {
            wrong.push((made.text("other.key"), "does not belong"));
        }
        for (path, said) in wrong {
            let told = check_settings(&right, &[(name, path.as_str())]).unwrap_err();
            let whole = told.contains(name) && told.contains(&path) && told.contains(said);
            assert!(whole, "{name}={path}: {told}");
            assert!(told.starts_with("1 setting is wrong"), "{told}");
        }
    }
}

#[test]
fn the_session_service_s_authority_is_asked_for_with_https() {
    let made = Certificates::make();
    let right = all(&made);
    let told = check_settings(&right, &[("EDGE_SESSION_SVC_CA_FILE", "")]).unwrap_err();
    assert!(
        told.contains("EDGE_SESSION_SVC_CA_FILE") && told.contains("https://session-svc:50051"),
        "{told}"
    );
}

/// Replaces the server's certificate by one that expired years ago; the key matches.
fn expire(made: &Certificates) {
    let authority = "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nrand_serial=yes\nnew_certs_dir=.\ndefault_md=sha256\n\
        policy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n[e]\nbasicConstraints=CA:FALSE\n";
    std::fs::write(made.path("authority"), authority).unwrap();
    std::fs::write(made.path("index"), "").unwrap();
    let openssl = |command: &str| {
        let at = made.path("");
        let ran = Command::new("openssl")
            .args(command.split(' '))
            .current_dir(at)
            .output();
        assert!(ran.unwrap().status.success(), "{command}");
    };
    openssl("req -new -key server.key -subj /CN=expired -out request.pem");
    openssl(
        "ca -batch -config authority -selfsign -keyfile server.key -in request.pem -out server.pem -notext \
         -startdate 20200101000000Z -enddate 20200102000000Z",
    );
}

#[test]
fn a_certificate_that_has_expired_is_a_warning() {
    let made = Certificates::make();
    expire(&made);
    assert_eq!(check_settings(&all(&made), &[]), Ok(1));
}
