//! The connection to a running service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use chassis::settings::Reader;
use clap::{Arg, ArgMatches, Command, ValueHint};
use session_proto::client::{ClientSettings, ClientTls, SessionClient, SessionError};
use session_proto::v1::ErrorReason;

use super::failure::{CommandFailure, Exit};

/// Deadline of a call: one call may end thousands of sessions.
const DEADLINE: Duration = Duration::from_secs(60);

/// The address of the service and how to connect.
#[derive(Clone, Debug)]
pub(super) struct ServiceAddress {
    url: String,
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

/// Adds the flags for the service's address. Each has a variable too, which an operator's pod sets once.
pub(super) fn with_address(command: Command) -> Command {
    let file = |id: &'static str, variable: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .env(variable)
            .hide_env_values(true)
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .help(help)
    };
    command
        .arg(
            Arg::new("service")
                .long("service")
                .env("OPERATOR_SESSION_SVC_URL")
                .hide_env_values(true)
                .value_name("URL")
                .help("Address of the running service, http://HOST:PORT or https://HOST:PORT [default: SESSION_LISTEN on this machine]"),
        )
        .arg(file("ca-file", "OPERATOR_SESSION_SVC_CA_FILE", "PEM certificates of the authorities to trust. Needed for https"))
        .arg(
            file(
                "cert-file",
                "OPERATOR_SESSION_SVC_CERT_FILE",
                "PEM certificate chain of this caller, if the service requires one",
            )
            .requires("key-file"),
        )
        .arg(
            file("key-file", "OPERATOR_SESSION_SVC_KEY_FILE", "PEM private key that belongs to --cert-file")
                .requires("cert-file"),
        )
}

impl ServiceAddress {
    /// Reads the flags. By default, the settings give the address of the service on this machine.
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let value_of = |id: &str| {
            given
                .get_one::<String>(id)
                .filter(|value| !value.is_empty())
                .cloned()
        };
        let path = |id: &str| value_of(id).map(PathBuf::from);
        let url = value_of("service");
        Self {
            url: url.unwrap_or_else(|| of_this_machine(reader)),
            ca: path("ca-file"),
            identity: path("cert-file").zip(path("key-file")),
        }
    }

    /// A client, which connects when first used.
    pub(super) fn client(&self) -> Result<SessionClient, CommandFailure> {
        let mut settings = ClientSettings::new([self.url.as_str()]);
        settings.deadline = DEADLINE;
        settings.tls =
            match &self.ca {
                Some(ca) => Some(ClientTls::from_files(ca.clone(), self.identity.clone()).map_err(
                    |error| CommandFailure::usage(format!("a certificate file cannot be read: {error}")),
                )?),
                None if self.identity.is_some() || self.url.starts_with("https://") => {
                    return Err(CommandFailure::usage(
                        "https:// and --cert-file need --ca-file: the authority to trust",
                    ));
                }
                None => None,
            };
        SessionClient::new(settings).map_err(|error| {
            CommandFailure::usage(format!(
                "--service cannot be used: {}",
                chassis::findings::chain(&error)
            ))
        })
    }

    /// Explains a failed call to an operator.
    pub(super) fn failure(&self, error: &SessionError) -> CommandFailure {
        let (exit, text) = match error.reason {
            ErrorReason::ErrMissingSession => (
                Exit::NotFound,
                "there is no such session: it never was, has ended, or has expired".to_owned(),
            ),
            ErrorReason::ErrInvalidArgument => (Exit::Usage, error.message.clone()),
            ErrorReason::ErrUnknownCaller => (
                Exit::Failed,
                format!(
                    "{} does not know this caller: give --cert-file and --key-file of an identity it knows",
                    self.url
                ),
            ),
            ErrorReason::ErrCallerNotAllowed => (
                Exit::Failed,
                format!(
                    "{}: this caller is not allowed to do that; its policy has to say so ({})",
                    self.url, error.message
                ),
            ),
            ErrorReason::ErrSessionServiceUnavailable => (
                Exit::Failed,
                format!(
                    "no session service answers at {}: check --service, that it runs, and whether it speaks {}",
                    self.url,
                    if self.ca.is_some() {
                        "TLS with a certificate for this name from the authority of --ca-file, and asks for a client certificate (--cert-file)"
                    } else {
                        "TLS (then https:// and --ca-file)"
                    }
                ),
            ),
            ErrorReason::ErrStoreUnavailable => (
                Exit::Failed,
                "the service cannot reach its store; `session-svc check-store` says why".to_owned(),
            ),
            _ => (Exit::Failed, error.message.clone()),
        };
        CommandFailure {
            reason: error.reason.as_str_name().to_owned(),
            text,
            exit,
        }
    }
}

/// The URL of the service on this machine, from its settings.
fn of_this_machine(reader: &mut Reader<'_>) -> String {
    let scheme = match reader.path("SESSION_TLS_CERT_FILE") {
        Some(_) => "https",
        None => "http",
    };
    match reader.socket_addr("SESSION_LISTEN").map(reachable) {
        Some(address) => format!("{scheme}://{address}"),
        None => String::new(),
    }
}

/// The address to call for a listening address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use chassis::settings::Source;

    use super::*;
    use crate::settings::SERVICE;

    #[test]
    fn the_service_of_this_machine_is_where_its_settings_say() {
        for (pairs, expected) in [
            (&[][..], "http://127.0.0.1:50051"),
            (&[("SESSION_LISTEN", "0.0.0.0:7000")], "http://127.0.0.1:7000"),
            (&[("SESSION_LISTEN", "[::]:7000")], "http://[::1]:7000"),
            (
                &[
                    ("SESSION_LISTEN", "10.0.0.7:7000"),
                    ("SESSION_TLS_CERT_FILE", "/tls.crt"),
                ],
                "https://10.0.0.7:7000",
            ),
        ] {
            let source = Source::from_pairs(&SERVICE, pairs);
            assert_eq!(of_this_machine(&mut Reader::new(&source)), expected);
        }
    }
}
