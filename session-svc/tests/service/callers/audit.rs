//! The audit log: one record for every call, ending and refresh, with the caller, session and outcome. No
//! record contains a secret.

use chassis::clock::{Clock as _, SystemClock};
use serde_json::Value;
use session_proto::v1;
use session_svc::callers::Rpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request};
use tonic_prost::ProstCodec;

use super::log::log;
use super::support::*;

/// A service with its own caller, so that its records differ from those of other tests.
pub(crate) async fn world_of(name: &str, rpcs: &[&str]) -> (World, Client) {
    let dns = format!("{name}.internal");
    let world = world(Some(&entry(&format!("dns:{dns}"), rpcs))).await;
    world
        .certificates
        .issue("ca", "mine", &format!("subjectAltName=DNS:{dns}"));
    let client = world.client("mine");
    (world, client)
}

pub(crate) fn by(name: &str) -> impl Fn(&Value) -> bool {
    let caller = format!("dns:{name}.internal");
    move |record| record["caller"] == caller.as_str()
}

pub(crate) fn alice() -> v1::CreateSessionRequest {
    let user = serde_json::json!({"sub": "subject-of-the-audit", "email": "alice@audit.example"});
    v1::CreateSessionRequest {
        issuer: "https://issuer.example".to_owned(),
        user: user.to_string(),
        tokens: Some(v1::TokenSet {
            access_token: "access-token-of-the-audit".to_owned(),
            refresh_token: "refresh-token-of-the-audit".to_owned(),
            id_token: "id-token-of-the-audit".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// How many calls of a method with this outcome were measured.
fn measured(world: &World, rpc: Rpc, code: &str) -> u64 {
    let families = world.metrics.gather();
    let metric = families
        .iter()
        .filter(|family| family.name() == "rpc_server_call_duration_seconds")
        .flat_map(|family| family.get_metric())
        .find(|metric| {
            let has = |value: &str| metric.get_label().iter().any(|label| label.value() == value);
            has(rpc.name()) && has(code)
        });
    metric.map_or(0, |metric| metric.get_histogram().get_sample_count())
}

#[tokio::test]
async fn every_call_is_recorded_once_with_caller_session_and_outcome() {
    let (world, mut client) = world_of(
        "recorded",
        &["CreateSession", "GetSession", "GetAccessToken", "EndSession"],
    )
    .await;
    let created = client.create_session(alice()).await.unwrap().into_inner();
    let (id, handle) = (created.session_id, created.session.unwrap().handle);
    let get = v1::GetSessionRequest {
        by: Some(v1::get_session_request::By::SessionId(id.clone())),
    };
    client.get_session(get.clone()).await.unwrap();
    let token = v1::GetAccessTokenRequest {
        session_id: id.clone(),
        ..Default::default()
    };
    client.get_access_token(token).await.unwrap();
    let end = v1::EndSessionRequest {
        by: Some(v1::end_session_request::By::SessionId(id.clone())),
        cause: v1::Cause::FrontChannelLogout.into(),
        ..Default::default()
    };
    client.end_session(end).await.unwrap();
    client.get_session(get.clone()).await.unwrap_err();
    let batch = v1::BatchGetSessionsRequest {
        requests: vec![get.clone(), get],
    };
    client.batch_get_sessions(batch).await.unwrap();
    client
        .list_sessions(v1::ListSessionsRequest::default())
        .await
        .unwrap_err();

    let records = log().wait_for(8, by("recorded")).await;
    let (ends, records): (Vec<_>, Vec<_>) = records
        .into_iter()
        .partition(|record| record["event"] == "session.end");
    let reported: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or_default();
            let method = text("rpc.method").rsplit('/').next().unwrap();
            // A log record of a read follows the conventions for spans.
            let reason = [text("reason"), text("error.type")].concat();
            (text("target"), method, text("rpc.response.status_code"), reason)
        })
        .collect();
    let reported: Vec<_> = reported
        .iter()
        .map(|(target, method, code, reason)| (*target, *method, *code, reason.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            ("audit::record", "CreateSession", "OK", ""),
            ("audit::read", "GetSession", "OK", ""),
            ("audit::record", "GetAccessToken", "OK", ""),
            ("audit::record", "EndSession", "OK", ""),
            ("audit::read", "GetSession", "NOT_FOUND", "ERR_MISSING_SESSION"),
            ("audit::read", "BatchGetSessions", "OK", ""),
            (
                "audit::record",
                "ListSessions",
                "PERMISSION_DENIED",
                "ERR_CALLER_NOT_ALLOWED"
            ),
        ]
    );
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["network.peer.address"], "127.0.0.1", "{record}");
        assert!(
            record["network.peer.port"].is_u64() && record["duration_us"].is_u64(),
            "{record}"
        );
        assert_eq!(record["session"] == handle.as_str(), at < 5, "{record}");
    }
    assert!(records[0]["actor.subject"].is_string(), "{}", records[0]);
    assert_eq!(records[2]["actor.subject"], records[0]["actor.subject"]);
    assert_eq!(records[5]["sessions"], format!("{handle} {handle}"));
    for (rpc, code, count) in [
        (Rpc::GetSession, "OK", 1),
        (Rpc::GetSession, "NOT_FOUND", 1),
        (Rpc::BatchGetSessions, "OK", 1),
        (Rpc::ListSessions, "PERMISSION_DENIED", 1),
    ] {
        assert_eq!(measured(&world, rpc, code), count, "{rpc:?} {code}");
    }
    assert_eq!(
        (&records[3]["cause"], &records[3]["ended_count"]),
        (&"front_channel_logout".into(), &1.into())
    );
    assert_eq!(ends.len(), 1, "one session ended");
    assert_eq!(
        (&ends[0]["cause"], &ends[0]["session"], &ends[0]["request_id"]),
        (
            &"front_channel_logout".into(),
            &handle.as_str().into(),
            &records[3]["request_id"]
        ),
        "it names the request that ended it"
    );
    let person = ends[0]["actor.subject"].as_str().unwrap();
    assert_eq!(person, "subject-of-the-audit");
    assert_eq!(records[0]["actor.subject"], person);
    let text = log().text();
    for secret in [id.as_str(), "alice@audit.example", "-token-of-the-audit"] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

/// Calls with this `x-request-id`. Returns the one in the answer.
async fn list_with(client: &mut Client, subject: &str, request_id: &str) -> Option<String> {
    let mut request = Request::new(v1::ListSessionsRequest {
        issuer: "https://issuer.example".to_owned(),
        subject: subject.to_owned(),
        ..Default::default()
    });
    request
        .metadata_mut()
        .insert("x-request-id", request_id.parse().unwrap());
    let answer = client.list_sessions(request).await.unwrap();
    let told = answer.metadata().get("x-request-id")?;
    Some(told.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_token_that_is_refused_names_the_person_too() {
    let (_world, mut client) = world_of("refused-token", &["CreateSession", "GetAccessToken"]).await;
    let created = client.create_session(alice()).await.unwrap().into_inner();
    let token = v1::GetAccessTokenRequest {
        session_id: created.session_id,
        scopes: vec!["never-granted".to_owned()],
        ..Default::default()
    };
    client.get_access_token(token).await.unwrap_err();
    let records = log().wait_for(2, by("refused-token")).await;
    assert_eq!(records[1]["outcome"], "failure", "{}", records[1]);
    assert!(records[1]["actor.subject"].is_string(), "{}", records[1]);
    assert_eq!(records[1]["actor.subject"], records[0]["actor.subject"]);
}

#[tokio::test]
async fn a_call_is_recorded_with_the_request_it_belongs_to_or_learns_the_name_it_was_given() {
    let (_world, mut client) = world_of("requesting", &["*"]).await;
    let own = "0123456789abcdef0123456789abcdef";
    assert_eq!(
        list_with(&mut client, "subject-of-the-audit", own).await,
        None,
        "the caller knows it"
    );
    for malformed in ["", "0123", "0123456789ABCDEF0123456789ABCDEF", "x\" forged=\"1"] {
        // Each call names another person, because repeating a list changes the count.
        let made = list_with(&mut client, &format!("person {malformed}"), malformed)
            .await
            .unwrap();
        assert!(made.len() == 32 && made != own, "{made}");
        let of_call = |record: &Value| by("requesting")(record) && record["request_id"] == made.as_str();
        log().wait_for(1, of_call).await;
    }
    let lists = log().records(by("requesting"));
    assert_eq!(lists.len(), 5);
    assert!(
        lists
            .iter()
            .all(|list| list["target"] == "audit::record" && list["event"] == "api.call")
    );
    assert_eq!(lists[0]["request_id"], own);
    assert_eq!(lists[0]["actor.subject"], "subject-of-the-audit");
}

#[tokio::test]
async fn a_read_without_the_secret_is_audited_and_one_with_it_is_a_log_record() {
    let (_world, mut client) = world_of("reading", &["*"]).await;
    let created = client.create_session(alice()).await.unwrap().into_inner();
    let handle = created.session.unwrap().handle;
    for by in [
        v1::get_session_request::By::SessionId(created.session_id),
        v1::get_session_request::By::Handle(handle.clone()),
    ] {
        client
            .get_session(v1::GetSessionRequest { by: Some(by) })
            .await
            .unwrap();
    }
    let nobody = v1::get_session_request::By::Handle("0".repeat(32));
    client
        .get_session(v1::GetSessionRequest { by: Some(nobody) })
        .await
        .unwrap_err();
    let is_read = |record: &Value| {
        by("reading")(record) && record["rpc.method"] == "session.v1.SessionService/GetSession"
    };
    let reads = log().wait_for(3, is_read).await;
    let targets: Vec<&str> = reads
        .iter()
        .map(|read| read["target"].as_str().unwrap())
        .collect();
    assert_eq!(
        targets,
        ["audit::read", "audit::record", "audit::read"],
        "who finds nothing has read nothing"
    );
    assert_eq!(reads[1]["session"], handle.as_str());
    assert!(reads[1]["actor.subject"].is_string());
}

#[tokio::test]
async fn an_unknown_caller_is_recorded_by_the_name_it_showed_and_learns_nothing() {
    let world = world(Some(&entry(EDGE, &["*"]))).await;
    world
        .certificates
        .issue("ca", "mine", "subjectAltName=DNS:unlisted.internal");
    let mut client = world.client("mine");
    within(call(&mut client, Rpc::EndSessions)).await.unwrap_err();
    let mut grpc = tonic::client::Grpc::new(world.channel("mine"));
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static("/session.v1.SessionService/Fly");
    let status = grpc
        .unary(Request::new(()), path, ProstCodec::<(), ()>::default())
        .await
        .unwrap_err();
    assert_eq!(
        status.code(),
        Code::Unauthenticated,
        "not even which methods there are"
    );
    let records = log().wait_for(2, by("unlisted")).await;
    for (record, method) in records
        .iter()
        .zip(["session.v1.SessionService/EndSessions", "_OTHER"])
    {
        assert_eq!(record["rpc.method"], method);
        assert_eq!(record["rpc.response.status_code"], "UNAUTHENTICATED");
        assert_eq!(record["reason"], "ERR_UNKNOWN_CALLER");
        assert_eq!(record["target"], "audit::record");
    }
}

#[tokio::test]
async fn a_watch_is_recorded_when_it_begins_and_when_it_ends() {
    let (_world, mut client) = world_of("watching", &["WatchSessions"]).await;
    let mut stream = client
        .watch_sessions(v1::WatchSessionsRequest::default())
        .await
        .unwrap()
        .into_inner();
    within(stream.message()).await.unwrap().unwrap();
    let records = log().wait_for(1, by("watching")).await;
    assert_eq!(
        (&records[0]["message"], &records[0]["rpc.response.status_code"]),
        (&"api.call".into(), &"OK".into())
    );
    drop(stream);
    let records = log().wait_for(2, by("watching")).await;
    assert_eq!(records[1]["event"], "api.watch_end");
    assert_eq!(records[1]["rpc.response.status_code"], "CANCELLED");
}

/// A session whose token expires after this time.
fn expiring(refresh_token: &str, in_ms: i64) -> v1::CreateSessionRequest {
    let mut request = alice();
    let now_ms = i64::try_from(SystemClock.now_ms()).unwrap();
    let tokens = request.tokens.as_mut().unwrap();
    tokens.refresh_token = refresh_token.to_owned();
    tokens.expires_at = Some(session_proto::timestamp::from_ms(
        u64::try_from(now_ms + in_ms).unwrap(),
    ));
    request
}

#[tokio::test]
async fn a_refresh_is_recorded_once_with_caller_session_and_outcome_and_without_a_token() {
    let (_world, mut client) = world_of("refreshing", &["*"]).await;
    let mut sessions = Vec::new();
    // Expired, expired with a token the provider refuses, and good but due to be revalidated.
    for (refresh_token, in_ms, received_ago_ms) in [
        ("refresh-token-of-the-audit", -1_000, 0),
        (SPENT, -1_000, 0),
        ("refresh-token-of-the-audit", 3_600_000, 70_000),
    ] {
        let mut request = expiring(refresh_token, in_ms);
        let received_ms = SystemClock.now_ms() - received_ago_ms;
        request.tokens_received_at = Some(session_proto::timestamp::from_ms(received_ms));
        let created = client.create_session(request).await.unwrap().into_inner();
        sessions.push(created.session.unwrap().handle);
        let token = v1::GetAccessTokenRequest {
            session_id: created.session_id,
            ..Default::default()
        };
        let answer = client.get_access_token(token).await;
        assert_eq!(answer.is_ok(), refresh_token != SPENT, "{answer:?}");
        log().wait_for(sessions.len(), refreshes).await;
    }
    let records = log().records(refreshes);
    let reported: Vec<_> = records
        .iter()
        .map(|record| {
            (
                &record["session"],
                &record["result"],
                &record["ahead"],
                &record["target"],
            )
        })
        .collect();
    let [one, two, three] = [0, 1, 2].map(|at| Value::from(sessions[at].as_str()));
    let (refreshed, refused, audit) = ("refreshed".into(), "refused".into(), "audit::record".into());
    assert_eq!(
        reported,
        [
            (&one, &refreshed, &false.into(), &audit),
            (&two, &refused, &false.into(), &audit),
            (&three, &refreshed, &true.into(), &audit),
        ]
    );
    assert!(records.iter().all(|record| record["duration_us"].is_u64()));
    let of_call = |method: &str| {
        let is_of = |record: &Value| record["rpc.method"] == format!("session.v1.SessionService/{method}");
        log().records(|record| by("refreshing")(record) && is_of(record))
    };
    for (refresh, call) in records.iter().zip(of_call("GetAccessToken")) {
        assert_eq!(
            refresh["request_id"], call["request_id"],
            "the refresh names the call it came from"
        );
        assert_eq!(refresh["actor.issuer"], "https://issuer.example");
    }
    let text = log().text();
    for secret in ["-token-of-the-audit", SPENT] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

/// The refreshes of that test's caller.
fn refreshes(record: &Value) -> bool {
    by("refreshing")(record) && record["event"] == "token.refresh"
}

#[tokio::test]
async fn what_a_page_repeats_is_one_record_of_each_kind_and_endings_have_their_own() {
    let (_world, mut client) = world_of("repeating", &["*"]).await;
    let created = client.create_session(alice()).await.unwrap().into_inner();
    let ends = v1::EndSessionsRequest {
        issuer: "https://issuer.example".to_owned(),
        subject: "subject-of-the-audit".to_owned(),
        except_handle: created.session.unwrap().handle,
        ..Default::default()
    };
    for number in 0..50 {
        let own = format!("{number:032x}");
        list_with(&mut client, "subject-of-the-audit", &own).await;
        client.end_sessions(ends.clone()).await.unwrap();
        let shown = v1::RotateCookieRequest {
            session_id: created.session_id.clone(),
            grace: Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            }),
            ..Default::default()
        };
        client.rotate_cookie(shown).await.unwrap();
    }
    // The last call writes its record before the test reads the records.
    let another = client.create_session(alice()).await.unwrap();
    drop(another);
    client.end_sessions(ends).await.unwrap();
    let records = log().wait_for(6, by("repeating")).await;
    let of = |method: &str| {
        let name = format!("session.v1.SessionService/{method}");
        let is_audit =
            |record: &&Value| record["target"] == "audit::record" && record["rpc.method"] == name.as_str();
        records.iter().filter(is_audit).count()
    };
    assert_eq!(
        [
            of("CreateSession"),
            of("ListSessions"),
            of("RotateCookie"),
            of("EndSessions")
        ],
        [2, 1, 1, 2],
        "{records:#?}"
    );
}
