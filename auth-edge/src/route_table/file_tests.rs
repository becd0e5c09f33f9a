//! The route table's file: accepted forms, precedence, and errors.

use crate::route_table::{Csrf, Guard, Match, RouteQuery, RouteTable, Upstream};
use crate::values::path::RequestPath;

fn around(signs: bool) -> super::RouteFileContext {
    super::RouteFileContext {
        binds: true,
        signs,
        ..super::RouteFileContext::default()
    }
}

fn parse(text: &str) -> Result<RouteTable, super::FileMistakes> {
    super::parse(text, &around(true))
}

const TABLE: &str = r#"
[[route]]
path = "/*"
guard = "none"
upstream = "dir:web/dist"

[[route]]
path = "/account/*"
guard = "page"
upstream = "dir:web/dist"

[[route]]
path = "/account/help"
guard = "none"
upstream = "dir:web/dist"

[[route]]
path = "/api/orders/*"
guard = "api"
upstream = "http://orders:8080"
access_token = true
scopes = ["orders:read"]
max_age = 900
claims = { groups = "admin" }
"#;

fn name(table: &RouteTable, raw: &str) -> String {
    answering(table, "", "GET", raw)
}

fn answering(table: &RouteTable, host: &str, method: &str, raw: &str) -> String {
    let requested = RouteQuery {
        host,
        method: &method.parse().expect("a method"),
        path: &RequestPath::parse(raw).expect("a plain path"),
    };
    match table.routes.find(requested) {
        Match::Route(route) => route.name.to_string(),
        Match::Ambiguous => "ambiguous".to_owned(),
        Match::OtherMethods(methods) => format!("only {methods:?}"),
        Match::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn the_most_specific_route_wins_whatever_the_order() {
    let table = parse(TABLE).expect("a right table");
    for (path, expected) in [
        ("/", "/*"),
        ("/about", "/*"),
        ("/accounting", "/*"),
        ("/account", "/account/*"),
        ("/account/", "/account/*"),
        ("/account/a/b", "/account/*"),
        ("/x/../account/a", "/account/*"),
        ("/%61ccount/a", "/account/*"),
        ("/account/help", "/account/help"),
        ("/account/help/", "/account/help"),
        ("/account/help/more", "/account/*"),
        ("/api/orders/7", "/api/orders/*"),
        ("/api/other", "/*"),
    ] {
        assert_eq!(name(&table, path), expected, "{path}");
    }
}

#[test]
fn a_guard_is_not_passed_by_another_letter_case_or_a_closing_dot() {
    let table = parse(TABLE).expect("a right table");
    for path in [
        "/Account/a",
        "/ACCOUNT",
        "/account./a",
        "/api/Orders/7",
        "/api/orders%20/7",
    ] {
        assert_eq!(name(&table, path), "ambiguous", "{path}");
    }
    assert_eq!(name(&table, "/About"), "/*");
    let both = "[[route]]\npath = \"/api/*\"\nguard = \"api\"\nupstream = \"http://a\"\n\
         [[route]]\npath = \"/api/admin/*\"\nguard = \"api\"\nupstream = \"http://a\"\nclaims = { groups = \"admin\" }\n";
    let table = parse(both).expect("a right table");
    assert_eq!(
        name(&table, "/api/Admin/a"),
        "ambiguous",
        "the same guard may ask for more"
    );
}

#[test]
fn a_method_no_nearer_rule_names_passes_by_no_rule_that_requires_less() {
    let rule =
        |path: &str, more: &str| format!("[[route]]\npath = \"{path}\"\nupstream = \"http://a\"\n{more}\n");
    let [open, page, api] = ["guard = \"none\"", "guard = \"page\"", "guard = \"api\""];
    let get = "methods = [\"GET\"]";
    for (nearer, wider, expected) in [
        (
            format!("{page}\n{get}"),
            open.to_owned(),
            ["only [GET]", "ambiguous"],
        ),
        (
            format!("{page}\n{get}\nclaims = {{ a = 1 }}"),
            page.to_owned(),
            ["only [GET]", "ambiguous"],
        ),
        (
            format!("{api}\n{get}\ncsrf = \"header\""),
            api.to_owned(),
            ["only [GET]", "ambiguous"],
        ),
        (format!("{open}\n{get}"), page.to_owned(), ["/*", "/*"]),
        (format!("{api}\n{get}"), page.to_owned(), ["/*", "/*"]),
        (
            format!("{page}\n{get}"),
            format!("{page}\nclaims = {{ a = 1 }}"),
            ["/*", "/*"],
        ),
    ] {
        let table = rule("/admin/*", &nearer) + &rule("/*", &wider);
        let table = parse(&table).expect("a right table");
        for (path, expected) in ["/admin/x", "/ADMIN./x"].iter().zip(expected) {
            let found = answering(&table, "", "PUT", path);
            assert_eq!(found, expected, "{nearer} | {wider} {path}");
        }
        assert_eq!(answering(&table, "", "GET", "/admin/x"), "/admin/*");
    }
    let host = rule("/*", &format!("{page}\n{get}\nhost = \"a.example\"")) + &rule("/b", open);
    let host = parse(&host).expect("a right table");
    assert_eq!(answering(&host, "a.example", "PUT", "/b"), "only [GET]");
    assert_eq!(answering(&host, "b.example", "PUT", "/b"), "/b");
    let same = rule("/shop/*", &format!("{open}\n{get}")) + &rule("/shop/*", page) + &rule("/*", open);
    let same = parse(&same).expect("a right table");
    for method in ["GET", "PUT"] {
        assert_eq!(answering(&same, "", method, "/shop/x"), "/shop/*", "{method}");
    }
    let between = rule("/a/b/*", &format!("{open}\n{get}"))
        + &rule("/a/*", &format!("{page}\nmethods = [\"GET\", \"POST\"]"))
        + &rule("/*", open);
    let between = parse(&between).expect("a right table");
    assert_eq!(answering(&between, "", "PUT", "/a/b/c"), "only [GET, POST]");
    assert_eq!(answering(&between, "", "POST", "/a/b/c"), "/a/*");
}

#[test]
fn letters_have_another_case_in_every_script() {
    let table = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"http://a\"\n\
         [[route]]\npath = \"/%C3%A9cole/*\"\nguard = \"api\"\nupstream = \"http://a\"\n";
    let table = parse(table).expect("a right table");
    assert_eq!(name(&table, "/%C3%A9cole/a"), "/%C3%A9cole/*");
    assert_eq!(name(&table, "/%C3%89COLE/a"), "ambiguous");
    assert_eq!(name(&table, "/ecole/a"), "/*");
}

#[test]
fn without_a_route_nothing_answers() {
    let table =
        parse("[[route]]\npath = \"/a\"\nguard = \"none\"\nupstream = \"http://a\"").expect("a right table");
    assert_eq!(name(&table, "/a"), "/a");
    assert_eq!(name(&table, "/a/b"), "nothing");
    assert_eq!(parse("").expect("an empty table is right"), RouteTable::default());
}

#[test]
fn what_a_guard_asks_is_read() {
    let table = parse(TABLE).expect("a right table");
    let orders = table
        .routes
        .all()
        .iter()
        .find(|route| &*route.name == "/api/orders/*")
        .expect("the route");
    assert_eq!(orders.guard, Guard::Api);
    assert!(orders.requirements.access_token && orders.requirements.needs_token());
    assert_eq!(orders.requirements.token.scopes, ["orders:read"]);
    assert_eq!(orders.requirements.max_age_secs, Some(900));
    let claims = |groups: &str| serde_json::json!({ "groups": [groups] });
    let is_met = |groups| {
        let required = &orders.requirements.claims;
        required
            .iter()
            .all(|one| one.is_met(claims(groups).as_object().unwrap()))
    };
    assert!(is_met("admin") && !is_met("staff"));
}

#[test]
fn every_mistake_is_named_at_once_with_its_line() {
    let wrong = "[[route]]\npath = \"account\"\nguard = \"maybe\"\nupstream = \"ftp://x\"\nmaxage = 3\n\n\
         [[route]]\nguard = \"none\"\nscopes = [\"a\"]\n\n[[routes]]\n";
    let mistakes = parse(wrong).expect_err("a wrong table");
    let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    for expected in [
        "line 2: path \"account\" can never match",
        "line 3: guard \"maybe\" is unknown",
        "line 4: upstream has to be",
        "line 5: unknown key \"maxage\"",
        "line 7: the route has no path",
        "line 7: the route has no upstream",
        "line 7: guard = \"none\" asks for nothing",
        "line 11: unknown key \"routes\"",
    ] {
        assert!(
            told.iter().any(|line| line.starts_with(expected)),
            "{expected}: {told:#?}"
        );
    }
}

#[test]
fn wrong_values_are_refused() {
    let route =
        |more: &str| format!("[[route]]\npath = \"/a\"\nguard = \"api\"\nupstream = \"http://a:1\"\n{more}");
    assert!(parse(&route("")).is_ok());
    for more in [
        "max_age = 0",
        "max_age = -1",
        "max_age = \"1\"",
        "scopes = []",
        "scopes = \"a\"",
        "scopes = [1]",
        "acr = [\"\"]",
        "strip_prefix = 1",
        "claims = { a = 1.5 }",
        "claims = {}",
        "claims = { a = [] }",
        "claims = { a = {} }",
        "organization = \"\"",
        "upstream_jwt = 1",
        "max_body = -1",
        "max_body = \"1\"",
        "acr = [\"a b\"]",
        "acr = ['a\"b']",
        "path = \"/b\"",
        "x",
    ] {
        assert!(parse(&route(more)).is_err(), "{more}");
    }
    for (path, upstream) in [
        ("/a*", "http://a"),
        ("/a/*/b", "http://a"),
        ("/a//b", "http://a"),
        ("/a/../b", "http://a"),
        ("/a?b", "http://a"),
        ("/api/auth/x", "http://a"),
        ("/API/AUTH", "http://a"),
        ("", "http://a"),
        ("/a", "http://a/b"),
        ("/a", "http://u:p@a"),
        ("/a", "http://a?b"),
        ("/a", "dir:"),
        ("/a", "h2c:a"),
        ("/a", "h2c://u@a"),
        ("/a", "h2c://a/b"),
        ("/a", "a"),
    ] {
        let table = format!("[[route]]\npath = {path:?}\nguard = \"api\"\nupstream = {upstream:?}");
        assert!(parse(&table).is_err(), "{path} {upstream}");
    }
}

#[test]
fn a_route_names_the_api_its_token_is_for() {
    let route =
        |more: &str| format!("[[route]]\npath = \"/a\"\nguard = \"api\"\nupstream = \"http://a:1\"\n{more}");
    let good = "access_token = true\naudience = \"orders\"\nresource = \"https://orders.example/api?v=1\"";
    let table = parse(&route(good)).expect("a right table");
    let requirements = &table.routes.all()[0].requirements;
    let token = &requirements.token;
    assert_eq!(
        (token.audience.as_str(), token.resource.as_str()),
        ("orders", "https://orders.example/api?v=1")
    );
    assert!(requirements.needs_token());
    let long = format!("audience = {:?}", "a".repeat(513));
    for (keys, names) in [
        ("resource = \"orders\"", "absolute URI without a fragment"),
        (
            "resource = \"https://orders.example/#a\"",
            "absolute URI without a fragment",
        ),
        (
            "resource = \"https://orders.example/ a\"",
            "absolute URI without a fragment",
        ),
        ("audience = \"a\\nb\"", "name of an API"),
        (long.as_str(), "name of an API"),
    ] {
        let mistakes = parse(&route(&format!("access_token = true\n{keys}"))).expect_err(keys);
        assert_eq!((mistakes.len(), mistakes[0].line), (1, 6), "{keys}: {mistakes:?}");
        assert!(mistakes[0].text.contains(names), "{mistakes:?}");
    }
    for keys in [
        "audience = \"orders\"",
        "resource = \"https://orders.example\"\nscopes = [\"a\"]",
    ] {
        let mistakes = parse(&route(keys)).expect_err(keys);
        assert!(
            mistakes[0].text.contains("write access_token = true"),
            "{mistakes:?}"
        );
    }
}

#[test]
fn the_same_path_twice_is_a_mistake() {
    let one =
        |path: &str| format!("[[route]]\npath = {path:?}\nguard = \"api\"\nupstream = \"http://a:1\"\n");
    for (first, second) in [("/a", "/a"), ("/a", "/a/"), ("/a/*", "/a/*"), ("/a", "/%61")] {
        assert!(parse(&(one(first) + &one(second))).is_err(), "{first} {second}");
    }
    assert!(parse(&(one("/a") + &one("/a/*"))).is_ok());
}

#[test]
fn a_route_says_what_a_sign_in_needs_in_parameters_that_exist() {
    let good = "[[route]]\npath = \"/v\"\nguard = \"page\"\nupstream = \"dir:.\"\n[route.sign_in]\nmax_age = 1_000\nacr_values = \"gold\"\nkc_idp_hint = \"google\"\n";
    let table = parse(good).expect("a right table");
    let sign_in = &table.routes.all()[0].sign_in;
    assert_eq!(sign_in["max_age"], "1000");
    assert_eq!(sign_in["acr_values"], "gold");
    assert_eq!(sign_in["kc_idp_hint"], "google");
    for bad in [
        "redirect_uri = \"https://evil.example\"",
        "scope = \"openid\"",
        "returnTo = \"/a\"",
        "max_age = \"soon\"",
        "max_age = -1",
        "prompt = 7",
        "login_hint = \"\"",
    ] {
        let table = format!(
            "[[route]]\npath = \"/v\"\nguard = \"page\"\nupstream = \"dir:.\"\nsign_in = {{ {bad} }}\n"
        );
        let mistakes = parse(&table).expect_err(bad);
        assert_eq!((mistakes.len(), mistakes[0].line), (1, 5), "{bad}: {mistakes:?}");
    }
}

#[test]
fn an_upstream_is_told_from_another_by_what_it_speaks() {
    let table = parse(
        "[[route]]\npath = \"/a\"\nguard = \"api\"\nupstream = \"h2c://orders:8080\"\nupstream_jwt = true\nmax_body = 1024",
    )
    .expect("a right table");
    let route = &table.routes.all()[0];
    let Upstream::Http(server) = &route.upstream else {
        panic!("{route:?}");
    };
    assert!(server.prior_knowledge && route.upstream_jwt.is_some());
    assert_eq!(server.origin(), "http://orders:8080");
    assert_eq!(route.max_body_bytes, Some(1024));
}

#[test]
fn an_assertion_needs_somebody_to_speak_of_and_somebody_to_speak_to() {
    for (guard, upstream) in [("none", "http://a"), ("page", "dir:web")] {
        let table = format!(
            "[[route]]\npath = \"/a\"\nguard = {guard:?}\nupstream = {upstream:?}\nupstream_jwt = true"
        );
        assert!(parse(&table).is_err(), "{guard} {upstream}");
    }
    let right = "[[route]]\npath = \"/a\"\nguard = \"api\"\nupstream = \"http://a\"\nupstream_jwt = true";
    assert!(super::parse(right, &around(true)).is_ok());
    assert!(
        super::parse(right, &around(false)).is_err(),
        "nothing signs without keys"
    );
}

#[test]
fn a_route_may_name_a_provider_that_is_there_and_no_other() {
    let around = super::RouteFileContext {
        connections: vec!["partner".to_owned()],
        ..around(false)
    };
    let route =
        |field: &str| format!("[[route]]\npath = \"/a\"\nguard = \"page\"\nupstream = \"dir:.\"\n{field}\n");
    for field in [
        "connection = \"partner\"",
        "sign_in = { connection = \"partner\" }",
    ] {
        let table = super::parse(&route(field), &around).unwrap();
        assert_eq!(table.routes.all()[0].connection(), Some("partner"), "{field}");
        let wrong = parse(&route(field)).unwrap_err();
        assert!(wrong[0].text.contains("OIDC_PROVIDERS"), "{}", wrong[0]);
    }
    let open = route("connection = \"partner\"").replace("page", "none");
    assert!(super::parse(&open, &around).is_err(), "nobody is asked there");
}

#[test]
fn no_route_is_where_signing_in_was_moved_to() {
    let own_paths = ["/sign-in".to_owned(), "/back/partner".to_owned()];
    let around = super::RouteFileContext {
        own_paths: own_paths.to_vec(),
        ..around(false)
    };
    let at = |path: &str| {
        let table = format!("[[route]]\npath = \"{path}\"\nguard = \"none\"\nupstream = \"dir:.\"");
        super::parse(&table, &around).map_err(|mistakes| mistakes[0].to_string())
    };
    for path in &own_paths {
        let mistake = at(path).unwrap_err();
        assert!(
            mistake.contains("line 2") && mistake.contains("belongs to the edge"),
            "{mistake}"
        );
    }
    for path in ["/sign-in/help", "/sign-in/*", "/back/*", "/*"] {
        at(path).unwrap();
    }
}

#[test]
fn how_foreign_requests_are_told_apart_is_read() {
    let table = |guard: &str, more: &str| {
        parse(&format!(
            "[[route]]\npath = \"/a\"\nguard = \"{guard}\"\nupstream = \"http://a:1\"\n{more}"
        ))
    };
    for (more, expected) in [
        ("", Csrf::Origin),
        ("csrf = \"origin\"", Csrf::Origin),
        ("csrf = \"header\"", Csrf::Header),
        ("csrf = \"none\"", Csrf::None),
    ] {
        let table = table("api", more).expect("a right table");
        assert_eq!(table.routes.all()[0].csrf, expected, "{more}");
    }
    assert!(table("none", "csrf = \"none\"").is_ok());
    for (guard, more, expected) in [
        ("api", "csrf = \"off\"", "\"origin\", \"header\" or \"none\""),
        ("api", "csrf = false", "text in quotes"),
        ("none", "csrf = \"header\"", "needs guard"),
        ("none", "csrf = \"origin\"", "needs guard"),
    ] {
        let mistakes = table(guard, more).expect_err("a mistake");
        assert!(
            mistakes.len() == 1 && mistakes[0].text.contains(expected),
            "{more}: {mistakes:?}"
        );
    }
}

#[test]
fn another_letter_case_takes_no_proof_away() {
    let rule = |path: &str, csrf: &str| {
        format!("[[route]]\npath = \"{path}\"\nguard = \"api\"\nupstream = \"http://a\"\ncsrf = \"{csrf}\"\n")
    };
    let table = format!("{}{}", rule("/*", "none"), rule("/api/*", "header"));
    let table = parse(&table).expect("a right table");
    assert_eq!(name(&table, "/api/a"), "/api/*");
    assert_eq!(name(&table, "/API/a"), "ambiguous");
}

#[test]
fn forms_are_kept_only_where_people_send_them_and_are_sent_to_sign_in() {
    let table = |more: &str| format!("[[route]]\npath = \"/a\"\nkeep_form = true\n{more}");
    let kept = parse(&table("guard = \"page\"\nupstream = \"http://a\"")).expect("a right table");
    assert!(kept.routes.all()[0].keep_form);
    for (more, told) in [
        ("guard = \"api\"\nupstream = \"http://a\"", "guard = \"page\""),
        ("guard = \"none\"\nupstream = \"http://a\"", "guard = \"page\""),
        (
            "guard = \"page\"\nupstream = \"dir:web\"",
            "keep_form needs an http upstream",
        ),
        (
            "guard = \"page\"\nupstream = \"http://a\"\ncsrf = \"header\"",
            "sends no header",
        ),
    ] {
        let mistakes = parse(&table(more)).expect_err(more);
        assert!(mistakes[0].to_string().contains(told), "{more}: {mistakes:?}");
    }
}

#[test]
fn a_host_is_more_specific_than_a_path_and_a_method_less() {
    let rule = |path: &str, more: &str| {
        format!("[[route]]\npath = \"{path}\"\nguard = \"none\"\nupstream = \"http://a\"\n{more}\n")
    };
    let table = rule("/*", "")
        + &rule("/shop/*", "")
        + &rule("/shop/*", "methods = [\"POST\"]")
        + &rule("/shop/cart", "methods = [\"GET\"]")
        + &rule("/*", "host = \"a.example\"")
        + &rule("/shop/*", "host = \"a.example\"\nmethods = [\"POST\"]");
    let table = parse(&table).expect("a right table");
    for (host, method, path, expected) in [
        ("b.example", "GET", "/", "/*"),
        ("b.example", "GET", "/shop/1", "/shop/*"),
        ("b.example", "POST", "/shop/1", "/shop/*"),
        ("b.example", "GET", "/shop/cart", "/shop/cart"),
        ("b.example", "POST", "/shop/cart", "/shop/*"),
        ("a.example", "GET", "/shop/cart", "a.example/*"),
        ("A.example.:80", "POST", "/shop/cart", "a.example/shop/*"),
        ("", "GET", "/", "/*"),
    ] {
        assert_eq!(
            answering(&table, host, method, path),
            expected,
            "{method} {host}{path}"
        );
    }
    let only = parse(&rule("/a", "methods = [\"POST\", \"PUT\"]")).expect("a right table");
    assert_eq!(answering(&only, "", "GET", "/a"), "only [POST, PUT]");
    assert_eq!(answering(&only, "", "GET", "/b"), "nothing");
}

#[test]
fn claims_are_named_as_keys_of_the_file_are() {
    let table = "[[route]]\npath = \"/a\"\nguard = \"api\"\nupstream = \"http://a\"\n[route.claims]\nlevel = 3\n\
         groups = [\"a\", \"b\"]\nrealm_access.roles = \"admin\"\n\"https://a.example/b\" = true\n";
    let table = parse(table).expect("a right table");
    let required = &table.routes.all()[0].requirements.claims;
    let claims = serde_json::json!({
        "groups": ["b"], "level": 3, "realm_access": {"roles": "admin"}, "https://a.example/b": true,
    });
    assert!(required.iter().all(|one| one.is_met(claims.as_object().unwrap())));
    assert_eq!(required.len(), 4);
    assert!(!required.iter().any(|one| one.is_met(&serde_json::Map::new())));
}

#[test]
fn a_route_asks_for_bound_sessions_only_where_some_are_bound_and_no_copied_token_passes_beside_them() {
    let table = |more: &str| {
        format!(
            "[[route]]\npath = \"/a\"\nguard = \"page\"\nupstream = \"http://a\"\ndevice_bound = true\n{more}"
        )
    };
    assert!(parse(&table("")).is_ok());
    let unbound = super::RouteFileContext {
        binds: false,
        ..around(true)
    };
    let wrong = super::parse(&table(""), &unbound).unwrap_err().to_string();
    assert!(wrong.contains("EDGE_DEVICE_BOUND"), "{wrong}");
    let bearer = |dpop| format!("[route.bearer]\naudience = \"api://a\"\ndpop_required = {dpop}\n");
    assert!(parse(&table(&bearer("true"))).is_ok());
    let wrong = parse(&table(&bearer("false"))).unwrap_err().to_string();
    assert!(wrong.contains("dpop_required"), "{wrong}");
}

#[test]
fn what_cannot_be_meant_by_a_key_is_refused_with_the_reason() {
    let [route, check] = ["route", "check"];
    for (kind, more, reason) in [
        (
            route,
            "path = \"/a\"\nguard = \"api\"\nupstream = \"http://a\"\nencoded_path = true",
            "ends with",
        ),
        (
            route,
            "path = \"/a/*\"\nguard = \"api\"\nupstream = \"dir:web\"\nencoded_path = true",
            "an http upstream",
        ),
        (
            route,
            "path = \"/a\"\nguard = \"none\"\nupstream = \"http://a\"\nrolls = false",
            "rolls needs",
        ),
        (
            route,
            "path = \"/a\"\nguard = \"api\"\nupstream = \"http://a\"\ncsrf = \"none\"\nguard_method_override = true",
            "guard_method_override needs",
        ),
        (
            route,
            "path = \"/a\"\nguard = \"none\"\nupstream = \"http://a\"\nguard_method_override = true",
            "guard_method_override needs",
        ),
        (
            route,
            "path = \"/a\"\nguard = \"page\"\nupstream = \"http://a\"\nredirect = true",
            "redirect",
        ),
        (check, "guard = \"api\"\nredirect = true", "redirect needs"),
        (
            check,
            "guard = \"page\"\nguard_method_override = true",
            "guard_method_override",
        ),
    ] {
        let wrong = parse(&format!("[[{kind}]]\n{more}\n")).expect_err(more);
        assert!(wrong[0].text.contains(reason), "{more}: {wrong:?}");
    }
}
