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

/// What mends something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The setting to change, if it is one.
    pub setting: Option<String>,
    /// What to do, as an imperative.
    pub advice: String,
}

impl Remedy {
    /// A change of a setting.
    #[must_use]
    pub fn set(setting: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            setting: Some(setting.into()),
            advice: advice.into(),
        }
    }

    /// Something to do elsewhere: at the provider, at a server, in a file.
    #[must_use]
    pub fn elsewhere(advice: impl Into<String>) -> Self {
        Self {
            setting: None,
            advice: advice.into(),
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in lower case with underscores.
    pub id: &'static str,
    /// How it stands.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    pub remedy: Option<Remedy>,
}

impl Finding {
    fn new(id: &'static str, verdict: Verdict, found: impl Into<String>, remedy: Option<Remedy>) -> Self {
        Self {
            id,
            verdict,
            found: found.into(),
            remedy,
        }
    }

    /// As it should be.
    #[must_use]
    pub fn fits(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Verdict::Fits, found, None)
    }

    /// To be known.
    #[must_use]
    pub fn information(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Verdict::Information, found, None)
    }

    /// Could not be found out.
    #[must_use]
    pub fn unknown(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Verdict::Unknown, found, None)
    }

    /// To be looked at.
    #[must_use]
    pub fn warning(id: &'static str, found: impl Into<String>, remedy: Remedy) -> Self {
        Self::new(id, Verdict::Warning, found, Some(remedy))
    }

    /// Does not work.
    #[must_use]
    pub fn problem(id: &'static str, found: impl Into<String>, remedy: Remedy) -> Self {
        Self::new(id, Verdict::Problem, found, Some(remedy))
    }

    /// The same finding with something one may do.
    #[must_use]
    pub fn with(self, remedy: Remedy) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }
}

/// Findings about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What they are about.
    pub title: String,
    /// The findings, in the order in which one needs the other.
    pub findings: Vec<Finding>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By what they are about.
    pub sections: Vec<Section>,
}

impl Report {
    fn fits(&self) -> bool {
        self.count(Verdict::Problem) == 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        let findings = self.sections.iter().flat_map(|section| &section.findings);
        findings.filter(|finding| finding.verdict == verdict).count()
    }

    /// A line for each finding, and below it what to do.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}\n", shown(&section.title));
            for finding in &section.findings {
                let (result, found) = (finding.verdict.word(), shown(&finding.found));
                let _ = writeln!(
                    text,
                    "  {result:<RESULT_WIDTH$}  {:<CHECK_WIDTH$}  {found}",
                    finding.id
                );
                if let Some(Remedy { setting, advice }) = &finding.remedy {
                    let setting = setting.as_ref().map(|setting| format!("{setting}: "));
                    let advice = shown(&format!("{}{advice}", setting.unwrap_or_default()));
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
        match self.fits() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
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

    fn text(findings: Vec<Finding>) -> String {
        let title = "Provider".to_owned();
        let sections = vec![Section { title, findings }];
        Report { sections }.text()
    }

    #[test]
    fn what_does_not_fit_is_followed_by_what_to_do() {
        let text = text(vec![
            Finding::fits("issuer", "https://op.example"),
            Finding::problem(
                "client_authentication",
                "the secret is refused",
                Remedy::set("OIDC_CLIENT_SECRET", "copy it again"),
            ),
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
        let remedy = Remedy::elsewhere("check NTP");
        let warned = text(vec![Finding::warning("clock", "12 s apart", remedy)]);
        assert!(warned.ends_with("problems: 0, warnings: 1\n"), "{warned}");
        let fine = text(vec![Finding::unknown("claims", "the provider does not say")]);
        assert!(fine.ends_with("everything fits\n"), "{fine}");
    }

    #[test]
    fn what_a_provider_says_cannot_steer_the_terminal() {
        assert!(text(vec![Finding::fits("issuer", "a\x1b[2J")]).contains("a·[2J"));
    }
}
