//! `sessions search`.

use super::support::{NEW_KEY, Service, ToolOutput, file_in, program};
use session_proto::client::ClientSettings;

const PURPOSE: [&str; 4] = ["sessions", "search", "--purpose", "ticket 4711"];

fn search(service: &Service, arguments: &[&str]) -> ToolOutput {
    service.tool(&[&PURPOSE, arguments].concat())
}

async fn searchable(directory: &std::path::Path) -> Service {
    let settings = ClientSettings::new(["http://unused"]);
    let on = [("SESSION_OPERATOR_SEARCH", "true")];
    Service::start_with(&file_in(directory), NEW_KEY, &on, &settings).await
}

#[tokio::test]
async fn sessions_are_found_by_every_filter_for_people_and_programs() {
    let directory = tempfile::tempdir().unwrap();
    let service = searchable(directory.path()).await;
    let (_, ada) = service.create("ada", "sid-1", "").await;
    let (_, bob) = service.create("bob", "sid-2", "").await;
    for (arguments, expected) in [
        (&["--subject", "ada"][..], vec![&ada]),
        (&["--handle", &bob], vec![&bob]),
        (&["--provider-sid", "sid-2"], vec![&bob]),
        (&["--name", "ada lovelace"], vec![&ada, &bob]),
        (&["--address", "203.0.113.0/24"], vec![&ada, &bob]),
        (&["--email", "ada@example.com"], vec![]),
        (&["--everyone"], vec![&ada, &bob]),
        (
            &["--everyone", "--created-before", "2001-01-01T00:00:00Z"],
            vec![],
        ),
        (
            &["--everyone", "--created-after", "2001-01-01T00:00:00Z"],
            vec![&ada, &bob],
        ),
    ] {
        let found = search(&service, &[arguments, &["--json"]].concat()).json();
        let sessions = found["sessions"].as_array().unwrap();
        let mut handles: Vec<&str> = sessions
            .iter()
            .map(|session| session["handle"].as_str().unwrap())
            .collect();
        let mut expected: Vec<&str> = expected.into_iter().map(String::as_str).collect();
        handles.sort_unstable();
        expected.sort_unstable();
        assert_eq!(handles, expected, "{arguments:?}");
    }
    let table = search(&service, &["--everyone"]);
    assert_eq!((table.code, table.out.lines().count()), (0, 3), "{table:?}");
    assert!(service.told().contains("ticket 4711"), "in the audit log");
}

#[tokio::test]
async fn found_sessions_end_once_it_is_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    let service = searchable(directory.path()).await;
    for subject in ["ada", "bob", "eve"] {
        service.create(subject, "", "").await;
    }
    let asked = search(&service, &["--everyone", "--end"]);
    assert_eq!((asked.code, asked.out.as_str()), (2, ""), "{asked:?}");
    assert_eq!(service.listed("ada").await.len(), 1);
    let one = search(&service, &["--subject", "ada", "--end", "--yes"]);
    assert_eq!((one.code, one.out.as_str()), (0, "ended 1 session\n"));
    let others = search(&service, &["--name", "Ada Lovelace", "--end", "--yes", "--json"]);
    assert_eq!(others.json()["ended_count"], 2);
    let none = search(&service, &["--everyone", "--end", "--yes"]);
    assert_eq!(none.code, 3, "{none:?}");
}

#[test]
fn a_search_needs_a_purpose_and_one_filter() {
    for arguments in [
        &["sessions", "search", "--everyone"][..],
        &["sessions", "search", "--purpose", "x"],
        &[
            "sessions",
            "search",
            "--purpose",
            "x",
            "--everyone",
            "--subject",
            "ada",
        ],
        &["sessions", "search", "--purpose", "x", "--everyone", "--yes"],
        &[
            "sessions",
            "search",
            "--purpose",
            "x",
            "--everyone",
            "--created-after",
            "monday",
        ],
    ] {
        let output = ToolOutput::of(program().args(arguments).output().unwrap());
        assert_eq!(output.code, 2, "{output:?}");
    }
}
