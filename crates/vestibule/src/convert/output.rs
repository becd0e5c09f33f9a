//! Writes the files and the report.
//!
//! Invariant: a new file replaces none. Files with secrets have the mode 0600 from their first byte on.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use chassis::terminal::escape_controls;

use super::Mistake;
use super::translate::Plan;

const HEAD: &str =
    "# Written by `vestibule convert`, for `--env-file` of a container or `EnvironmentFile=` of systemd.
# A shell reads values with spaces differently.\n";

/// Writes `settings.env`, `routes.toml` and the secrets.
pub(super) fn write(plan: &Plan, folder: &Path) -> Result<(), Mistake> {
    let path = |name: &str| {
        folder
            .join(name)
            .display()
            .to_string()
            .trim_start_matches("./")
            .to_owned()
    };
    let mut settings = plan.settings.clone();
    settings.insert("EDGE_ROUTES".to_owned(), path("routes.toml"));
    for (setting, file, _) in &plan.secrets {
        settings.insert(format!("{setting}_FILE"), path(file));
    }
    let missing = plan.missing.iter().map(|text| format!("# missing: {text}\n"));
    let settings = settings.iter().map(|(name, value)| format!("{name}={value}\n"));
    let settings: String = missing.chain(settings).collect();
    let mut files = vec![
        ("settings.env", format!("{HEAD}{settings}"), 0o644),
        ("routes.toml", plan.routes.clone(), 0o644),
    ];
    files.extend(
        plan.secrets
            .iter()
            .map(|(_, file, value)| (file.as_str(), value.clone(), 0o600)),
    );
    for (name, ..) in &files {
        if folder.join(name).symlink_metadata().is_ok() {
            return Err(Mistake::new(
                path(name),
                "exists already: choose another folder by --output",
            ));
        }
    }
    for (name, content, mode) in files {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(folder.join(name));
        let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
        written.map_err(|error| Mistake::new(path(name), error))?;
    }
    Ok(())
}

/// The report: a line for each option, then what is missing.
pub(super) fn report(plan: &Plan) -> String {
    let line = |status: &str, text: &str| escape_controls(&format!("{status:10} {text}")) + "\n";
    let options = plan.report.iter();
    let options = options.map(|at| line(at.2, &format!("{} {}: {}", at.0, at.1, at.3)));
    let lines = options.chain(plan.missing.iter().map(|text| line("missing", text)));
    // The members of a list have the same line.
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert(line.clone())).collect()
}
