//! The subjects in the specifications, and each mistake that makes a subject invalid.

use serde_json::json;

use super::*;

fn judge(value: &Value) -> Result<EventSubject, String> {
    EventSubject::of(Some(value)).map_err(|error| error.to_string())
}

fn subject(value: &Value) -> EventSubject {
    judge(value).expect("a subject")
}

fn simple(identifiers: Vec<SubjectIdentifier>) -> EventSubject {
    EventSubject::Simple(identifiers)
}

fn iss_sub(iss: &str, sub: &str) -> SubjectIdentifier {
    SubjectIdentifier::IssSub {
        iss: iss.to_owned(),
        sub: sub.to_owned(),
    }
}

fn email(address: &str) -> SubjectIdentifier {
    SubjectIdentifier::Email(address.to_owned())
}

fn opaque(id: &str) -> SubjectIdentifier {
    SubjectIdentifier::Opaque(id.to_owned())
}

/// RFC 9493 sections 3.2.1 to 3.2.8, SSF 1.0 sections 3.5.1 to 3.5.3 and 5.
#[test]
fn identifiers_of_each_format_are_read_and_only_those_by_which_somebody_can_be_found() {
    for (value, read) in [
        (
            json!({ "format": "email", "email": "user@example.com" }),
            vec![email("user@example.com")],
        ),
        (
            json!({ "format": "iss_sub", "iss": "https://issuer.example.com/", "sub": "145234573" }),
            vec![iss_sub("https://issuer.example.com/", "145234573")],
        ),
        (
            json!({ "format": "opaque", "id": "11112222333344445555" }),
            vec![opaque("11112222333344445555")],
        ),
        (
            json!({ "format": "account", "uri": "acct:example.user@service.example.com" }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "phone_number", "phone_number": "+12065550100" }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "did", "url": "did:example:123456" }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "uri", "uri": "https://user.example.com/" }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "aliases", "identifiers": [
                { "format": "email", "email": "user@example.com" },
                { "format": "phone_number", "phone_number": "+12065550100" },
                { "format": "email", "email": "user+qualifier@example.com" },
            ] }),
            vec![
                email("user@example.com"),
                SubjectIdentifier::Other,
                email("user+qualifier@example.com"),
            ],
        ),
        (
            json!({ "format": "jwt_id", "iss": "https://idp.example.com/1/", "jti": "B70BA622" }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "saml_assertion_id", "issuer": "https://idp.example.com/1/", "assertion_id": "_8e8d" }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "ip-addresses", "ip-addresses": ["10.29.37.75"] }),
            vec![SubjectIdentifier::Other],
        ),
        (
            json!({ "format": "catalog_item", "catalog_id": "c0384/winter/2354122" }),
            vec![SubjectIdentifier::Other],
        ),
        (json!({ "format": "account" }), vec![SubjectIdentifier::Other]),
    ] {
        assert_eq!(subject(&value), simple(read), "{value}");
    }
}

/// SSF 1.0 sections 3.3 and 5, CAEP 1.0 section 3.1.2.
#[test]
fn a_complex_subject_is_a_user_and_a_session_and_other_members_are_ignored() {
    let complex = subject(&json!({
        "format": "complex",
        "user": { "format": "iss_sub", "iss": "https://idp.example.com/1/", "sub": "jane.smith@example.com" },
        "session": { "format": "aliases", "identifiers": [
            { "format": "opaque", "id": "dMTlD|1600802906337.16|16008.16" },
            { "format": "did", "url": "did:example:1" },
        ] },
        "tenant": { "format": "opaque", "id": "123456789" },
        "device": "not looked at",
        "x_desk": null,
    }));
    let user = iss_sub("https://idp.example.com/1/", "jane.smith@example.com");
    let session = vec![
        opaque("dMTlD|1600802906337.16|16008.16"),
        SubjectIdentifier::Other,
    ];
    let user = Some(vec![user]);
    assert_eq!(complex, EventSubject::Complex { user, session });
}

