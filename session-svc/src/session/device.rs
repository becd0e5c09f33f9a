//! A browser at one moment.

use prost::Message;

/// Stored bytes of a User-Agent: enough to recognise a browser, too few to fill the store.
pub(crate) const MAX_USER_AGENT_BYTES: usize = 512;

/// A browser at one moment.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Device {
    /// Its User-Agent header, shortened.
    #[prost(string, tag = "1")]
    pub user_agent: String,
    /// Its IP address in its shortest form; empty for an unknown one.
    #[prost(string, tag = "2")]
    pub address: String,
    /// When its request arrived, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "3")]
    pub at_ms: u64,
}

impl Device {
    /// Shortens a User-Agent: drops invisible characters, at most [`MAX_USER_AGENT_BYTES`].
    pub(crate) fn shorten_user_agent(text: &str) -> String {
        let mut kept = String::new();
        for letter in text.chars().filter(|letter| !is_unseen(*letter)) {
            if kept.len() + letter.len_utf8() > MAX_USER_AGENT_BYTES {
                break;
            }
            kept.push(letter);
        }
        kept
    }
}

/// Control characters, and characters that reverse or hide text: a list of devices shows the name that a
/// foreign browser sent.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_user_agent_is_cut_between_letters() {
        let kept = Device::shorten_user_agent(&"ü".repeat(400));
        assert_eq!(kept.len(), 512);
        assert_eq!(Device::shorten_user_agent("a\r\nb\0c\u{7f}"), "abc");
        assert_eq!(Device::shorten_user_agent("curl/8 ~"), "curl/8 ~");
        assert_eq!(Device::shorten_user_agent(&"x".repeat(513)).len(), 512);
        assert_eq!(
            Device::shorten_user_agent("\u{202e}a\u{2066}b\u{200b}c\u{feff}"),
            "abc"
        );
    }
}
