//! With `--json` the commands of `sessions` write exactly one document, even on errors.

use super::support::{ISSUER, ToolOutput, program};

const COMMANDS: [&[&str]; 3] = [
    &["sessions", "list", "--subject", "ada"],
    &["sessions", "search", "--everyone", "--purpose", "x"],
    &["sessions", "end", "--subject", "ada", "--yes"],
];

fn reported(arguments: &[&str], settings: &[(&str, &str)]) -> ToolOutput {
    let mut command = program();
    command
        .args(arguments)
        .arg("--json")
        .envs(settings.iter().copied());
    ToolOutput::of(command.output().unwrap())
}

fn reason(reported: &ToolOutput) -> String {
    reported.json()["error"]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_that_fails_says_so_in_a_document() {
    let settings = [("SESSION_LISTEN", "127.0.0.1:9"), ("OIDC_ISSUER_URL", ISSUER)];
    for command in COMMANDS {
        let failed = reported(command, &settings);
        assert_eq!(failed.code, 1, "{command:?}: {failed:?}");
        assert!(!reason(&failed).is_empty());
        let misused = reported(&[command, &["--unheard-of"]].concat(), &settings);
        assert_eq!(
            (misused.code, reason(&misused).as_str()),
            (2, "usage"),
            "{command:?}"
        );
    }
    let no_command = reported(&["sessions", "unheard-of"], &settings);
    assert_eq!((no_command.code, reason(&no_command).as_str()), (2, "usage"));
    for command in COMMANDS {
        let wrong = reported(command, &[("SESSION_LISTEN", "nonsense")]);
        assert_eq!(
            (wrong.code, reason(&wrong).as_str()),
            (78, "settings"),
            "{command:?}"
        );
    }
}
