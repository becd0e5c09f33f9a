//! What an operator may learn of a store's servers.

/// How good or bad a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// As it should be.
    Fine,
    /// Works, but should be looked at: what to do.
    Warning(&'static str),
    /// Loses sessions or does not work: what to do.
    Problem(&'static str),
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
    pub(crate) fn new(name: &'static str, value: impl Into<String>, standing: Assessment) -> Self {
        Self {
            name,
            value: value.into(),
            standing,
        }
    }
}
