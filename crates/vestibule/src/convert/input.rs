//! Reads the options of all files.
//!
//! Invariant: nothing recurses deeper than the limits of the parsers, and the number of options has a limit.

use std::path::{Path, PathBuf};

use chassis::files::read_bounded;
use serde_json::Value;
use serde_saphyr::{budget, options};
use shlex::Shlex;
use url::Url;

use super::Mistake;
use super::table::{self, MOD_AUTH_OPENIDC, OAUTH2_PROXY, Row};

/// Most options of an input. Each program has fewer than two hundred, and sections may repeat them.
const MAX_OPTIONS: usize = 2_000;

const PREFIX: &str = "OAUTH2_PROXY_";

const NO_QUOTE: &str = "a closing quote is missing";

/// Where the alpha configuration lists its upstreams.
const UPSTREAMS: &str = "upstreamConfig.upstreams";

/// One option that a file sets.
pub(super) struct InputOption {
    /// Its name in the table, or in the file if the table has none.
    pub(super) name: String,
    pub(super) row: Option<&'static Row>,
    pub(super) values: Vec<String>,
    /// The file, and the line where the format has lines.
    pub(super) place: String,
    /// A later file has another value.
    pub(super) is_overridden: bool,
}

/// Everything that the files contain.
#[derive(Default)]
pub(super) struct Input {
    pub(super) options: Vec<InputOption>,
    pub(super) is_apache: bool,
}

/// Reads all files.
pub(super) fn read_all(files: &[PathBuf]) -> Result<Input, Mistake> {
    let mut input = Input::default();
    for path in files {
        let file = path.display().to_string();
        let text = read_text(path).map_err(|problem| Mistake::new(&file, problem))?;
        let is_apache = is_apache(&text);
        if !input.options.is_empty() && input.is_apache != is_apache {
            return Err(Mistake::new(file, "belongs to another program: convert it alone"));
        }
        input.is_apache = is_apache;
        let read = if is_apache { read_apache } else { read_oauth2_proxy };
        let found = read(&text, &file)?;
        for old in input.options.iter_mut().filter(|_| !is_apache) {
            old.is_overridden |= found.iter().any(|new| new.name == old.name);
        }
        input.options.extend(found);
        if input.options.len() > MAX_OPTIONS {
            return Err(Mistake::new(file, "there are too many options"));
        }
    }
    Ok(input)
}

fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_bounded(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

fn is_apache(text: &str) -> bool {
    let mut words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.any(|word| word == "<VirtualHost" || table::find(&MOD_AUTH_OPENIDC, word).is_some())
}

/// The directives `OIDC…` and `Require` of all sections.
fn read_apache(text: &str, file: &str) -> Result<Vec<InputOption>, Mistake> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.replace("\\\n", " ").lines()) {
        let name = line.split_whitespace().next().unwrap_or_default();
        let row = table::find(&MOD_AUTH_OPENIDC, name);
        if row.is_none() && !name.to_ascii_lowercase().starts_with("oidc") {
            continue;
        }
        let place = format!("{file}:{number}");
        let words = shlex::split(line).ok_or_else(|| Mistake::new(&place, NO_QUOTE))?;
        let mut option = read_option(name, "", place);
        (option.row, option.values) = (row, words.into_iter().skip(1).collect());
        found.push(option);
    }
    Ok(found)
}

