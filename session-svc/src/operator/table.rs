//! Tables for a terminal.
//!
//! Invariant: what a browser or a provider sent cannot steer the terminal: control and direction characters are shown
//! as `·`.

use chassis::terminal::shown;

/// Lines of aligned columns; the last is as wide as it likes.
pub(super) fn columns(head: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| shown(cell)).collect())
        .collect();
    let head: Vec<String> = head.iter().map(|&title| title.to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in [&head].into_iter().chain(&rows) {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Lines of a name and what it is.
pub(super) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, value)| {
        let line = format!("{name:<width$}  {}", shown(value));
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// At most `most` characters of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [
            vec!["ü".to_owned(), "x".to_owned()],
            vec!["longer".to_owned(), "y z".to_owned()],
        ];
        let text = columns(&["A", "B"], &rows);
        assert_eq!(text, "A       B\nü       x\nlonger  y z\n");
        assert_eq!(columns(&["A", "B"], &[]), "A  B\n");
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let nasty = "a\x1b[2Jb\u{9b}31mc\u{202e}d\ne";
        assert_eq!(shown(nasty), "a·[2Jb·31mc·d·e");
        assert_eq!(facts(&[("agent", nasty.to_owned())]), "agent  a·[2Jb·31mc·d·e\n");
    }

    #[test]
    fn long_texts_are_cut_with_a_sign() {
        assert_eq!(shortened("Mozilla/5.0 (X11)", 12), "Mozilla/5.0…");
        assert_eq!(shortened("short", 12), "short");
    }
}
