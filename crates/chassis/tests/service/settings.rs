//! Reading settings from given values.

use chassis::settings::{Reader, Service, Setting, Source, Topic, Zero, toml_file};

const fn setting(name: &'static str, default: &'static str, secret: bool) -> Setting {
    Setting {
        name,
        default,
        value: "TEXT",
        secret,
        help: "",
    }
}

static TOPIC: Topic = Topic {
    title: "Test",
    settings: &[
        setting("T_TEXT", "fallback", false),
        setting("T_NONE", "", false),
        setting("T_NUMBER", "60", false),
        setting("T_LISTEN", "127.0.0.1:1", false),
        setting("T_SECRET", "", true),
        setting("SHARED_SCOPE", "openid", false),
    ],
};

static SERVICE: Service = Service {
    name: "t",
    prefixes: &["T_"],
    shared_prefix: Some("SHARED_"),
    about: "",
    first_settings: &[],
    fixed: &[],
    topics: &[&TOPIC],
};

/// The result of `read`, the mistakes and the warnings.
fn read<T>(
    pairs: &[(&str, &str)],
    read: impl FnOnce(&mut Reader<'_>) -> T,
) -> (Option<T>, Vec<String>, Vec<String>) {
    let source = Source::from_pairs(&SERVICE, pairs);
    let mut reader = Reader::new(&source);
    let value = read(&mut reader);
    let told = |list: &[chassis::settings::SettingNotice]| list.iter().map(ToString::to_string).collect();
    match reader.finish(value) {
        Ok((value, warnings)) => (Some(value), Vec::new(), told(&warnings)),
        Err(wrong) => (
            None,
            wrong.mistakes.iter().map(ToString::to_string).collect(),
            told(&wrong.warnings),
        ),
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let (value, _, _) = read(&[("T_TEXT", " "), ("T_NONE", "")], |r| {
        (r.text("T_TEXT"), r.optional_text("T_NONE"))
    });
    assert_eq!(value, Some(("fallback".to_owned(), None)));
}

#[test]
fn numbers_are_whole_positive_and_bounded() {
    for (given, expected) in [
        ("7", Some(7)),
        ("", Some(60)),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("60s", None),
        ("99999999999999999999", None),
        ("9999999999999", None),
    ] {
        let (value, mistakes, _) = read(&[("T_NUMBER", given)], |r| r.secs("T_NUMBER", Zero::Refused));
        assert_eq!(value, expected, "{given}");
        assert_eq!(mistakes.len(), usize::from(expected.is_none()), "{mistakes:?}");
    }
    assert_eq!(
        read(&[("T_NUMBER", "0")], |r| r.secs("T_NUMBER", Zero::Allowed)).0,
        Some(0)
    );
}

#[test]
fn lists_lose_blanks_and_empty_members() {
    let (value, _, _) = read(&[("T_TEXT", "a, b,,c ,")], |r| r.list("T_TEXT"));
    assert_eq!(value.unwrap(), ["a", "b", "c"]);
}

#[test]
fn an_address_may_be_localhost_or_off() {
    for (given, expected) in [
        ("localhost:80", Some("127.0.0.1:80")),
        ("off", None),
        ("[::1]:2", Some("[::1]:2")),
    ] {
        let (value, _, _) = read(&[("T_LISTEN", given)], |r| r.socket_addr("T_LISTEN"));
        assert_eq!(
            value.unwrap().map(|address| address.to_string()).as_deref(),
            expected
        );
    }
    assert_eq!(
        read(&[("T_LISTEN", ":80")], |r| r.socket_addr("T_LISTEN"))
            .1
            .len(),
        1
    );
}

#[test]
fn all_mistakes_are_collected_in_one_go() {
    let (_, mistakes, _) = read(&[("T_NUMBER", "x"), ("T_LISTEN", "y")], |r| {
        r.secs("T_NUMBER", Zero::Refused);
        r.socket_addr("T_LISTEN");
        r.required_text("T_NONE");
        r.text("T_UNDECLARED");
    });
    let starts: Vec<&str> = mistakes
        .iter()
        .filter_map(|m| m.split([' ', ':']).next())
        .collect();
    assert_eq!(starts, ["T_NUMBER", "T_LISTEN", "T_NONE", "T_UNDECLARED"]);
}

#[test]
fn a_secret_comes_from_its_file_without_the_line_end_and_the_byte_order_mark() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for content in ["correct horse\n", "\u{feff}correct horse\r\n"] {
        std::fs::write(file.path(), content).unwrap();
        let (value, _, _) = read(&[("T_SECRET_FILE", path)], |r| {
            (r.secret("T_SECRET"), r.secret_file("T_SECRET"))
        });
        let (secret, followed) = value.unwrap();
        assert_eq!(secret.unwrap().expose(), "correct horse", "{content:?}");
        assert_eq!(followed.as_deref(), Some(file.path()));
    }
}

#[test]
fn a_secret_given_twice_or_by_an_unusable_file_is_a_mistake() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let path = empty.path().to_str().unwrap();
    let good = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(good.path(), "another-secret-value").unwrap();
    let large = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(large.path(), "x".repeat((1 << 20) + 1)).unwrap();
    for pairs in [
        &[("T_SECRET", "a-secret-value"), ("T_SECRET_FILE", path)][..],
        &[
            ("T_SECRET", "a-secret-value"),
            ("T_SECRET_FILE", good.path().to_str().unwrap()),
        ],
        &[("T_SECRET_FILE", path)],
        &[("T_SECRET_FILE", "/nowhere/at/all")],
        &[("T_SECRET_FILE", large.path().to_str().unwrap())],
    ] {
        let (_, mistakes, _) = read(pairs, |r| r.secret("T_SECRET"));
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(
            mistakes[0].contains("T_SECRET_FILE") && !mistakes[0].contains("a-secret-value"),
            "{mistakes:?}"
        );
    }
}

