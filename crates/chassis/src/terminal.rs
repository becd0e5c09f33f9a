//! Texts for a terminal.

/// A text without what could move a terminal's cursor, colour it, or turn its lines around: what a browser, a provider or a
/// server sent cannot steer the terminal. Control and direction characters are shown as `·`.
#[must_use]
pub fn shown(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars()
        .map(|letter| if steers(letter) { '·' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let nasty = "a\x1b[2Jb\u{9b}31mc\u{202e}d\ne";
        assert_eq!(shown(nasty), "a·[2Jb·31mc·d·e");
    }
}
