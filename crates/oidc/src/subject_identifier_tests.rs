//! Subjects as the specifications have them, and each thing that makes one none.

use serde_json::json;

use super::*;

fn judge(value: &Value) -> Result<EventSubject, SubjectError> {
    EventSubject::of(Some(value))
}

fn subject(value: &Value) -> EventSubject {
    judge(value).expect("a subject")
}

fn simple(identifiers: Vec<SubjectIdentifier>) -> EventSubject {
    EventSubject::Simple(SimpleSubject(identifiers))
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

fn other(format: &str) -> SubjectIdentifier {
    SubjectIdentifier::Other(format.to_owned())
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
            vec![other("account")],
        ),
        (
            json!({ "format": "phone_number", "phone_number": "+12065550100" }),
            vec![other("phone_number")],
        ),
        (
            json!({ "format": "did", "url": "did:example:123456" }),
            vec![other("did")],
        ),
        (
            json!({ "format": "uri", "uri": "https://user.example.com/" }),
            vec![other("uri")],
        ),
        (
            json!({ "format": "aliases", "identifiers": [
                { "format": "email", "email": "user@example.com" },
                { "format": "phone_number", "phone_number": "+12065550100" },
                { "format": "email", "email": "user+qualifier@example.com" },
            ] }),
            vec![
                email("user@example.com"),
                other("phone_number"),
                email("user+qualifier@example.com"),
            ],
        ),
        (
            json!({ "format": "jwt_id", "iss": "https://idp.example.com/1/", "jti": "B70BA622" }),
            vec![other("jwt_id")],
        ),
        (
            json!({ "format": "saml_assertion_id", "issuer": "https://idp.example.com/1/", "assertion_id": "_8e8d" }),
            vec![other("saml_assertion_id")],
        ),
        (
            json!({ "format": "ip-addresses", "ip-addresses": ["10.29.37.75"] }),
            vec![other("ip-addresses")],
        ),
        (
            json!({ "format": "catalog_item", "catalog_id": "c0384/winter/2354122" }),
            vec![other("catalog_item")],
        ),
        (json!({ "format": "account" }), vec![other("account")]),
    ] {
        assert_eq!(subject(&value), simple(read), "{value}");
    }
}

/// SSF 1.0 sections 3.3 and 5, CAEP 1.0 section 3.1.2.
#[test]
fn a_complex_subject_is_a_person_a_session_and_names_of_what_else_there_is() {
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
    let session = vec![opaque("dMTlD|1600802906337.16|16008.16"), other("did")];
    let others = ["device", "tenant", "x_desk"].map(str::to_owned);
    assert_eq!(
        complex,
        EventSubject::Complex(ComplexSubject {
            user: Some(SimpleSubject(vec![user])),
            session: Some(SimpleSubject(session)),
            others: others.to_vec(),
        })
    );
}

/// RFC 9493 section 3 forbids them to who writes; SSF 1.0 section 4.2.3 has who reads ignore them.
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
    let member = |format, member| SubjectError::Member { format, member };
    let (iss, sub) = (member("iss_sub", "iss"), member("iss_sub", "sub"));
    let (email, id) = (member("email", "email"), member("opaque", "id"));
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
        (json!({ "format": "email", "email": "nobody" }), email),
        (json!({ "format": "email", "email": "@example.com" }), email),
        (json!({ "format": "email", "email": "user@" }), email),
        (
            json!({ "format": "email", "email": format!("{}@example.com", "u".repeat(243)) }),
            email,
        ),
        (json!({ "format": "opaque" }), id),
        (json!({ "format": "opaque", "id": "" }), id),
        (json!({ "format": "opaque", "id": { "id": "1" } }), id),
        (json!({ "format": "opaque", "id": "1".repeat(1_025) }), id),
    ] {
        assert_eq!(judge(&value), Err(refused), "{value}");
        let within = json!({ "format": "complex", "user": value });
        assert_eq!(judge(&within), Err(refused), "{within}");
        let within = json!({ "format": "aliases", "identifiers": [{ "format": "uri" }, value] });
        assert_eq!(judge(&within), Err(refused), "{within}");
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
    assert_eq!(EventSubject::of(None), Err(SubjectError::NoObject));
    for value in [json!(null), json!("alice"), json!([]), json!(7), json!(true)] {
        assert_eq!(judge(&value), Err(SubjectError::NoObject), "{value}");
    }
    for value in [
        json!({}),
        json!({ "format": null }),
        json!({ "format": "" }),
        json!({ "format": 7 }),
        json!({ "format": ["email"], "email": "a@b.example" }),
        json!({ "format": "f".repeat(129) }),
        // As Google names it, with whom SSF 1.0 has nothing to do (RISC 1.0 section 3.1).
        json!({ "subject_type": "email", "email": "a@b.example" }),
    ] {
        assert_eq!(judge(&value), Err(SubjectError::Format), "{value}");
    }
    assert!(judge(&json!({ "format": "f".repeat(128) })).is_ok());
    // Names are compared as they are.
    assert_eq!(
        subject(&json!({ "format": "Email", "email": "a@b.example" })),
        simple(vec![other("Email")])
    );
}