#[test]
fn no_message_holds_a_secret_whoever_wrote_it() {
    let (_, mistakes, _) = read(&[("T_SECRET", "first-key,second-key")], |r| {
        r.wrong("T_TEXT", "compared with second-key\nfirst-key");
    });
    assert_eq!(mistakes, ["T_TEXT (--text): compared with … …"]);
}

#[test]
fn mistyped_variables_are_warned_of_but_not_what_kubernetes_sets() {
    let given = [
        ("T_TEXTS", "x"),
        ("SHARED_SCOPES", "x"),
        ("T_SVC_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("T_PORT", "tcp://10.0.0.1:80"),
        ("OTHER", "x"),
    ];
    let (_, _, warnings) = read(&given, |_| ());
    assert_eq!(
        warnings,
        [
            "SHARED_SCOPES: is not a setting of t; did you mean SHARED_SCOPE?",
            "T_TEXTS: is not a setting of t; did you mean T_TEXT?"
        ]
    );
}

#[test]
fn a_file_of_tables_is_read_whole_or_every_mistake_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables.toml");
    let told = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let (value, mistakes, _) = read(&[], |reader| {
            reader.toml_file("T_TEXT", &path, |text| {
                toml_file::parse(text, |file| {
                    file.tables("thing", 2, |table| table.required("name")?.string())
                })
            })
        });
        let place = format!("T_TEXT (--text): {}, ", path.display());
        let mistakes = mistakes.iter().map(|mistake| mistake.replace(&place, ""));
        (value.flatten(), mistakes.collect::<Vec<_>>())
    };
    let names = Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(
        told(b"[[thing]]\nname = \"a\"\n[[thing]]\nname = 'b'\n"),
        (names, Vec::new())
    );
    let wrong = b"things = 1\n[[thing]]\nnam = 'a'\n[[thing]]\nname = 2\n[[thing]]\nname = ' '\nelse = 1\n";
    let expected = [
        "line 1: there are 3 things; at most 2 are taken",
        "line 1: unknown key \"things\": did you mean \"thing\"?",
        "line 2: the thing has no name",
        "line 3: unknown key \"nam\": did you mean \"name\"?",
        "line 5: expected a text in quotes",
        "line 7: expected a text that is not empty",
        "line 8: unknown key \"else\"",
    ];
    assert_eq!(told(wrong), (None, expected.map(str::to_owned).to_vec()));
    let (_, mistakes) = told(b"[[thing]\nname = = 1\n");
    let lines = mistakes.iter().map(|mistake| &mistake[..8]);
    assert_eq!(lines.collect::<Vec<_>>(), ["line 1: ", "line 2: ", "line 2: "]);
    assert!(told(b"\xff").1[0].ends_with("tables.toml is not UTF-8 text"));
    std::fs::remove_file(&path).unwrap();
    let (_, mistakes, _) = read(&[], |reader| reader.toml_file("T_TEXT", &path, |_| Ok(())));
    assert!(
        mistakes[0].contains("tables.toml cannot be read: "),
        "{mistakes:?}"
    );
}
