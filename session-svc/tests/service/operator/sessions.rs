//! `sessions list` and `end`.

use session_proto::client::{ClientSettings, ClientTls};

use super::support::{ISSUER, NEW_KEY, Service, ToolOutput, file_in, on_terminal, program};
use crate::certificates::Certificates;

const UNKNOWN: &str = "00000000000000000000000000000000";

#[tokio::test]
async fn sessions_are_listed_for_people_and_programs() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start(&file_in(directory.path()), NEW_KEY).await;
    let (secret, first) = service.create("ada", "sid-1", "").await;
    let (_, second) = service.create("ada", "sid-2", "").await;
    service.create("bob", "sid-3", "").await;

    let reported = service.tool(&["sessions", "list", "--subject", "ada"]);
    assert_eq!((reported.code, reported.err.as_str()), (0, ""));
    let lines: Vec<&str> = reported.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", reported.out);
    let titles: Vec<&str> = lines[0].split("  ").filter(|title| !title.is_empty()).collect();
    assert_eq!(
        titles.iter().map(|title| title.trim()).collect::<Vec<_>>(),
        ["HANDLE", "STATE", "CREATED", "LAST SEEN", "EXPIRES", "BROWSER"]
    );
    assert!(lines[1..].iter().any(|line| line.starts_with(&first)));
    assert!(lines[1].contains("active") && lines[1].contains("203.0.113.7 Mozilla/5.0"));

    let listed = service
        .tool(&["sessions", "list", "--subject", "ada", "--json"])
        .json();
    assert_eq!(listed["complete"], true);
    let sessions = listed["sessions"].as_array().unwrap();
    let mut handles: Vec<&str> = sessions
        .iter()
        .map(|session| session["handle"].as_str().unwrap())
        .collect();
    handles.sort_unstable();
    let mut expected = [first.as_str(), second.as_str()];
    expected.sort_unstable();
    assert_eq!(handles, expected);
    for session in sessions {
        assert_eq!(session["state"], "active");
        assert_eq!(session["issuer"], ISSUER);
        let created = session["created_at"].as_str().unwrap();
        assert!(created.starts_with("20") && created.ends_with('Z') && created.contains('T'));
        assert!(session.get("user").is_none(), "a list tells no claims");
    }
    let cut = service.tool(&["sessions", "list", "--subject", "ada", "--limit", "1", "--json"]);
    assert_eq!(cut.json()["complete"], false);
    assert_eq!(cut.json()["sessions"].as_array().unwrap().len(), 1);
    assert!(!reported.out.contains(&secret));
    let none = service.tool(&["sessions", "list", "--subject", "ada", "--issuer", "http://other"]);
    assert_eq!((none.code, none.out.as_str()), (0, "no sessions\n"));
}

#[tokio::test]
async fn a_session_is_ended_by_its_handle_once() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start(&file_in(directory.path()), NEW_KEY).await;
    let (_, handle) = service.create("ada", "", "").await;
    let reported = service.tool(&["sessions", "end", "--handle", &handle, "--cause", "other_device"]);
    assert_eq!((reported.code, reported.out.as_str()), (0, "ended 1 session\n"));
    assert!(service.listed("ada").await.is_empty());
    let again = service.tool(&["sessions", "end", "--handle", &handle, "--json"]);
    assert_eq!((again.code, &again.json()["ended_count"]), (3, &0.into()));
}

#[tokio::test]
async fn ending_several_sessions_has_to_be_meant() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start(&file_in(directory.path()), NEW_KEY).await;
    let (_, kept) = service.create("ada", "sid-1", "").await;
    for sid in ["sid-2", "sid-2", "sid-3"] {
        service.create("ada", sid, "").await;
    }
    let of_ada = ["sessions", "end", "--subject", "ada"];
    let reported = service.tool(&of_ada);
    assert_eq!((reported.code, reported.out.as_str()), (2, ""));
    assert!(
        reported.err.contains("all sessions of ada") && reported.err.contains("--yes"),
        "{}",
        reported.err
    );
    assert_eq!(service.listed("ada").await.len(), 4);

    let url = service.url.as_str();
    let typed = [&of_ada[..], &["--service", url]].concat();
    let (code, shown) = on_terminal(&typed, "n\n");
    assert_eq!(code, 1, "{shown}");
    assert!(
        shown.contains("End all sessions of ada at") && shown.contains("no session was ended"),
        "{shown}"
    );
    assert_eq!(service.listed("ada").await.len(), 4);

    let of_sid = ["sessions", "end", "--subject", "ada", "--provider-sid", "sid-3"];
    let reported = service.tool(&[&of_sid[..], &["--yes"]].concat());
    assert_eq!((reported.code, reported.out.as_str()), (0, "ended 1 session\n"));
    let reported = service.tool(&["sessions", "end", "--provider-sid", "sid-2", "--yes", "--json"]);
    assert_eq!((reported.code, &reported.json()["ended_count"]), (0, &2.into()));

    service.create("ada", "sid-4", "").await;
    service.create("ada", "sid-5", "").await;
    let typed = [&typed[..], &["--except-handle", &kept]].concat();
    let (code, shown) = on_terminal(&typed, "y\n");
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("End all sessions of ada at") && shown.contains("ended 2 sessions"),
        "{shown}"
    );
    let left: Vec<String> = service.listed("ada").await.into_keys().collect();
    assert_eq!(left, [kept]);
}