/// The options of a configuration, of variables, or of flags.
fn read_oauth2_proxy(text: &str, file: &str) -> Result<Vec<InputOption>, Mistake> {
    let lines = || text.lines().map(|line| line.trim_start_matches("export "));
    if lines().any(|line| line.starts_with(PREFIX)) {
        return Ok(read_variables(text, file));
    }
    let is_flag = |word: &str| {
        let name = word.trim_start_matches(['"', '\'']).strip_prefix("--");
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let wrong = |error: &dyn ToString| Mistake::new(file, error.to_string());
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let is_key = |key: &str| key.starts_with(|c: char| c.is_ascii_alphabetic()) && !key.contains([' ', ':']);
    let first = lines().find(is_content).and_then(|line| line.split_once('='));
    let is_toml = first.is_some_and(|(key, _)| is_key(key.trim()));
    let document: Value = match () {
        () if is_toml => toml::from_str(text).map_err(|error| wrong(&error))?,
        () if lines().any(|line| line.split_whitespace().any(is_flag)) => return read_flags(text, file),
        () => {
            let limits = options! { budget: budget! { max_aliases: 0, max_depth: 16 }, with_snippet: false };
            serde_saphyr::from_str_with_options(text, limits).map_err(|error| wrong(&error))?
        }
    };
    if !document.is_object() {
        return Err(Mistake::new(
            file,
            "expected options of oauth2-proxy or of Apache",
        ));
    }
    if document.pointer("/providers/1").is_some() {
        let text = "keep one provider, and write the others into the file of OIDC_PROVIDERS";
        return Err(Mistake::new(file, text));
    }
    let mut found = Vec::new();
    walk(&document, "", file, &mut found);
    Ok(found)
}

/// Adds the values below a key.
fn walk(value: &Value, key: &str, file: &str, found: &mut Vec<InputOption>) {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    };
    let texts: Option<Vec<String>> = match value {
        Value::Array(members) => members.iter().map(text).collect(),
        value => text(value).map(|text| vec![text]),
    };
    match (value, texts) {
        (_, Some(texts)) => {
            let mut option = read_option(key, "", file.to_owned());
            if key.contains('.') {
                key.clone_into(&mut option.name);
            }
            // A list in one text has commas.
            let is_list = value.is_array() || option.row.is_none_or(|row| row.kind != "list");
            option.values = if is_list { texts } else { members(&texts.concat()) };
            found.push(option);
        }
        (Value::Array(items), None) => items.iter().for_each(|item| walk(item, key, file, found)),
        (Value::Object(fields), None) => {
            if key == UPSTREAMS {
                let field = |name| fields.get(name).and_then(Value::as_str).unwrap_or_default();
                let address = Url::parse(field("uri")).map(|mut url| {
                    url.set_path(field("path"));
                    url.to_string()
                });
                let address = address.unwrap_or("static:".to_owned());
                found.push(read_option("upstream", &address, file.to_owned()));
            }
            let is_read = |name: &str| key == UPSTREAMS && ["id", "path", "uri", "static"].contains(&name);
            for (name, value) in fields.iter().filter(|(name, _)| !is_read(name)) {
                let separator = if key.is_empty() { "" } else { "." };
                walk(value, &format!("{key}{separator}{name}"), file, found);
            }
        }
        _ => {}
    }
}

fn members(text: &str) -> Vec<String> {
    text.split(',').map(|member| member.trim().to_owned()).collect()
}

/// An option of oauth2-proxy. Commas separate the members of a list.
fn read_option(name: &str, value: &str, place: String) -> InputOption {
    let row = table::find(&OAUTH2_PROXY, name).or_else(|| table::find_alpha(name));
    let values = match row {
        Some(row) if row.kind == "list" => members(value),
        _ => vec![value.to_owned()],
    };
    let name = row.map_or(name, |row| row.name).to_owned();
    InputOption {
        name,
        row,
        values,
        place,
        is_overridden: false,
    }
}

fn read_variables(text: &str, file: &str) -> Vec<InputOption> {
    let variables = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = line.trim_start_matches("export ").strip_prefix(PREFIX)?;
        let (name, value) = line.split_once('=')?;
        Some(read_option(
            name,
            value.trim_matches(['"', '\'']),
            format!("{file}:{number}"),
        ))
    });
    variables.collect()
}

fn read_flags(text: &str, file: &str) -> Result<Vec<InputOption>, Mistake> {
    let (mut found, mut words) = (Vec::new(), Shlex::new(text));
    while let Some(word) = words.next() {
        let place = format!("{file}:{}", words.line_no);
        // The program's name, or the signs of a YAML list.
        let Some(flag) = word.strip_prefix("--") else {
            continue;
        };
        let is_switch = table::find(&OAUTH2_PROXY, flag).is_some_and(|row| row.kind == "bool");
        found.push(match flag.split_once('=') {
            Some((name, value)) => read_option(name, value, place),
            None if is_switch => read_option(flag, "true", place),
            None => match words.next() {
                Some(value) => read_option(flag, &value, place),
                None => return Err(Mistake::new(place, "the flag has no value")),
            },
        });
    }
    if words.had_error {
        return Err(Mistake::new(format!("{file}:{}", words.line_no), NO_QUOTE));
    }
    Ok(found)
}
