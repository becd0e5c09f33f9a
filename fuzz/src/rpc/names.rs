//! Placeholders in inputs for the names of real sessions, which differ in every run.

/// The placeholder for the secret ID of the sender's own session.
const ID: &[u8; 32] = b"1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d";

/// The placeholder for its handle.
const HANDLE: &[u8; 32] = b"aaaaaaaabbbbbbbbccccccccdddddddd";

/// A session the inputs may name.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) id: String,
    pub(crate) handle: String,
}

impl Own {
    /// The input with this session's names instead of placeholders; lengths stay equal.
    pub(crate) fn put_into(&self, input: &[u8]) -> Vec<u8> {
        let input = replaced(input, ID, self.id.as_bytes());
        replaced(&input, HANDLE, self.handle.as_bytes())
    }
}

fn replaced(input: &[u8], name: &[u8; 32], by: &[u8]) -> Vec<u8> {
    let mut output = input.to_vec();
    if by.len() != name.len() {
        return output;
    }
    for start in 0..output.len().saturating_sub(name.len() - 1) {
        if output[start..].starts_with(name) {
            output[start..start + name.len()].copy_from_slice(by);
        }
    }
    output
}

/// Whether `bytes` contains `text`.
pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
