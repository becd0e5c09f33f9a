//! The tables of options: one row an option, in the two `.tsv` files.

use std::sync::LazyLock;

/// The options of oauth2-proxy.
pub(super) static OAUTH2_PROXY: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("oauth2-proxy.tsv")));

/// The directives of mod_auth_openidc.
pub(super) static MOD_AUTH_OPENIDC: LazyLock<Vec<Row>> =
    LazyLock::new(|| rows(include_str!("mod_auth_openidc.tsv")));

/// One option.
pub(super) struct Row {
    /// The flag without `--`, or the directive.
    pub(super) name: &'static str,
    /// `text`, `list` or `bool`.
    pub(super) kind: &'static str,
    /// The action, and its arguments after spaces.
    pub(super) action: &'static str,
    /// The text for the report; by default the arguments.
    pub(super) text: &'static str,
    /// Its fields of the alpha configuration, separated by commas.
    alpha: &'static str,
}

/// The row of a name in any spelling: `-` or `_`, singular or plural, any letter case.
pub(super) fn find<'t>(table: &'t [Row], name: &str) -> Option<&'t Row> {
    let name = name.replace('_', "-");
    let find = |name: &str| table.iter().find(|row| row.name.eq_ignore_ascii_case(name));
    find(&name).or_else(|| find(name.strip_suffix(['s', 'S'])?))
}

/// The row of a field of the alpha configuration, without indices.
pub(super) fn find_alpha(path: &str) -> Option<&'static Row> {
    let is_field = |field: &str| field.eq_ignore_ascii_case(path);
    OAUTH2_PROXY.iter().find(|row| row.alpha.split(',').any(is_field))
}

fn rows(text: &'static str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let mut columns = line.split('\t');
        let mut next = || columns.next();
        let (name, kind, action, text, alpha) = (next()?, next()?, next()?, next()?, next()?);
        Some(Row {
            name,
            kind,
            action,
            text,
            alpha,
        })
    });
    rows.collect()
}