/// RFC 9493 section 3 forbids writers to add them; SSF 1.0 section 4.2.3 requires readers to ignore them.
#[test]
fn members_that_a_format_does_not_describe_are_passed_over() {
    for (value, read) in [
        (
            json!({ "format": "email", "email": "a@b.example", "sub": 7, "note": {} }),
            email("a@b.example"),
        ),
        (
            json!({ "format": "iss_sub", "iss": "i", "sub": "s", "email": "a@b.example" }),
            iss_sub("i", "s"),
        ),
        (
            json!({ "format": "opaque", "id": "1", "identifiers": [] }),
            opaque("1"),
        ),
    ] {
        assert_eq!(subject(&value), simple(vec![read]), "{value}");
    }
}

#[test]
fn what_a_format_requires_has_to_be_a_text_that_is_neither_empty_nor_endless() {
    let lacks = "sub_id lacks a member of its format";
    let (iss, sub, email, id) = (lacks, lacks, lacks, lacks);
    let address = "sub_id is not an email address";
    for (value, refused) in [
        (json!({ "format": "iss_sub", "sub": "s" }), iss),
        (json!({ "format": "iss_sub", "iss": "", "sub": "s" }), iss),
        (json!({ "format": "iss_sub", "iss": ["i"], "sub": "s" }), iss),
        (
            json!({ "format": "iss_sub", "iss": "i".repeat(1_025), "sub": "s" }),
            iss,
        ),
        (json!({ "format": "iss_sub", "iss": "i" }), sub),
        (json!({ "format": "iss_sub", "iss": "i", "sub": "" }), sub),
        (json!({ "format": "iss_sub", "iss": "i", "sub": null }), sub),
        (json!({ "format": "iss_sub", "iss": "i", "sub": 7 }), sub),
        (
            json!({ "format": "iss_sub", "iss": "i", "sub": "s".repeat(1_025) }),
            sub,
        ),
        (json!({ "format": "email" }), email),
        (json!({ "format": "email", "email": "" }), email),
        (json!({ "format": "email", "email": null }), email),
        (json!({ "format": "email", "email": "nobody" }), address),
        (json!({ "format": "email", "email": "@example.com" }), address),
        (json!({ "format": "email", "email": "user@" }), address),
        (
            json!({ "format": "email", "email": format!("{}@example.com", "u".repeat(243)) }),
            email,
        ),
        (json!({ "format": "opaque" }), id),
        (json!({ "format": "opaque", "id": "" }), id),
        (json!({ "format": "opaque", "id": { "id": "1" } }), id),
        (json!({ "format": "opaque", "id": "1".repeat(1_025) }), id),
    ] {
        assert_eq!(judge(&value), Err(refused.to_owned()), "{value}");
        let within = json!({ "format": "complex", "user": value });
        assert_eq!(judge(&within), Err(refused.to_owned()), "{within}");
        let within = json!({ "format": "aliases", "identifiers": [{ "format": "uri" }, value] });
        assert_eq!(judge(&within), Err(refused.to_owned()), "{within}");
    }
    for value in [
        json!({ "format": "iss_sub", "iss": "i".repeat(1_024), "sub": "s".repeat(1_024) }),
        json!({ "format": "email", "email": format!("{}@example.com", "u".repeat(242)) }),
        json!({ "format": "email", "email": "\"odd@local\"@example.com" }),
        json!({ "format": "opaque", "id": "1".repeat(1_024) }),
    ] {
        assert!(judge(&value).is_ok(), "{value}");
    }
}