#[tokio::test]
async fn what_was_typed_wrongly_is_said_and_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start(&file_in(directory.path()), NEW_KEY).await;
    for (arguments, said) in [
        (&["sesions", "list"][..], "'sessions'"),
        (&["sessions"], "list"),
        (&["sessions", "lst"], "'list'"),
        (&["sessions", "list"], "--subject"),
        (&["sessions", "end"], "--handle"),
        (
            &["sessions", "end", "--handle", UNKNOWN, "--subject", "ada"],
            "cannot be used with",
        ),
        (&["sessions", "end", "--except-handle", UNKNOWN], "--subject"),
        (
            &["sessions", "end", "--handle", UNKNOWN, "--cert-file", "x"],
            "--key-file",
        ),
        (
            &["sessions", "list", "--subject", "ada", "--limit", "many"],
            "many",
        ),
    ] {
        let output = program().args(arguments).output().unwrap();
        let reported = ToolOutput::of(output);
        assert_eq!((reported.code, reported.out.as_str()), (2, ""), "{arguments:?}");
        assert!(reported.err.contains(said), "{arguments:?}: {}", reported.err);
    }
    let reported = service.tool(&["sessions", "end", "--handle", "not-a-handle", "--json"]);
    assert_eq!(reported.code, 2);
    assert_eq!(reported.json()["error"]["reason"], "ERR_INVALID_ARGUMENT");
    let reported = service.tool(&["sessions", "end", "--handle", UNKNOWN, "--cause", "With Space"]);
    assert_eq!(reported.code, 2, "{reported:?}");
    let reported = ToolOutput::of(
        program()
            .args(["sessions", "list", "--subject", "ada", "--service", &service.url])
            .output()
            .unwrap(),
    );
    assert_eq!(reported.code, 2);
    assert!(reported.err.contains("OIDC_ISSUER_URL"), "{}", reported.err);
}

#[test]
fn a_service_that_is_not_there_is_a_failure_and_says_where_it_was_looked_for() {
    let address = format!("127.0.0.1:{}", crate::redis_server::free_port());
    let output = program()
        .env("SESSION_LISTEN", &address)
        .args(["sessions", "end", "--handle", UNKNOWN, "--json"])
        .output();
    let reported = ToolOutput::of(output.unwrap());
    assert_eq!(reported.code, 1);
    assert!(
        reported.err.contains(&format!("http://{address}")),
        "{}",
        reported.err
    );
    assert_eq!(
        reported.json()["error"]["reason"],
        "ERR_SESSION_SERVICE_UNAVAILABLE"
    );
}

#[test]
fn every_command_has_a_manual() {
    for (command, parts) in [
        (
            &["--help"][..],
            &["sessions", "check-store", "--check-config"][..],
        ),
        (&["sessions", "--help"], &["list", "end"]),
        (
            &["sessions", "list", "--help"],
            &["--subject", "--issuer", "--limit", "--service", "--ca-file"],
        ),
        (
            &["sessions", "end", "--help"],
            &["--except-handle", "--provider-sid", "--cause", "--yes"],
        ),
        (
            &["check-store", "--help"],
            &["everything fits", "A file has to be free"],
        ),
    ] {
        let reported = ToolOutput::of(program().args(command).output().unwrap());
        assert_eq!((reported.code, reported.err.as_str()), (0, ""), "{command:?}");
        for part in parts {
            assert!(
                reported.out.contains(part),
                "{part} is missing in {}",
                reported.out
            );
        }
    }
}

#[tokio::test]
async fn a_service_that_asks_for_certificates_gets_them() {
    let (directory, certificates) = (tempfile::tempdir().unwrap(), Certificates::make());
    let (ca, server, server_key) = (
        certificates.text("ca.pem"),
        certificates.text("server.pem"),
        certificates.text("server.key"),
    );
    let (client, client_key) = (certificates.text("client.pem"), certificates.text("client.key"));
    let mut settings = ClientSettings::new(["https://unused"]);
    let own = (certificates.path("client.pem"), certificates.path("client.key"));
    settings.tls = Some(ClientTls::from_files(certificates.path("ca.pem"), Some(own)).unwrap());
    let more = [
        ("SESSION_TLS_CERT_FILE", server.as_str()),
        ("SESSION_TLS_KEY_FILE", server_key.as_str()),
        ("SESSION_CLIENT_CA_FILE", ca.as_str()),
    ];
    let store = file_in(directory.path());
    let service = Service::start_with(&store, NEW_KEY, &more, &settings).await;
    let list = ["sessions", "list", "--subject", "ada"];

    let identity = [
        "--ca-file",
        &ca,
        "--cert-file",
        &client,
        "--key-file",
        &client_key,
    ];
    let listed = service.tool(&[&list[..], &identity].concat());
    assert_eq!(listed.code, 0, "{listed:?}");
    let without_identity = service.tool(&[&list[..], &["--ca-file", &ca]].concat());
    assert_eq!(without_identity.code, 1);
    assert!(
        without_identity.err.contains("--cert-file"),
        "{}",
        without_identity.err
    );
    let without_trust = service.tool(&list);
    assert_eq!(without_trust.code, 2);
    assert!(without_trust.err.contains("--ca-file"), "{}", without_trust.err);
    let unreadable = service.tool(&[&list[..], &["--ca-file", "/nowhere/ca.pem"]].concat());
    assert_eq!(unreadable.code, 2);
    assert!(unreadable.err.contains("/nowhere/ca.pem"), "{}", unreadable.err);
}
