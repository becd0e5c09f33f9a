//! What an examination of a deployment found: one line for each thing that was looked at, and what to do where it does not fit.
//!
//! Invariants
//! - An id is stable: programs decide by it. The words may change with every release.
//! - Whatever does not fit comes with what to do about it.
//! - No finding holds a secret, and none can steer a terminal.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use crate::terminal::shown;

/// Characters of the longest verdict.
const RESULT_WIDTH: usize = 7;
/// Characters of the longest id of a check.
const CHECK_WIDTH: usize = 24;

/// How a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Fits,
    /// To be known or to be registered; neither right nor wrong.
    Information,
    /// Could not be found out; nothing speaks against it.
    Unknown,
    /// Works, or works for most, but should be looked at.
    Warning,
    /// Does not work.
    Problem,
}

impl Verdict {
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
    /// How it stands.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do, as an imperative. If it is a setting to change, the advice begins with its name and a colon.
    pub advice: Option<String>,
}

/// A check by its id, in lower case with underscores, and what it found.
pub type Check = (&'static str, Finding);

impl Finding {
    fn new(verdict: Verdict, found: impl Into<String>, advice: Option<String>) -> Self {
        let found = found.into();
        Self {
            verdict,
            found,
            advice,
        }
    }

    /// As it should be.
    #[must_use]
    pub fn fits(found: impl Into<String>) -> Self {
        Self::new(Verdict::Fits, found, None)
    }

    /// To be known.
    #[must_use]
    pub fn information(found: impl Into<String>) -> Self {
        Self::new(Verdict::Information, found, None)
    }

    /// Could not be found out.
    #[must_use]
    pub fn unknown(found: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, found, None)
    }

    /// To be looked at.
    #[must_use]
    pub fn warning(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, found, Some(advice.into()))
    }

    /// Does not work.
    #[must_use]
    pub fn problem(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Problem, found, Some(advice.into()))
    }

    /// The same finding with something an operator may do.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { advice, ..self }
    }
}

/// Checks of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What they are about.
    pub title: String,
    /// The checks, in the order in which one needs the other.
    pub checks: Vec<Check>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By what they are about.
    pub sections: Vec<Section>,
}

impl Report {
    fn count(&self, verdict: Verdict) -> usize {
        let checks = self.sections.iter().flat_map(|section| &section.checks);
        checks.filter(|(_, finding)| finding.verdict == verdict).count()
    }

    /// A line for each check, and below it what to do.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}\n", shown(&section.title));
            for (id, finding) in &section.checks {
                let (result, found) = (finding.verdict.word(), shown(&finding.found));
                let _ = writeln!(text, "  {result:<RESULT_WIDTH$}  {id:<CHECK_WIDTH$}  {found}");
                if let Some(advice) = finding.advice.as_deref().map(shown) {
                    let _ = writeln!(text, "  {:RESULT_WIDTH$}  {:CHECK_WIDTH$}  → {advice}", "", "");
                }
            }
            text.push('\n');
        }
        let (problems, warnings) = (self.count(Verdict::Problem), self.count(Verdict::Warning));
        let _ = match (problems, warnings) {
            (0, 0) => writeln!(text, "everything fits"),
            _ => writeln!(text, "problems: {problems}, warnings: {warnings}"),
        };
        text
    }

    /// Prints the text. The exit code is a failure if there is a problem.
    #[must_use]
    pub fn print(&self) -> ExitCode {
        // A reader that hung up is no failure of ours.
        let _ = std::io::stdout().write_all(self.text().as_bytes());
        match self.count(Verdict::Problem) {
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
