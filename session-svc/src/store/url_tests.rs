//! Store addresses: every accepted form, a separate error for every mistake, no visible secret.

use super::*;

fn read(text: &str) -> Result<StoreSettings, StoreUrlError> {
    text.parse()
}

fn redis(text: &str) -> RedisSettings {
    match read(text).unwrap() {
        StoreSettings::Redis(settings) => *settings,
        other => panic!("{other:?}"),
    }
}

fn address(host: &str, port: u16) -> ServerAddress {
    ServerAddress {
        host: host.to_owned(),
        port,
    }
}

fn login(user: Option<&str>, password: Option<&str>) -> Login {
    Login {
        user: user.map(str::to_owned),
        password: password.map(|password| Secret::new(password.to_owned())),
    }
}

#[test]
fn embedded_stores_are_read() {
    assert_eq!(read("memory:"), Ok(StoreSettings::Memory));
    assert_eq!(read("file:sessions"), Ok(StoreSettings::File("sessions".into())));
    assert_eq!(
        read("file:/var/lib/a b/s?x"),
        Ok(StoreSettings::File("/var/lib/a b/s?x".into()))
    );
    assert_eq!(
        read("file:///var/lib/s"),
        Ok(StoreSettings::File("/var/lib/s".into()))
    );
}

#[test]
fn a_single_redis_is_read_with_its_defaults() {
    let settings = redis("redis://localhost");
    assert_eq!(settings.topology, Topology::Single(address("localhost", 6379)));
    assert_eq!(
        (settings.database, settings.tls, settings.login),
        (0, None, Login::default())
    );
    assert_eq!(settings.prefix, "vestibule");
}

#[test]
fn user_password_database_and_tls_are_read() {
    let settings =
        redis("rediss://sessions:p%40ss%3A%2Fw+%3F@[::1]:7000/3?ca_file=%2Fetc%2Fca.pem&prefix=v2");
    assert_eq!(settings.topology, Topology::Single(address("::1", 7000)));
    assert_eq!(settings.login, login(Some("sessions"), Some("p@ss:/w+?")));
    assert_eq!(settings.database, 3);
    let tls = TlsSettings {
        ca_file: Some("/etc/ca.pem".into()),
        ..TlsSettings::default()
    };
    assert_eq!(settings.tls, Some(tls));
    assert_eq!(settings.prefix, "v2");
    assert_eq!(redis("redis://:only@h/").login, login(None, Some("only")));
}

#[test]
fn sentinel_and_cluster_are_read() {
    let settings = redis("redis-sentinel://u:p@h1:1,h2/mymaster?db=2&sentinel_user=s&sentinel_password=t");
    let sentinels = vec![address("h1", 1), address("h2", 26379)];
    let topology = Topology::Sentinel {
        sentinels,
        master: "mymaster".to_owned(),
        login: login(Some("s"), Some("t")),
    };
    assert_eq!(
        (settings.topology, settings.login, settings.database),
        (topology, login(Some("u"), Some("p")), 2)
    );
    let settings = redis("rediss-cluster://u:p@h1:1,h2");
    assert_eq!(
        settings.topology,
        Topology::Cluster(vec![address("h1", 1), address("h2", 6379)])
    );
    assert_eq!(settings.tls, Some(TlsSettings::default()));
}

#[test]
fn every_mistake_is_told() {
    for (text, expected) in [
        ("", SCHEME),
        ("sessions.db", SCHEME),
        ("http://localhost", SCHEME),
        ("Redis://localhost", SCHEME),
        ("memory:x", MEMORY),
        ("file:", FILE),
        ("redis://", SERVER),
        ("redis://host:port", SERVER),
        ("redis://host:0", SERVER),
        ("redis://host:70000", SERVER),
        ("redis://[::1", SERVER),
        ("redis://[::1]7000", SERVER),
        ("redis://a,b", SEVERAL_SERVERS),
        ("redis://u:hunt/er2@h:6379/0", NOT_ENCODED),
        ("redis://u:hunt?er2@h:6379/0", NOT_ENCODED),
        ("redis://u:12/er2@h", NOT_ENCODED),
        ("redis://u:12?er2==@h", NOT_ENCODED),
        ("rediss://:a@b/c@h:6379/1?ca_file=x", NOT_ENCODED),
        ("redis-sentinel://u:12/er2@h1:1,h2:2/master", NOT_ENCODED),
        ("redis-sentinel://u:12/er2@h1", NOT_ENCODED),
        ("redis-cluster://u:hunt/er2@h1,h2", NOT_ENCODED),
        ("redis-sentinel://h/m?sentinel_password=p@ss&db=x", DATABASE),
        ("redis://h/x", DATABASE),
        ("redis://h/-1", DATABASE),
        ("redis-sentinel://h", MASTER),
        ("redis-sentinel://h/", MASTER),
        ("redis-sentinel://h,/m", SERVER),
        ("redis-sentinel://h/m?db=x", DATABASE),
        ("redis-cluster://h/1", CLUSTER_PATH),
        ("redis://u:%ff@h", ENCODING),
        ("redis://h?ca_file=x", TLS_WITHOUT_TLS),
        ("rediss://h?cert_file=x", CERTIFICATE_WITHOUT_KEY),
        ("redis://h?prefix=", PREFIX),
        ("redis://h?prefix={x}", PREFIX),
        ("redis://h?db=1", PARAMETER),
        ("redis://h?nonsense", PARAMETER),
    ] {
        assert_eq!(read(text), Err(StoreUrlError(expected)), "{text:?}");
    }
}

#[test]
fn no_password_is_shown() {
    for text in [
        "redis://user:hunter2secret@host",
        "redis-sentinel://user:hunter2secret@host/m?sentinel_password=hunter2secret",
        "rediss-cluster://:hunter2secret@host",
    ] {
        let shown = format!("{:?}", redis(text));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for text in [
        "redis://user:hunter2secret@host:port",
        "redis://hunter2secret@",
        "redis://user:hunter2/secret@host",
        "hunter2secret",
    ] {
        let error = read(text).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
    }
}
