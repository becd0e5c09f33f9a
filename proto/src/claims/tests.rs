use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use prost::Message as _;
use prost_types::value::Kind;
use serde_json::json;

use super::*;

/// The Struct that prost makes of a JSON object: what every language puts on the wire.
fn told(object: &Map<String, Value>) -> prost_types::Struct {
    let fields = object.iter().map(|(name, value)| (name.clone(), said(value)));
    prost_types::Struct {
        fields: fields.collect(),
    }
}

fn said(value: &Value) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(yes) => Kind::BoolValue(*yes),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap()),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => Kind::ListValue(prost_types::ListValue {
            values: items.iter().map(said).collect(),
        }),
        Value::Object(object) => Kind::StructValue(told(object)),
    };
    prost_types::Value { kind: Some(kind) }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else {
        panic!("an object is written here")
    };
    object
}

/// Letters that JSON escapes, and some around them.
const ODD: &str = r"[\x00-\u{2ff}]{0,12}";

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        // Fractions of few digits: serde_json reads others with an error in the last bit.
        any::<i32>().prop_map(|whole| Value::from(f64::from(whole) + 0.0625)),
        any::<String>().prop_map(Value::from),
        ODD.prop_map(Value::from),
        "[a-z]{100,300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(any_name(), inner, 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{1,12}", any::<String>(), ODD]
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(any_name(), any_value(), 0..8).prop_map(|members| members.into_iter().collect())
}

