//! What an operator may learn of a store's servers: their settings, rights and connections.

/// How good or bad a fact is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// As it should be.
    Fine,
    /// Works, but should be looked at: what to do.
    Warning(&'static str),
    /// Loses sessions or does not work: what to do.
    Problem(&'static str),
    /// May not be asked: which right is missing.
    Unknown(&'static str),
}

/// Something a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What about, in lower case with underscores.
    pub name: &'static str,
    /// What it says; nothing secret.
    pub value: String,
    /// How good that is.
    pub standing: Assessment,
}

impl Fact {
    /// A fact that is as it should be.
    pub(crate) fn fine(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: value.into(),
            standing: Assessment::Fine,
        }
    }

    /// The same fact, standing otherwise.
    #[must_use]
    pub(crate) fn standing(self, standing: Assessment) -> Self {
        Self { standing, ..self }
    }
}