#[test]
fn aliases_are_a_list_of_identifiers_and_hold_no_aliases() {
    let member = SubjectError::Member {
        format: "aliases",
        member: "identifiers",
    };
    let nested = json!({ "format": "aliases", "identifiers": [{ "format": "opaque", "id": "1" }] });
    let complex = json!({ "format": "complex", "user": { "format": "opaque", "id": "1" } });
    for (identifiers, refused) in [
        (json!(null), member),
        (json!([]), member),
        (json!({}), member),
        (json!("email"), member),
        (json!(["email"]), SubjectError::NoObject),
        (json!([{ "email": "a@b.example" }]), SubjectError::Format),
        (json!([nested]), SubjectError::Nested),
        (json!([complex]), SubjectError::Nested),
        (json!(vec![json!({ "format": "uri" }); 17]), SubjectError::TooMany),
    ] {
        let value = json!({ "format": "aliases", "identifiers": identifiers });
        assert_eq!(judge(&value), Err(refused), "{value}");
        let within = json!({ "format": "complex", "session": value });
        assert_eq!(judge(&within), Err(refused), "{within}");
    }
    assert_eq!(judge(&json!({ "format": "aliases" })), Err(member));
    let most = json!({ "format": "aliases", "identifiers": vec![json!({ "format": "uri" }); 16] });
    assert!(judge(&most).is_ok());
}

#[test]
fn a_complex_subject_has_members_none_of_which_is_complex() {
    let complex = json!({ "format": "complex", "user": { "format": "opaque", "id": "1" } });
    for (value, refused) in [
        (json!({ "format": "complex" }), SubjectError::Empty),
        (
            json!({ "format": "complex", "user": null }),
            SubjectError::NoObject,
        ),
        (
            json!({ "format": "complex", "session": "s" }),
            SubjectError::NoObject,
        ),
        (json!({ "format": "complex", "user": {} }), SubjectError::Format),
        (
            json!({ "format": "complex", "user": complex }),
            SubjectError::Nested,
        ),
        (
            json!({ "format": "complex", "session": complex }),
            SubjectError::Nested,
        ),
        (
            json!({ "format": "complex", "n".repeat(129): {} }),
            SubjectError::TooMany,
        ),
    ] {
        assert_eq!(judge(&value), Err(refused), "{value}");
    }
    let with_members = |count: usize| {
        let mut value = json!({ "format": "complex" });
        for number in 0..count {
            value[format!("m{number}")] = json!({});
        }
        judge(&value)
    };
    assert!(with_members(16).is_ok());
    assert_eq!(with_members(17), Err(SubjectError::TooMany));
}

/// SSF 1.0 sections 3.6 and 7.1.
#[test]
fn a_member_that_must_not_be_passed_over_and_is_not_known_takes_the_place_of_the_subject() {
    let whole = json!({
        "format": "complex",
        "user": { "format": "email", "email": "a@b.example" },
        "session": { "format": "did", "url": "did:example:1" },
        "tenant": { "format": "opaque", "id": "1" },
    });
    for (critical, passed_over) in [
        (&[][..], None),
        (&["user"], None),
        (&["device", "group"], None),
        (&["session"], Some("session")),
        (&["user", "tenant"], Some("tenant")),
        (&["format"], None),
    ] {
        let critical: Vec<_> = critical.iter().map(|name| (*name).to_owned()).collect();
        let judged = subject(&whole).unless_critical(&critical);
        let expected = passed_over.map_or(subject(&whole), |name| EventSubject::Critical(name.to_owned()));
        assert_eq!(judged, expected, "{critical:?}");
    }
    // Simple subjects have no members of this kind.
    let simple = json!({ "format": "did", "url": "did:example:1" });
    let critical = ["user".to_owned(), "url".to_owned()];
    assert_eq!(subject(&simple).unless_critical(&critical), subject(&simple));
}

#[test]
fn a_subject_is_known_by_any_of_its_identifiers_and_a_stream_by_its_only_one() {
    for (identifiers, is_known, stream) in [
        (vec![opaque("1")], true, Some("1")),
        (vec![opaque("1"), opaque("2")], true, None),
        (vec![other("did"), email("a@b.example")], true, None),
        (vec![other("did"), other("uri")], false, None),
        (vec![iss_sub("i", "s")], true, None),
    ] {
        let subject = SimpleSubject(identifiers);
        assert_eq!((subject.is_known(), subject.opaque()), (is_known, stream));
        assert!(!subject.identifiers().is_empty());
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
    assert!(shown.contains("iss_sub") && shown.contains("tenant"), "{shown}");
}
