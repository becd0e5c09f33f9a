//! What an examination of a deployment found: one line for each thing that was looked at, and what to do where it does not fit.
//!
//! Invariants
//! - An id is stable: programs decide by it. The words may change with every release.
//! - Whatever does not fit comes with what to do about it.
//! - No finding holds a secret, and none can steer a terminal.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::terminal::shown;

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
    /// The word for it, in tables and documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
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

    /// Whether somebody should do something.
    #[must_use]
    pub fn is_amiss(&self) -> bool {
        self.verdict >= Verdict::Warning
    }

    /// The id, for people.
    fn label(&self) -> String {
        self.id.replace('_', " ")
    }

    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "result": self.verdict.word(),
            "found": self.found,
            "setting": self.remedy.as_ref().and_then(|remedy| remedy.setting.as_deref()),
            "advice": self.remedy.as_ref().map(|remedy| &remedy.advice),
        })
    }
}

/// Findings about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What they are about, for programs.
    pub id: String,
    /// The same for people.
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
    /// Whether nothing is a problem.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.count(Verdict::Problem) == 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        let findings = self.sections.iter().flat_map(|section| &section.findings);
        findings.filter(|finding| finding.verdict == verdict).count()
    }

    /// Tables for people: a line for each finding, and below it what to do.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}\n", shown(&section.title));
            table(&mut text, &section.findings);
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.conclusion());
        text
    }

    fn conclusion(&self) -> String {
        let told = |verdict: Verdict| {
            let findings = self.sections.iter().flat_map(|section| &section.findings);
            let names: Vec<String> = findings
                .filter(|finding| finding.verdict == verdict)
                .map(Finding::label)
                .collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            let count = names.len();
            (count > 0).then(|| format!("{count} {}{plural} ({})", verdict.word(), names.join(", ")))
        };
        let all = [told(Verdict::Problem), told(Verdict::Warning)];
        let all: Vec<String> = all.into_iter().flatten().collect();
        match (self.fits(), all.is_empty()) {
            (true, true) => "everything fits".to_owned(),
            (true, false) => format!("it works; {} to look at", all.join(", ")),
            (false, _) => format!("something does not fit: {}", all.join(", ")),
        }
    }

    /// The same for programs.
    #[must_use]
    pub fn document(&self) -> Value {
        let sections = self.sections.iter().map(|section| {
            let findings: Vec<Value> = section.findings.iter().map(Finding::document).collect();
            json!({ "id": section.id, "title": section.title, "findings": findings })
        });
        json!({
            "fits": self.fits(),
            "problems": self.count(Verdict::Problem),
            "warnings": self.count(Verdict::Warning),
            "sections": sections.collect::<Vec<_>>(),
        })
    }
}

/// A line for each finding with what to do below it; where there is nothing to judge, names and values alone.
fn table(text: &mut String, findings: &[Finding]) {
    const HEAD: [&str; 3] = ["RESULT", "CHECK", "FOUND"];
    let is_value = |finding: &Finding| finding.verdict == Verdict::Information && finding.remedy.is_none();
    let judged = !findings.iter().all(is_value);
    let results = findings.iter().map(|finding| finding.verdict.word().len());
    let result_width = results.chain([HEAD[0].len()]).max().unwrap_or(0);
    let labels = findings.iter().map(|finding| finding.id.len());
    let label_width = labels.chain([HEAD[1].len()]).max().unwrap_or(0);
    let mut line = |result: &str, label: &str, found: &str| {
        let line = match judged {
            true => format!("  {result:<result_width$}  {label:<label_width$}  {found}"),
            false => format!("  {label:<label_width$}  {found}"),
        };
        text.push_str(line.trim_end());
        text.push('\n');
    };
    if judged {
        line(HEAD[0], HEAD[1], HEAD[2]);
    }
    for finding in findings {
        line(finding.verdict.word(), &finding.label(), &shown(&finding.found));
        if let Some(remedy) = &finding.remedy {
            let setting = remedy.setting.iter().map(|setting| format!("{setting}: "));
            let advice = format!("→ {}{}", setting.collect::<String>(), remedy.advice);
            line("", "", &shown(&advice));
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

    fn report(findings: Vec<Finding>) -> Report {
        let section = Section {
            id: "provider".to_owned(),
            title: "Provider".to_owned(),
            findings,
        };
        Report {
            sections: vec![section],
        }
    }

    #[test]
    fn what_does_not_fit_is_followed_by_what_to_do() {
        let report = report(vec![
            Finding::fits("issuer", "https://op.example"),
            Finding::problem(
                "client_authentication",
                "the secret is refused",
                Remedy::set("OIDC_CLIENT_SECRET", "copy it again"),
            ),
        ]);
        assert_eq!(
            report.text(),
            "Provider\n\n\
             \x20 RESULT   CHECK                  FOUND\n\
             \x20 ok       issuer                 https://op.example\n\
             \x20 problem  client authentication  the secret is refused\n\
             \x20                                 → OIDC_CLIENT_SECRET: copy it again\n\n\
             something does not fit: 1 problem (client authentication)\n"
        );
        assert!(!report.fits());
        let document = report.document();
        assert_eq!(document["fits"], false);
        assert_eq!(
            document["sections"][0]["findings"][1],
            json!({
                "id": "client_authentication", "result": "problem", "found": "the secret is refused",
                "setting": "OIDC_CLIENT_SECRET", "advice": "copy it again",
            })
        );
    }

    #[test]
    fn a_warning_alone_fits_and_is_counted() {
        let warned = report(vec![Finding::warning(
            "clock",
            "12 s apart",
            Remedy::elsewhere("check NTP"),
        )]);
        assert!(warned.fits());
        assert!(
            warned
                .text()
                .ends_with("it works; 1 warning (clock) to look at\n")
        );
        let fine = report(vec![Finding::unknown("claims", "the provider does not say")]);
        assert!(fine.text().ends_with("everything fits\n"));
    }

    #[test]
    fn values_to_copy_stand_without_a_result() {
        let values = report(vec![Finding::information(
            "redirect_uri",
            "https://app.example/cb",
        )]);
        assert!(
            values
                .text()
                .contains("\n  redirect uri  https://app.example/cb\n")
        );
        assert!(!values.text().contains("RESULT"));
    }

    #[test]
    fn what_a_provider_says_cannot_steer_the_terminal() {
        let nasty = report(vec![Finding::fits("issuer", "a\x1b[2J")]);
        assert!(nasty.text().contains("a·[2J"));
    }
}
