//! Tracks WebSocket frames (RFC 6455, section 5.2), so that a close frame never lands within another frame.

/// The bits of the opcode in a frame's first byte.
const OPCODE: u8 = 0x0f;

/// The opcode of a close frame, the last one of a stream.
const CLOSE: u8 = 0x8;

/// The whole message in one frame.
const FINAL: u8 = 0x80;

/// The close frame of a server with the status 1001 (RFC 6455, section 7.4.1).
pub(super) const GOING_AWAY: [u8; 4] = [FINAL | CLOSE, 2, 0x03, 0xe9];

/// The same with 1008.
pub(super) const POLICY_VIOLATION: [u8; 4] = [FINAL | CLOSE, 2, 0x03, 0xf0];

/// The position in a stream of frames.
#[derive(Debug, Default)]
pub(super) struct FramePosition {
    /// The start of an incomplete header: at most 13 bytes.
    header: Vec<u8>,
    /// Missing bytes of the payload.
    payload: u64,
    is_closed: bool,
}

impl FramePosition {
    /// Reads further bytes of the stream.
    pub(super) fn advance(&mut self, mut bytes: &[u8]) {
        while let [first, rest @ ..] = bytes {
            if self.payload > 0 {
                let passed = usize::try_from(self.payload).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.payload -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.header.push(*first);
            bytes = rest;
            if let Some(length) = payload_length(&self.header) {
                self.is_closed |= self.header[0] & OPCODE == CLOSE;
                self.payload = length;
                self.header.clear();
            }
        }
    }

    /// Whether another frame may be sent now.
    pub(super) fn takes_frame(&self) -> bool {
        self.header.is_empty() && self.payload == 0 && !self.is_closed
    }
}

/// The length of the payload after a header, if the header is complete.
fn payload_length(header: &[u8]) -> Option<u64> {
    let [_, second, rest @ ..] = header else {
        return None;
    };
    let short = second & 0x7f;
    let extended = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    if rest.len() < extended + mask {
        return None;
    }
    let long = rest[..extended]
        .iter()
        .fold(0, |length, byte| length << 8 | u64::from(*byte));
    Some(if extended == 0 { short.into() } else { long })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a payload of this length; each byte looks like the start of a close frame.
    fn frame(first: u8, length: usize, is_masked: bool) -> Vec<u8> {
        let mask = if is_masked { 0x80 } else { 0 };
        let mut frame = vec![first];
        match length {
            0..=125 => frame.push(mask | length as u8),
            126..=65_535 => {
                frame.push(mask | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(if is_masked { vec![0x88; 4] } else { Vec::new() });
        frame.extend(vec![0x88; length]);
        frame
    }

    #[test]
    fn a_frame_is_over_with_its_last_byte_wherever_it_is_cut() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536] {
            for is_masked in [false, true] {
                let (whole, next) = (frame(0x82, length, is_masked), frame(0x89, 3, is_masked));
                let stream = [whole.clone(), next.clone()].concat();
                for cut in [
                    1,
                    2,
                    3,
                    9,
                    13,
                    whole.len() - 1,
                    whole.len(),
                    whole.len() + 1,
                    stream.len(),
                ] {
                    let (first, second) = stream.split_at(cut.min(stream.len()));
                    let mut position = FramePosition::default();
                    assert!(position.takes_frame(), "nothing was sent");
                    position.advance(first);
                    let between = first.len() == whole.len() || first.len() == stream.len();
                    assert_eq!(position.takes_frame(), between, "{length} {is_masked} {cut}");
                    position.advance(second);
                    assert!(position.takes_frame(), "{length} {is_masked} {cut}");
                }
            }
        }
    }

    #[test]
    fn nothing_follows_a_close_frame() {
        for first in [0x88, 0x08] {
            let mut position = FramePosition::default();
            position.advance(&frame(first, 2, false));
            assert!(!position.takes_frame());
        }
        let mut position = FramePosition::default();
        position.advance(&POLICY_VIOLATION);
        assert!(!position.takes_frame(), "ours is one too");
    }

    #[test]
    fn a_length_that_cannot_be_ends_in_no_close_frame() {
        let mut position = FramePosition::default();
        position.advance(&[0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]);
        position.advance(&[0; 100]);
        assert!(!position.takes_frame());
    }
}