proptest! {
    #[test]
    fn any_claims_survive_the_round_trip(object in any_object()) {
        let claims = to_struct(&object);
        let text = serde_json::to_vec(&object).unwrap();
        prop_assert_eq!(&from_struct(&claims), &object);
        prop_assert_eq!(&to_json(&claims), &text);
        prop_assert_eq!(&from_json(&text, None).unwrap().0, &claims.0);
        for (name, value) in &object {
            prop_assert_eq!(claims.get(name), Some(value.clone()));
        }
    }

    #[test]
    fn every_language_reads_what_is_written_and_is_read_as_it_writes(object in any_object(), cut: usize) {
        let claims = to_struct(&object);
        let told = told(&object);
        prop_assert_eq!(&prost_types::Struct::decode(claims.encode_to_vec().as_slice()).unwrap(), &told);
        let bytes = told.encode_to_vec();
        prop_assert_eq!(&Claims::decode(bytes.as_slice()).unwrap(), &claims);
        let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
        prop_assert_eq!(&Claims::decode(first.chain(second)).unwrap(), &claims, "in two pieces");
    }

    #[test]
    fn members_come_in_any_order_and_the_last_of_a_name_counts(
        before in any_object(), object in any_object(), beside in any_name(),
    ) {
        let mut all = before.clone();
        all.extend(object.clone());
        let members = object.iter().rev().map(|(name, value)| format!("{}:{value}", json!(name)));
        let members: Vec<String> =
            before.iter().map(|(name, value)| format!("{}:{value}", json!(name))).chain(members).collect();
        let text = format!("{{{}}}", members.join(","));
        prop_assert_eq!(&from_json(text.as_bytes(), None).unwrap().0, &to_struct(&all).0);
        let inside = format!("{{\"inside\":{text}}}");
        prop_assert_eq!(from_struct(&from_json(inside.as_bytes(), None).unwrap()), self::object(json!({"inside": all})));

        let bytes = [told(&before).encode_to_vec(), told(&object).encode_to_vec()].concat();
        let merged = Claims::decode(bytes.as_slice()).unwrap();
        prop_assert_eq!(&merged, &to_struct(&all));
        prop_assert_eq!(to_json(&merged), serde_json::to_vec(&all).unwrap());
        prop_assert_eq!(from_struct(&merged), all.clone());

        let with = from_json(text.as_bytes(), Some((&beside, "ada"))).unwrap();
        all.entry(beside).or_insert_with(|| "ada".into());
        prop_assert_eq!(&with.0, &to_struct(&all).0);
    }

    #[test]
    fn what_prost_refuses_is_refused_and_the_rest_says_the_same(
        object in any_object(), at: usize, byte: u8, end: usize,
    ) {
        let mut bytes = told(&object).encode_to_vec();
        if !bytes.is_empty() {
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(end % (bytes.len() * 4) + 1);
        }
        let told = prost_types::Struct::decode(bytes.as_slice());
        let claims = Claims::decode(bytes.as_slice());
        prop_assert_eq!(claims.is_ok(), told.is_ok());
        if let (Ok(claims), Ok(told)) = (claims, told) {
            let plain = to_struct(&read::of_struct(&told));
            prop_assert_eq!(from_struct(&claims), from_struct(&plain));
            prop_assert_eq!(to_json(&claims), to_json(&plain));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_without_panic(bytes: Vec<u8>) {
        prop_assert_eq!(Claims::decode(bytes.as_slice()).is_ok(), prost_types::Struct::decode(bytes.as_slice()).is_ok());
        let _ = serde_json::to_vec(&read::Object(&bytes));
        let _ = json::put_object(&mut Vec::new(), &bytes);
    }
}

#[test]
fn what_is_deeper_than_is_looked_through_is_read_as_prost_reads_it() {
    let shapes: [fn(Value) -> Value; 2] = [|inner| json!({ "a": [inner] }), |inner| json!([inner])];
    for (shape, depth) in shapes
        .into_iter()
        .flat_map(|shape| (0..70).map(move |depth| (shape, depth)))
    {
        let deep = (0..depth).fold(Value::Null, |inner, _| shape(inner));
        let bytes = to_struct(&object(json!({ "deep": deep }))).encode_to_vec();
        let told = prost_types::Struct::decode(bytes.as_slice());
        let claims = Claims::decode(bytes.as_slice());
        assert_eq!(claims.is_ok(), told.is_ok(), "{depth}");
        if let Ok(claims) = claims {
            assert_eq!(claims.get("deep"), Some(deep));
        }
    }
}

#[test]
fn letters_that_are_none_are_refused_wherever_they_stand() {
    let claims = to_struct(&object(json!({ "né": [{ "é": "ü" }] })));
    let bytes = claims.encode_to_vec();
    assert_eq!(Claims::decode(bytes.as_slice()).unwrap(), claims);
    for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte > 0x7f) {
        let mut broken = bytes.clone();
        broken[at] = if *byte < 0xc0 { b'x' } else { 0xff };
        assert!(Claims::decode(broken.as_slice()).is_err(), "{at}");
    }
}

#[test]
fn text_that_is_no_object_is_refused() {
    for text in [
        "",
        "[]",
        "null",
        "{\"a\":1",
        "{} {}",
        "{\"a\":1e999}",
        "{1:2}",
        "{\"a\":\"\\ud800\"}",
    ] {
        assert!(from_json(text.as_bytes(), None).is_err(), "{text}");
    }
    assert!(from_json(b"{\"a\":\"\xff\"}", None).is_err());
}

#[test]
fn a_number_json_cannot_say_becomes_null() {
    let infinite = prost_types::Value {
        kind: Some(Kind::NumberValue(f64::INFINITY)),
    };
    let message = prost_types::Struct {
        fields: [("a".to_owned(), infinite)].into(),
    };
    let claims = Claims::decode(message.encode_to_vec().as_slice()).unwrap();
    assert_eq!(to_json(&claims), b"{\"a\":null}");
}

#[test]
fn whole_numbers_come_back_whole() {
    let claims = from_json(
        b"{\"a\":3.0,\"b\":-0.0,\"c\":1e3,\"d\":18446744073709551615}",
        None,
    )
    .unwrap();
    assert_eq!(
        to_json(&claims),
        b"{\"a\":3,\"b\":0,\"c\":1000,\"d\":1.8446744073709552e+19}"
    );
}

#[test]
fn debug_tells_nothing_of_a_person() {
    let claims = to_struct(&object(json!({"email": "ada@example.com"})));
    assert_eq!(format!("{claims:?}"), "…");
}
