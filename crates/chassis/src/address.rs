//! Network addresses as text.

use std::net::IpAddr;

/// An address as its `Display` writes it. Services write one into the record of every request. For IPv4, which most are,
/// digits are written without the formatter, whose dynamic dispatch costs several times as much.
#[must_use]
pub fn text(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else {
        return address.to_string();
    };
    let mut text = String::with_capacity("255.255.255.255".len());
    for (at, octet) in address.octets().into_iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        for (unit, is_written) in [(100, octet >= 100), (10, octet >= 10), (1, true)] {
            if is_written {
                text.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn addresses_are_written_as_everybody_writes_them() {
        for octet in 0..=u8::MAX {
            for address in [Ipv4Addr::new(octet, 0, 10, 255), Ipv4Addr::new(1, 99, 100, octet)] {
                assert_eq!(text(address.into()), address.to_string());
            }
        }
        let six = "2001:db8::7".parse().unwrap();
        assert_eq!(text(six), "2001:db8::7");
    }
}
