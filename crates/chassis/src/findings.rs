//! The results of examining a deployment: one line for each check, and advice if a check fails.
//!
//! Invariants
//! - An id is stable, because programs read it. The words may change with every release.
//! - Every warning or problem comes with advice.
//! - No finding holds a secret or terminal control characters.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use crate::terminal::escape_controls;

/// Characters of the longest verdict.
const RESULT_WIDTH: usize = 7;
/// Characters of the longest id of a check.
const CHECK_WIDTH: usize = 24;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckResult {
    /// As expected.
    Fits,
    /// A fact for the operator, such as a value to register at the provider; neither right nor wrong.
    Information,
    /// Could not be checked; there is no sign of a problem.
    Unknown,
    /// Works, at least in most cases, but needs attention.
    Warning,
    /// Does not work.
    Problem,
}

impl CheckResult {
    const fn word(self) -> &'static str {
        match self {
            Self::Fits => "ok",
            Self::Information => "info",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The result.
    pub verdict: CheckResult,
    /// The observation.
    pub found: String,
    /// Advice, as an imperative. If a setting has to change, the advice starts with its name and a colon.
    pub advice: Option<String>,
}

/// The id of a check, in lower case with underscores, and its finding.
pub type Check = (&'static str, Finding);

impl Finding {
    fn new(verdict: CheckResult, found: impl Into<String>, advice: Option<String>) -> Self {
        let found = found.into();
        Self {
            verdict,
            found,
            advice,
        }
    }

    /// A finding with the verdict `Fits`.
    #[must_use]
    pub fn fits(found: impl Into<String>) -> Self {
        Self::new(CheckResult::Fits, found, None)
    }

    /// A finding with the verdict `Information`.
    #[must_use]
    pub fn information(found: impl Into<String>) -> Self {
        Self::new(CheckResult::Information, found, None)
    }

    /// A finding with the verdict `Unknown`.
    #[must_use]
    pub fn unknown(found: impl Into<String>) -> Self {
        Self::new(CheckResult::Unknown, found, None)
    }

    /// A finding with the verdict `Warning`.
    #[must_use]
    pub fn warning(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(CheckResult::Warning, found, Some(advice.into()))
    }

    /// A finding with the verdict `Problem`.
    #[must_use]
    pub fn problem(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(CheckResult::Problem, found, Some(advice.into()))
    }

    /// Adds optional advice to a finding.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { advice, ..self }
    }
}

/// Checks of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The subject of the checks.
    pub title: String,
    /// The checks. A check may depend on earlier ones.
    pub checks: Vec<Check>,
}

/// All findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One section for each subject.
    pub sections: Vec<Section>,
}

impl Report {
    fn count(&self, verdict: CheckResult) -> usize {
        let checks = self.sections.iter().flat_map(|section| &section.checks);
        checks.filter(|(_, finding)| finding.verdict == verdict).count()
    }

    /// Formats one line for each check, followed by its advice.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}\n", escape_controls(&section.title));
            for (id, finding) in &section.checks {
                let (result, found) = (finding.verdict.word(), escape_controls(&finding.found));
                let _ = writeln!(text, "  {result:<RESULT_WIDTH$}  {id:<CHECK_WIDTH$}  {found}");
                if let Some(advice) = finding.advice.as_deref().map(escape_controls) {
                    let _ = writeln!(text, "  {:RESULT_WIDTH$}  {:CHECK_WIDTH$}  → {advice}", "", "");
                }
            }
            text.push('\n');
        }
        let (problems, warnings) = (self.count(CheckResult::Problem), self.count(CheckResult::Warning));
        let _ = match (problems, warnings) {
            (0, 0) => writeln!(text, "everything fits"),
            _ => writeln!(text, "problems: {problems}, warnings: {warnings}"),
        };
        text
    }

    /// Prints the text. The exit code is a failure if there is a problem.
    #[must_use]
    pub fn print(&self) -> ExitCode {
        // A reader that closed the pipe is not an error.
        let _ = std::io::stdout().write_all(self.text().as_bytes());
        match self.count(CheckResult::Problem) {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

/// An error with its causes, on one line.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(source) = cause {
        let more = source.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(checks: Vec<Check>) -> String {
        let title = "Provider".to_owned();
        let sections = vec![Section { title, checks }];
        Report { sections }.text()
    }

    #[test]
    fn what_does_not_fit_is_followed_by_what_to_do() {
        let refused = Finding::problem("the secret is refused", "OIDC_CLIENT_SECRET: copy it again");
        let text = text(vec![
            ("issuer", Finding::fits("https://op.example")),
            ("client_authentication", refused),
        ]);
        assert_eq!(
            text,
            "Provider\n\n\
             \x20 ok       issuer                    https://op.example\n\
             \x20 problem  client_authentication     the secret is refused\n\
             \x20                                    → OIDC_CLIENT_SECRET: copy it again\n\n\
             problems: 1, warnings: 0\n"
        );
    }

    #[test]
    fn a_warning_alone_is_counted_and_an_unknown_fits() {
        let warned = text(vec![("clock", Finding::warning("12 s apart", "check NTP"))]);
        assert!(warned.ends_with("problems: 0, warnings: 1\n"), "{warned}");
        let fine = text(vec![("claims", Finding::unknown("the provider does not say"))]);
        assert!(fine.ends_with("everything fits\n"), "{fine}");
    }

    #[test]
    fn what_a_provider_says_cannot_steer_the_terminal() {
        assert!(text(vec![("issuer", Finding::fits("a\x1b[2J"))]).contains("a·[2J"));
    }
}
