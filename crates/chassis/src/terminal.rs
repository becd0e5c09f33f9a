//! Texts for a terminal.

/// Replaces control and direction characters by `·`: text from a browser, provider or server cannot move the
/// cursor, change colours or reverse lines.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    text.chars()
        .map(|letter| if is_steering(letter) { '·' } else { letter })
        .collect()
}

/// Escapes these characters in the strings of a JSON document as `\u…`, with the same meaning for programs.
/// Line ends between members stay.
#[must_use]
pub fn escaped_json(document: &str) -> String {
    let mut escaped = String::with_capacity(document.len());
    for letter in document.chars() {
        if letter == '\n' || !is_steering(letter) {
            escaped.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

fn is_steering(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let nasty = "a\x1b[2Jb\u{9b}31mc\u{202e}d\ne";
        assert_eq!(escape_controls(nasty), "a·[2Jb·31mc·d·e");
    }

    #[test]
    fn a_json_document_says_the_same_and_steers_nothing() {
        let said =
            serde_json::json!({ "agent": "a\x1b[2Jb\u{9b}31mc\u{202e}d\u{7f}\u{61c}\ne", "ü": ["·", "👩"] });
        let escaped = escaped_json(&format!("{said:#}\n"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), said);
        let lines = escaped.lines().collect::<String>();
        assert_eq!(escape_controls(&lines), lines, "{escaped}");
        assert!(escaped.contains("👩") && escaped.contains("\\u202e"), "{escaped}");
    }
}
