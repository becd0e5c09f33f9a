//! An amount of memory as manifests write it, `512Mi` or `1.5G`: a limit can be handed on as it stands there.

/// What a unit stands for (Kubernetes, "Quantity"); none is bytes.
const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

const WRONG: &str = "expected bytes, or a number with Ki, Mi, Gi, Ti, k, M, G or T, as in 512Mi";

/// Digits behind the point; more make no byte.
const FRACTION_MAX: usize = 9;

/// Reads it, in bytes.
pub(super) fn parse(text: &str) -> Result<u64, &'static str> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(WRONG)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.len() > FRACTION_MAX {
        return Err(WRONG);
    }
    let digits = |digits: &str| digits.parse::<u64>().map_err(|_| WRONG);
    let places = u32::try_from(fraction.len()).map_err(|_| WRONG)?;
    let parts = u128::from(digits(fraction)?) * u128::from(*unit) / 10_u128.pow(places);
    let parts = u64::try_from(parts).map_err(|_| WRONG)?;
    let whole = digits(whole)?.checked_mul(*unit).ok_or(WRONG)?;
    whole.checked_add(parts).ok_or(WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_manifests_write_them() {
        for (text, bytes) in [
            ("402653184", 402_653_184),
            ("512Mi", 512 << 20),
            ("1.5Gi", 3 << 29),
            ("1.5G", 1_500_000_000),
            ("64k", 64_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "Mi",
            "512mb",
            "1e9",
            "-1",
            "1..5Gi",
            "1.Gi",
            ".5Gi",
            "99999999999Ti",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