#[test]
fn what_is_no_object_or_has_no_format_is_no_subject() {
    assert!(EventSubject::of(None).is_err());
    for value in [json!(null), json!("alice"), json!([]), json!(7), json!(true)] {
        assert_eq!(
            judge(&value),
            Err("sub_id is absent or no object".to_owned()),
            "{value}"
        );
    }
    for value in [
        json!({}),
        json!({ "format": null }),
        json!({ "format": "" }),
        json!({ "format": 7 }),
        json!({ "format": ["email"], "email": "a@b.example" }),
        // Google's name for it; SSF 1.0 does not apply there (RISC 1.0 section 3.1).
        json!({ "subject_type": "email", "email": "a@b.example" }),
    ] {
        assert_eq!(judge(&value), Err("sub_id has no format".to_owned()), "{value}");
    }
    // Names are case-sensitive.
    assert_eq!(
        subject(&json!({ "format": "Email", "email": "a@b.example" })),
        simple(vec![SubjectIdentifier::Other])
    );
}

#[test]
fn aliases_are_a_list_of_identifiers_and_hold_no_aliases() {
    let member = "sub_id has no aliases, or too many";
    let nested = json!({ "format": "aliases", "identifiers": [{ "format": "opaque", "id": "1" }] });
    let complex = json!({ "format": "complex", "user": { "format": "opaque", "id": "1" } });
    for (identifiers, refused) in [
        (json!(null), member),
        (json!([]), member),
        (json!({}), member),
        (json!("email"), member),
        (json!(["email"]), "sub_id is absent or no object"),
        (json!([{ "email": "a@b.example" }]), "sub_id has no format"),
        (json!([nested]), "sub_id is nested"),
        (json!([complex]), "sub_id is nested"),
        (json!(vec![json!({ "format": "uri" }); 17]), member),
    ] {
        let value = json!({ "format": "aliases", "identifiers": identifiers });
        assert_eq!(judge(&value), Err(refused.to_owned()), "{value}");
        let within = json!({ "format": "complex", "session": value });
        assert_eq!(judge(&within), Err(refused.to_owned()), "{within}");
    }
    assert_eq!(judge(&json!({ "format": "aliases" })), Err(member.to_owned()));
    let most = json!({ "format": "aliases", "identifiers": vec![json!({ "format": "uri" }); 16] });
    assert!(judge(&most).is_ok());
}

#[test]
fn a_complex_subject_has_members_none_of_which_is_complex() {
    let complex = json!({ "format": "complex", "user": { "format": "opaque", "id": "1" } });
    for (value, refused) in [
        (
            json!({ "format": "complex" }),
            "sub_id is complex and has no member",
        ),
        (
            json!({ "format": "complex", "user": null }),
            "sub_id is absent or no object",
        ),
        (
            json!({ "format": "complex", "session": "s" }),
            "sub_id is absent or no object",
        ),
        (json!({ "format": "complex", "user": {} }), "sub_id has no format"),
        (
            json!({ "format": "complex", "user": complex }),
            "sub_id is nested",
        ),
        (
            json!({ "format": "complex", "session": complex }),
            "sub_id is nested",
        ),
    ] {
        assert_eq!(judge(&value), Err(refused.to_owned()), "{value}");
    }
}

#[test]
fn a_stream_is_one_opaque_identifier() {
    for (identifiers, is_stream) in [
        (vec![opaque("1")], true),
        (vec![opaque("1"), opaque("2")], false),
        (vec![iss_sub("i", "s")], false),
    ] {
        assert_eq!(simple(identifiers).is_stream(), is_stream);
    }
}

#[test]
fn nobodys_identifier_is_in_a_debug_output() {
    let whole = json!({
        "format": "complex",
        "user": { "format": "aliases", "identifiers": [
            { "format": "email", "email": "hunter2@b.example" },
            { "format": "iss_sub", "iss": "hunter2", "sub": "hunter2" },
        ] },
        "session": { "format": "opaque", "id": "hunter2" },
        "tenant": { "format": "opaque", "id": "hunter2" },
    });
    let shown = format!("{:?} {:?}", subject(&whole), subject(&whole["user"]));
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("iss_sub"), "{shown}");
}
