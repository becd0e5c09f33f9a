//! Every text of a page exists in every language: the tests search the sources, as `xgettext` would.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

/// Source files with sentences for programs, operators or logs only.
const FOR_NO_PAGE: [&str; 16] = [
    "app.rs",
    "doctor/",
    "gateway/proxy/measures.rs",
    "sessions/cache_gauges.rs",
    "gateway/bearer/",
    "settings/",
    "gen/",
    "tests",
    "browser/analytics.rs",
    "http/observe.rs",
    "sessions/metrics.rs",
    "sign_in/back_channel.rs",
    "http/protect/slow_client_tests.rs",
    "start.rs",
    "main.rs",
    "http/pages/look.rs",
];
/// Texts that only JSON answers contain, in files that also hold texts of pages.
const FOR_PROGRAMS: [&str; 9] = [
    "The logout token was used before.",
    "The logout token's sub and sid do not belong together.",
    "The logout token was refused.",
    "The request's body has to be application/secevent+jwt.",
    "The request's body has to be application/json.",
    "Signing in needs a navigation of the whole page to login_url.",
    "The user does not have an active session or is not authenticated",
    "Not signed in",
    "Logout refused",
];

fn rust_files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The string literals of a source, without comments and tests. No literal in these sources has an escape.
fn literals(source: &str) -> impl Iterator<Item = String> {
    let code = source.split("\n#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let literals: Vec<String> = code.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    literals.into_iter()
}

/// Whether a literal is text for people: a sentence, or in files of pages and errors also a title or a label.
fn is_text(file: &str, literal: &str) -> bool {
    let begins = literal.starts_with(|first: char| first.is_ascii_uppercase());
    let plain = !literal.contains(['<', '>', '{', '}', '\\', '_', '\n']);
    let sentence = literal.contains(' ') && literal.ends_with(['.', '?']);
    let places = ["http/errors", "http/pages", "kept_form"];
    let label = places.iter().any(|place| file.starts_with(place));
    let word = |text: &str| {
        text.bytes()
            .skip(1)
            .all(|byte| byte.is_ascii_lowercase() || byte == b' ' || byte == b'-')
    };
    begins && plain && (sentence || (label && (literal.contains(' ') || word(literal))))
}

fn texts_in_the_source() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut texts = BTreeSet::new();
    for path in files {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if FOR_NO_PAGE.iter().any(|name| file.contains(name)) {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        texts.extend(literals(&source).filter(|literal| is_text(&file, literal)));
    }
    for text in FOR_PROGRAMS {
        texts.remove(text);
    }
    texts
}

#[test]
fn every_text_of_a_page_is_in_every_language() {
    let texts = texts_in_the_source();
    assert!(texts.len() > 60, "the search finds them: {texts:?}");
    for ((language, _), catalogue) in LANGUAGES.iter().zip(&*TEXTS).skip(1) {
        let missing: Vec<_> = texts
            .iter()
            .filter(|text| !catalogue.contains_key(text.as_str()))
            .collect();
        assert!(missing.is_empty(), "{language} lacks {missing:#?}");
        let unused: Vec<_> = catalogue.keys().filter(|text| !texts.contains(**text)).collect();
        assert!(unused.is_empty(), "nothing says what {language} has: {unused:#?}");
    }
}

#[test]
fn every_line_of_a_catalogue_is_read_and_says_something_of_its_own() {
    for ((language, _), catalogue) in LANGUAGES.iter().zip(&*TEXTS).skip(1) {
        let file = format!("src/http/pages/words/{language}.po");
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let pairs = text.lines().filter(|line| line.starts_with("msgid")).count() - 1;
        assert_eq!(
            catalogue.len(),
            pairs,
            "{language}: no text stands twice, each is on one line"
        );
        for (english, text) in catalogue {
            assert!(
                !text.trim().is_empty() && text != english,
                "{language}: {english}"
            );
            assert!(!text.contains(['"', '\\', '<', '&']), "{language}: {text}");
        }
    }
}
